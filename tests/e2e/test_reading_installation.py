"""The wheel without extras, with the lowest and the newest versions that it accepts: what reads tables works there.

Every answer is compared with that of this environment. The tables are the example history.
"""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from dashboards import Dashboard
from deployment_tools import ROOT
from eventually import eventually
from patience import PATIENCE_SECONDS
from reader_environments import ReaderEnvironment, environment, this_environment
from shop_history import UNTIL, shop_tables
from wheel_environments import built_distributions

pytestmark = [pytest.mark.slow, pytest.mark.network, pytest.mark.deployment]

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
#: Version that a requirement begins with.
_LOWEST = re.compile(r"([\w-]+)[=>]=([\w.]+)")
#: Packages of the job, the coordinator and conversions: none of them may come with the wheel.
ABSENT = ("pyspark", "delta", "numba", "kafka", "cramjam", "crc32c", "uvloop", "structlog", "prometheus_client", "pandas")
PAGES = ("", "groups", "topics", "clients", "groups/billing", "topics/payments")
_ROWS = """
import hashlib, json, sys
import grouplake
tables = grouplake.open(sys.argv[1])
for name in (*tables.tables, *tables.views):
    rows = sorted(json.dumps(row, default=str) for row in tables.table(name))
    print(name, len(rows), hashlib.sha256("\\n".join(rows).encode()).hexdigest())
"""
_FRAMES = """
import sys
import grouplake
tables = grouplake.open(sys.argv[1])
print({name: str(tables.table(name).to_pandas().shape) for name in (*tables.tables, *tables.views)})
"""


def lowest(requirements: list[str]) -> list[str]:
    """The lowest version of each requirement, as pins."""
    found = (_LOWEST.match(line) for line in requirements)
    return [f"{match[1]}=={match[2]}" for match in found if match]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built_distributions(tmp_path_factory.mktemp("dist")).wheel


@pytest.fixture(scope="module", params=["lowest", "newest"])
def reader(request: pytest.FixtureRequest, wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> ReaderEnvironment:
    pins = lowest(PROJECT["dependencies"]) if request.param == "lowest" else []
    return environment(tmp_path_factory.mktemp(request.param) / "environment", f"{wheel}[dashboard]", *pins)


@pytest.fixture(scope="module")
def here() -> ReaderEnvironment:
    return this_environment()


@pytest.fixture(scope="module")
def tables() -> str:
    return shop_tables()


def test_the_packages_of_other_extras_are_absent(reader: ReaderEnvironment) -> None:
    program = f"from importlib.util import find_spec; print([name for name in {ABSENT!r} if find_spec(name)])"
    assert reader.python(program) == "[]\n"


def test_every_table_and_view_has_the_same_rows(reader: ReaderEnvironment, here: ReaderEnvironment, tables: str) -> None:
    rows = reader.python(_ROWS, tables).splitlines()
    assert len(rows) > 30
    assert rows == here.python(_ROWS, tables).splitlines()


@pytest.mark.parametrize(
    "arguments",
    [
        ["sql", "--format", "json", "SELECT * FROM lag_by_group ORDER BY group_id"],
        ["sql", "--format", "csv", "SELECT batch_id, versions FROM batches ORDER BY batch_id DESC LIMIT 3"],
        ["lag", "--all-groups", "--seconds", "--status", "--as-of", f"{UNTIL:%Y-%m-%dT%H:%M:%SZ}"],
        ["diff", "--from", "0", "--format", "json"],
        ["check"],
        ["catalog"],
    ],
    ids=lambda arguments: " ".join(arguments[:3]),
)
def test_reading_commands_print_the_same(
    arguments: list[str], reader: ReaderEnvironment, here: ReaderEnvironment, tables: str
) -> None:
    command = [arguments[0], "--tables", tables, *arguments[1:]]
    printed = reader.output(*command)
    assert printed
    assert printed == here.output(*command)


def series_and_pages(reader: ReaderEnvironment, tables: str) -> tuple[set[str], list[int]]:
    """Names and labels of all metrics but those of the build, and the lengths of pages of a past time."""
    server = Dashboard(f"shop={tables}", program=reader.bin / "grouplake")
    at = {"at": f"{UNTIL:%Y-%m-%dT%H:%M:%SZ}"}

    def series() -> set[str]:
        lines = (line.rpartition(" ")[0] for line in server.get("/metrics").text.splitlines())
        return {line for line in lines if "build_info" not in line}

    try:
        # the tables are older than the job's interval, so /ready is no sign that they are loaded, and lag has no series
        found = eventually("metrics", series, lambda names: any("grouplake_batch_id{" in name for name in names))
        return found, [len(server.get(f"/c/shop/{page}", params=at).raise_for_status().text) for page in PAGES]
    finally:
        server.close()


def test_pages_and_metrics_are_the_same(reader: ReaderEnvironment, here: ReaderEnvironment, tables: str) -> None:
    assert series_and_pages(reader, tables) == series_and_pages(here, tables)


def test_commands_of_other_extras_name_them(reader: ReaderEnvironment) -> None:
    done = subprocess.run(
        [reader.bin / "grouplake", "run", "--source", "segments:x", "--tables", "y"],
        capture_output=True,
        text=True,
        env=reader.variables,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert (done.returncode, done.stderr) == (
        2,
        "grouplake: grouplake run needs the package pyspark: pip install 'grouplake[job]'\n",
    )


def test_frames_of_the_lowest_pandas(wheel: Path, here: ReaderEnvironment, tables: str, tmp_path: Path) -> None:
    old = environment(tmp_path / "environment", wheel, *lowest(PROJECT["dependencies"]), "pandas==1.5.3")
    assert old.python(_FRAMES, tables) == here.python(_FRAMES, tables)


def test_versions_of_the_ranges() -> None:
    assert lowest(["pyarrow>=14", "deltalake==1.6.6", "obstore>=0.12,<0.13"]) == [
        "pyarrow==14",
        "deltalake==1.6.6",
        "obstore==0.12",
    ]
