"""`grouplake start`: the checks first, then the job with its page."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from eventually import eventually
from log_builder import Log
from patience import LIMIT_SECONDS, PATIENCE_SECONDS
from segment_builder import LogBuilder

from pipelines.cli import main
from pipelines.cli.commands.start import default_tables
from pipelines.source.address import parse_address


def test_a_problem_is_told_before_anything_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, tables = f"segments:{tmp_path / 'nowhere'}", tmp_path / "tables"
    assert main(["start", "--source", source, "--tables", str(tables)]) == 1
    printed = capsys.readouterr()
    first, *lines, last = printed.err.splitlines()
    assert first == f"running the checks of doctor: {source}"
    assert any(line.startswith("  problem") and "nowhere" in line for line in lines)
    assert "dashboard" not in printed.err
    assert re.fullmatch(r"nothing was started: 1 problem, \d+ warnings?, \d+ ok", last)
    assert not tables.exists()


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("kafka://broker1.example.com:9092,broker2:9092", "broker1-example-com-9092"),
        ("kafka-groups://[::1]:9092", "1-9092"),
        ("segments:/var/lib/kafka/data", "data"),
        ("jsonl:dumps/east 1.jsonl", "east-1-jsonl"),
    ],
)
def test_default_tables(source: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", "/home/ops/data")
    assert default_tables(parse_address(source)) == f"/home/ops/data/grouplake/{name}"
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setenv("HOME", "/home/ops")
    assert default_tables(parse_address(source)) == f"/home/ops/.local/share/grouplake/{name}"


@pytest.mark.slow
@pytest.mark.spark
def test_from_a_log_to_its_page(tmp_path: Path) -> None:
    folder = tmp_path / "east"
    record = Log().commit(0, 1, group="billing", topic="orders")
    assert record.key is not None
    LogBuilder(folder).append(0, [(record.key, record.value)])
    arguments = ["start", "--source", f"segments:{folder}", "--dashboard", "127.0.0.1:0"]
    with subprocess.Popen(
        [str(Path(sys.executable).with_name("grouplake")), *arguments],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "XDG_DATA_HOME": str(tmp_path)},
    ) as process:
        assert process.stderr is not None
        lines = iter(process.stderr)
        running = next(line for line in lines if line.startswith("running grouplake run "))
        assert f"--tables {tmp_path}/grouplake/east --trigger 10s" in running
        url = next(line for line in lines if line.startswith("dashboard: ")).split()[1]
        assert httpx.get(url, timeout=PATIENCE_SECONDS, follow_redirects=True).status_code == 503
        eventually(
            "the page has the group",
            lambda: httpx.get(f"{url}c/east/groups.json", timeout=PATIENCE_SECONDS).text,
            lambda text: "billing" in text,
            patience_seconds=LIMIT_SECONDS,
        )
        process.send_signal(signal.SIGTERM)
        list(lines)
    assert process.returncode == 0
