"""The wheel in a fresh environment outside of the tree, where the user already has packages named `conf` and `schemas`.

The wheel is built from the source archive: a file that is missing there is missing in the wheel. The environment has the versions
of `requirements.lock`. PYTHONPATH is not set, and commands run in a folder outside of the tree.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from email import message_from_bytes
from pathlib import Path

import pytest
from checked_commands import checked
from deployment_tools import ROOT
from patience import PATIENCE_SECONDS
from wheel_environments import UV, Distributions, build, built_distributions, install

from pipelines.job.spark.session import DELTA
from pipelines.runtime.cache.jars import cache_folder, resolved_jars
from pipelines.runtime.version import REVISION_FILE, git_revision
from tools.release import version_of

# not among the fast tests: it starts Spark
pytestmark = [pytest.mark.spark, pytest.mark.deployment, pytest.mark.long]

LOG = ROOT / "tests" / "data" / "kafka-4.1.1.records.jsonl"
#: Packages of the user that have the names of two folders of the tree.
THEIRS = ("conf", "schemas")
_CLIENT = """
import sys
from kafka import KafkaConsumer, OffsetAndMetadata, TopicPartition
consumer = KafkaConsumer(bootstrap_servers=sys.argv[1], group_id="billing")
consumer.commit({TopicPartition("orders", 0): OffsetAndMetadata(42, "", -1)})
consumer.close()
"""


@dataclass(frozen=True)
class Installation:
    """An environment with the wheel, and a folder to work in; neither is in the tree."""

    bin: Path
    site_packages: Path
    folder: Path
    variables: dict[str, str]

    def output(self, program: str, *arguments: str) -> str:
        return checked(self.bin / program, *arguments, cwd=self.folder, env=self.variables)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Distributions:
    return built_distributions(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def installed(built: Distributions, tmp_path_factory: pytest.TempPathFactory) -> Installation:
    root = tmp_path_factory.mktemp("elsewhere")
    environment = root / "environment"
    checked(UV, "venv", "--quiet", "--python", sys.executable, environment)
    (site_packages,) = environment.glob("lib/python*/site-packages")
    for name in THEIRS:
        (site_packages / name).mkdir()
        (site_packages / name / "__init__.py").write_text("OWNER = 'the user'\n")
    install(built.wheel, environment, "job,coordinator")

    # jars are shared with other runs; the classes that this environment's Spark loads are not reusable
    resolved_jars(*DELTA)
    (root / "cache").mkdir()
    (root / "cache" / "jars").symlink_to(cache_folder())
    folder = root / "folder"
    folder.mkdir()
    shutil.copy(LOG, folder / "log.jsonl")
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYSPARK", "SPARK"))}
    return Installation(environment / "bin", site_packages, folder, variables | {"GROUPLAKE_CACHE": str(root / "cache")})


def test_top_level_names_of_the_wheel_are_its_packages(built: Distributions) -> None:
    names = zipfile.ZipFile(built.wheel).namelist()
    assert {name.partition("/")[0] for name in names if ".dist-info/" not in name} == {
        "coordinator_core",
        "grouplake",
        "pipelines",
    }


def test_the_wheel_carries_every_data_file(built: Distributions) -> None:
    names = set(zipfile.ZipFile(built.wheel).namelist())
    for folder, inside in (
        ("schemas/records", "coordinator_core/schemas/records"),
        ("schemas/tables", "pipelines/tables/schemas/tables"),
        ("schemas/views", "pipelines/tables/schemas/views"),
        ("conf", "pipelines/runtime/conf"),
    ):
        root = ROOT / folder
        files = {f"{inside}/{path.relative_to(root)}" for path in root.rglob("*.*") if path.suffix != ".md"}
        assert {name for name in names if name.startswith(f"{inside}/")} == files


def test_license_and_metadata(built: Distributions) -> None:
    wheel = zipfile.ZipFile(built.wheel)
    (metadata,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    fields = message_from_bytes(wheel.read(metadata))
    assert fields["License-Expression"] == "Apache-2.0"
    assert fields["License-File"] == "LICENSE"
    assert fields["Author"] == "The Grouplake authors"
    assert wheel.read(metadata.replace("METADATA", "licenses/LICENSE")) == (ROOT / "LICENSE").read_bytes()


def test_a_second_build_is_the_same(built: Distributions, tmp_path: Path) -> None:
    again = built_distributions(tmp_path)
    assert again.wheel.read_bytes() == built.wheel.read_bytes()
    assert again.archive.read_bytes() == built.archive.read_bytes()


def test_the_source_archive_has_what_a_build_needs(built: Distributions) -> None:
    with tarfile.open(built.archive) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"LICENSE", "README.md", "pyproject.toml", "hatch_build.py"} <= names
    assert {name.partition("/")[0] for name in names} & {"tests", "benchmarks", "build"} == set()


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The files of the tree that a build reads, outside of any checkout."""
    folder = tmp_path / "copy"
    for name in ("coordinator_core", "grouplake", "pipelines", *THEIRS):
        shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    return folder


