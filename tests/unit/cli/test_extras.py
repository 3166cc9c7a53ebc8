"""Commands without the packages of their extra, and the list of these packages."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from markdown_pages import ROOT
from patience import PATIENCE_SECONDS
from two_clusters import two_clusters

from pipelines.cli import extras, main
from pipelines.cli.extras import Extra

EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
#: Distribution of each package that has another name.
_DISTRIBUTIONS = {
    "kafka": "kafka-python",
    "prometheus_client": "prometheus-client",
    "opentelemetry.sdk": "opentelemetry-sdk",
    "opentelemetry.exporter.otlp.proto.grpc": "opentelemetry-exporter-otlp-proto-grpc",
    "opentelemetry.exporter.otlp.proto.http": "opentelemetry-exporter-otlp-proto-http",
}
#: Runs the commands in its arguments, separated by "--", in an installation without extras.
_WITHOUT_EXTRAS = """
import sys
for name in ("pyspark", "delta", "numba", "kafka", "confluent_kafka", "cramjam", "crc32c", "uvloop", "structlog",
             "prometheus_client", "fastapi", "prompt_toolkit", "boto3", "opentelemetry.sdk"):
    sys.modules[name] = None
from pipelines.cli import main
from pipelines.runtime.hidden_pandas import hide_pandas
hide_pandas()
command, codes = [], []
for word in [*sys.argv[1:], "--"]:
    if word != "--":
        command.append(word)
        continue
    codes.append(main(command))
    command = []
print(codes)
"""


def distributions(name: str) -> set[str]:
    """The distributions of an extra, and those of the extras that it names."""
    found: set[str] = set()
    for line in EXTRAS[name]:
        match = re.match(r"grouplake\[(.+)\]", line)
        found |= set().union(*map(distributions, match[1].split(","))) if match else {re.split(r"[<>=]", line)[0]}
    return found


@pytest.mark.parametrize(
    "extra", [each for each in vars(extras).values() if isinstance(each, Extra)], ids=lambda extra: extra.name
)
def test_an_extra_installs_the_packages_of_its_commands(extra: Extra) -> None:
    assert {_DISTRIBUTIONS.get(package, package) for package in extra.packages} <= distributions(extra.name)


@pytest.mark.parametrize(
    ("arguments", "package", "command", "extra"),
    [
        (["run", "--source", "segments:x", "--tables", "y"], "numba", "grouplake run", "job"),
        (
            ["run", "--source", "segments:x", "--tables", "y", "--with-coordinator"],
            "uvloop",
            "grouplake run --with-coordinator",
            "coordinator",
        ),
        (["coordinator", "--listen", "127.0.0.1:0", "--log", "segments:x"], "structlog", "grouplake coordinator", "coordinator"),
        (["demo"], "pyspark", "grouplake demo", "demo"),
        (["show", "--source", "segments:x"], "cramjam", "grouplake show", "job"),
        (["doctor"], "kafka", "grouplake doctor", "job"),
        (["example", "x", "--history"], "crc32c", "grouplake example --history", "job"),
        (["restore", "--from", "x", "--tables", "y", "--source", "segments:z"], "numba", "grouplake restore --source", "job"),
        (["rebuild", "--tables", "y", "--source", "segments:z"], "numba", "grouplake rebuild --source", "job"),
        (["dashboard", "--tables", "y"], "authlib", "grouplake dashboard", "dashboard"),
        (["mcp", "--tables", "y"], "mcp", "grouplake mcp", "mcp"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value[:1]),
)
def test_a_command_without_its_extra_names_it(
    arguments: list[str],
    package: str,
    command: str,
    extra: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, package, None)
    assert main(arguments) == 2
    assert capsys.readouterr().err == f"grouplake: {command} needs the package {package}: pip install 'grouplake[{extra}]'\n"
    assert list(tmp_path.iterdir()) == []


def test_commands_that_read_need_no_extra(tmp_path: Path) -> None:
    tables = two_clusters(tmp_path)["east"]
    commands = [
        ["sql", "--tables", tables, "SELECT group_id FROM committed_offsets"],
        ["lag", "--tables", tables, "--all-groups"],
        ["lag", "--tables", tables, "--all-groups", "--as-of", "0"],
        ["diff", "--tables", tables, "--from", "0"],
        ["check", "--tables", tables],
        ["catalog", "--tables", tables],
        ["alerts", "--example"],
        ["backup", "--tables", tables, "--to", str(tmp_path / "backup")],
        ["restore", "--from", str(tmp_path / "backup"), "--tables", str(tmp_path / "restored")],
        ["maintain", "--tables", tables],
        ["rebuild", "--tables", tables],
        ["example", str(tmp_path / "log")],
        ["cache"],
    ]
    words = [word for command in commands for word in ("--", *command)][1:]
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT_EXTRAS, *words], capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == str([0] * len(commands))
