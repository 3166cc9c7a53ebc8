"""A full disk ends every command that writes with one line: folder, reason and remedy. What was complete stays readable."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import genuine
import pytest
from small_disk import SmallDisk, small_disk
from table_logs import applied_records

from coordinator_core.state.era import Era
from pipelines.cli import main
from pipelines.query.check import check

pytestmark = [pytest.mark.spark, pytest.mark.long]

LOG = Path(__file__).parents[1] / "data" / "kafka-4.1.1.records.jsonl"
FIRST_RECORDS = 100
#: Bytes that are left, from none to about the size of one batch.
SPARES = (0, pytest.param(40_960, marks=pytest.mark.slow))
RULES = """
[alerts]
receivers = ["ops"]
[[rules]]
name = "JobStopped"
on = "batch_age"
above = "1s"
[receivers.ops]
kind = "command"
command = ["true"]
"""
_COMMAND = [sys.executable, "-c", "import sys; from pipelines.cli import main; sys.exit(main())"]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk") as mounted:
        yield mounted


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log that grows after the tables were made."""
    file = tmp_path_factory.mktemp("source") / "log.jsonl"
    file.write_text("".join(LOG.read_text().splitlines(keepends=True)[:FIRST_RECORDS]))
    return file


@pytest.fixture(scope="module")
def tables(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables of the beginning of the log, as a job leaves them that lost its checkpoint, and backups of them.

    Afterwards the log has more records.
    """
    root = tmp_path_factory.mktemp("made")
    applied_records(genuine.records("4.1.1")[:FIRST_RECORDS], Era.named("4"), str(root / "tables"))
    assert main(["backup", "--tables", str(root / "tables"), "--to", str(root / "backups")]) == 0
    source.write_text(LOG.read_text())
    return root


def command(*arguments: str, output: Path | None = None) -> "subprocess.CompletedProcess[str]":
    if output is None:
        return subprocess.run([*_COMMAND, *arguments], capture_output=True, text=True, check=False)
    with output.open("w") as file:
        return subprocess.run([*_COMMAND, *arguments], stdout=file, stderr=subprocess.PIPE, text=True, check=False)


def expect_one_line(done: "subprocess.CompletedProcess[str]", folder: Path) -> None:
    """The command failed, and all lines before its last one are progress, also where delta-rs panics."""
    errors = [line for line in done.stderr.splitlines() if line.startswith("grouplake: ")]
    assert done.returncode == 1, done.stderr
    assert len(errors) == 1, done.stderr
    assert done.stderr.splitlines()[-1] == errors[0]
    assert not set(re.findall(r"Traceback|panicked|backtrace|note: ", done.stderr)), done.stderr
    assert errors[0].startswith(f"grouplake: cannot write to {folder}"), errors[0]
    assert "no space left on device; free space there, or use another disk, and run the command again" in errors[0]


@pytest.mark.parametrize("spare", SPARES)
@pytest.mark.parametrize("name", ["run", "maintain", "rebuild", "backup", "restore"])
def test_commands_that_write_tables(name: str, spare: int, disk: SmallDisk, tables: Path, source: Path) -> None:
    copy, more = disk.folder / "tables", disk.folder / "more"
    shutil.copytree(tables / "tables", copy)
    arguments = {
        "run": ["--tables", str(copy), "--source", f"jsonl:{source}"],
        "maintain": ["--tables", str(copy)],
        "rebuild": ["--tables", str(copy)],
        "backup": ["--tables", str(copy), "--to", str(more)],
        "restore": ["--tables", str(more), "--from", str(tables / "backups")],
    }
    disk.fill(spare)
    done = command(name, *arguments[name])
    expect_one_line(done, disk.folder)
    assert check(str(copy)) == []
    disk.free()
    shutil.rmtree(more, ignore_errors=True)
    if name == "run":
        done = command(name, *arguments[name])
        assert done.returncode == 0, done.stderr
    else:
        # the commands are loaded in this process
        assert main([name, *arguments[name]]) == 0
    assert check(str(more if name == "restore" else copy)) == []


def test_the_output_of_a_query(disk: SmallDisk, tables: Path) -> None:
    disk.fill()
    sql = ["sql", "--tables", str(tables / "tables")]
    done = command(*sql, "SELECT * FROM offsets CROSS JOIN groups", output=disk.folder / "rows")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
    assert done.stderr.startswith("grouplake: cannot write to standard output (0.0 MiB free now): no space left on device; ")
    done = command(*sql, "--output", str(disk.folder / "rows.csv"), "SELECT * FROM offsets CROSS JOIN groups")
    expect_one_line(done, disk.folder)


@pytest.mark.parametrize("spare", [131_072, 327_680])
def test_the_first_run(spare: int, disk: SmallDisk, source: Path) -> None:
    disk.fill(spare)
    expect_one_line(command("run", "--source", f"jsonl:{source}", "--tables", str(disk.folder / "tables")), disk.folder)


@pytest.mark.parametrize(
    "arguments",
    [
        ["example", "{disk}/log"],
        ["coordinator", "--listen", "127.0.0.1:0", "--log", "segments:{disk}/log"],
        ["demo", "--tables", "{disk}/tables"],
        ["alerts", "--rules", "{rules}", "--tables", "{tables}", "--state", "{disk}/alerts", "--once"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_other_commands(arguments: Sequence[str], disk: SmallDisk, tables: Path, tmp_path: Path) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text(RULES)
    disk.fill()
    names = {"disk": disk.folder, "tables": tables / "tables", "rules": rules}
    expect_one_line(command(*(each.format(**names) for each in arguments)), disk.folder)


def test_the_cache(disk: SmallDisk, tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROUPLAKE_CACHE", str(disk.folder / "cache"))
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    disk.fill()
    done = command("cache", "--clear")
    assert (done.returncode, done.stderr) == (0, "")
    assert os.access(tables, os.R_OK)