def built_from(folder: Path) -> tuple[str, str | None]:
    """Version and revision of a wheel that is built directly from `folder`."""
    build("--wheel", "--clear", "--out-dir", folder / "dist", folder)
    (path,) = (folder / "dist").glob("*.whl")
    wheel = zipfile.ZipFile(path)
    name = f"pipelines/runtime/{REVISION_FILE}"
    return version_of(path), wheel.read(name).decode().strip() if name in wheel.namelist() else None


@pytest.mark.slow
def test_a_wheel_that_is_built_outside_of_a_checkout_has_no_revision(copy: Path) -> None:
    assert built_from(copy) == ("0.1.dev0", None)


@pytest.mark.slow
def test_a_wheel_that_is_built_in_a_checkout_has_its_version_and_revision(copy: Path) -> None:
    git = ("git", "-C", copy, "-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    for arguments in (("init", "--quiet"), ("add", "--all"), ("commit", "--quiet", "--message", "first")):
        checked(*git, *arguments)
    revision = checked(*git, "rev-parse", "--short", "HEAD").strip()
    version, built = built_from(copy)
    assert (version.partition("+g")[0], built) == ("0.1.dev1", revision)
    assert version.partition("+g")[2].startswith(revision)
    checked(*git, "tag", "v3.2.1")
    assert built_from(copy) == ("3.2.1", revision)
    (copy / "LICENSE").write_text("another", encoding="utf-8")
    checked(*git, "commit", "--quiet", "--all", "--message", "second")
    assert built_from(copy)[0].startswith("3.2.2.dev1+g")
    assert checked(*git, "status", "--porcelain", "--untracked-files=no") == ""


@pytest.mark.slow
def test_version(installed: Installation, built: Distributions) -> None:
    version = version_of(built.wheel).partition("+")[0]
    revision = git_revision(ROOT)
    expected = f"grouplake {version} (git {revision})" if revision else f"grouplake {version}"
    assert installed.output("grouplake", "--version") == f"{expected}\n"


@pytest.mark.slow
def test_packages_of_the_user_are_not_changed(installed: Installation) -> None:
    owners = installed.output("python", "-c", "import conf, schemas; print(conf.OWNER, schemas.OWNER, sep=', ')")
    assert owners == "the user, the user\n"
    files = {name: {path.name for path in (installed.site_packages / name).iterdir()} - {"__pycache__"} for name in THEIRS}
    assert files == {"conf": {"__init__.py"}, "schemas": {"__init__.py"}}


@pytest.mark.slow
def test_show(installed: Installation) -> None:
    lines = installed.output("grouplake", "show", "--source", "jsonl:log.jsonl").splitlines()
    assert json.loads(lines[0])["key"]


@pytest.fixture(scope="module")
def tables(installed: Installation) -> str:
    """The tables of a run."""
    installed.output("grouplake", "run", "--source", "jsonl:log.jsonl", "--tables", "tables", "--conf", "local")
    return "tables"


@pytest.mark.slow
def test_run_sql_and_check(installed: Installation, tables: str) -> None:
    query = "SELECT count(*) AS n FROM committed_offsets"
    assert int(installed.output("grouplake", "sql", "--tables", tables, "--format", "csv", query).splitlines()[1]) > 0
    assert "rules hold" in installed.output("grouplake", "check", "--tables", tables)


def test_the_public_package_is_typed(built: Distributions) -> None:
    assert "grouplake/py.typed" in zipfile.ZipFile(built.wheel).namelist()


@pytest.mark.slow
def test_the_public_package(installed: Installation, tables: str) -> None:
    program = f"import grouplake; print(len(grouplake.open('{tables}').table('groups')) > 0)"
    assert installed.output("python", "-c", program) == "True\n"


@pytest.mark.slow
def test_coordinator(installed: Installation) -> None:
    (installed.folder / "coordinator.toml").write_text('[coordinator]\nadmin_listen = ""\n[coordinator.topics]\norders = 4\n')
    arguments = ["coordinator", "--listen", "127.0.0.1:0", "--log", "segments:own", "--conf", "coordinator.toml"]
    process = subprocess.Popen(
        [installed.bin / "grouplake", *arguments],
        cwd=installed.folder,
        env=installed.variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with process:
        try:
            assert process.stdout is not None
            address = re.fullmatch(r"listening on (\S+)\n", process.stdout.readline())
            assert address is not None
            installed.output("python", "-c", _CLIENT, address[1])
        finally:
            process.terminate()
        assert process.wait(timeout=PATIENCE_SECONDS) == 0
    assert '"offset":42' in installed.output("grouplake", "show", "--source", "segments:own")
