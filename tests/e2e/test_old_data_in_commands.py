"""Commands on tables whose job has stopped: they say so once the data is older than its interval lets one expect."""

import json
import socket
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from aged_tables import stopped_group

import grouplake
from pipelines.cli import main
from pipelines.tables.writer_lock import FILE

Captured = pytest.CaptureFixture[str]
UNKNOWN_CAUSE = "the job has stopped, reaches no broker, or is in a long batch (a batch was expected every 30 s)"


def ago(minutes: float) -> datetime:
    return datetime.now(UTC) - timedelta(minutes=minutes)


def clock_of(at: datetime) -> str:
    """A past time as messages have it."""
    return f"{at:%H:%M} UTC" if at.date() == datetime.now(UTC).date() else f"{at:%Y-%m-%d %H:%M} UTC"


def run(capsys: Captured, *arguments: str) -> tuple[str, str]:
    assert main(list(arguments)) == 0
    out, err = capsys.readouterr()
    return out, err


@pytest.mark.parametrize("more", [[], ["--members"], ["--state"]])
def test_lag_says_how_old_the_data_is(tmp_path: Path, capsys: Captured, more: list[str]) -> None:
    at = ago(6.5)
    stopped_group(tmp_path, at)
    _, err = run(capsys, "lag", "--all-groups", *more, "--tables", str(tmp_path))
    assert err.splitlines()[0] == f"data of {clock_of(at)}, 6 min old: {UNKNOWN_CAUSE}"


@pytest.mark.parametrize(("minutes", "interval"), [(0.2, 30), (16, 900), (6, None)])
def test_expected_ages_are_not_mentioned(tmp_path: Path, capsys: Captured, minutes: float, interval: int | None) -> None:
    stopped_group(tmp_path, ago(minutes), interval)
    out, err = run(capsys, "lag", "--all-groups", "--status", "--tables", str(tmp_path))
    assert "old" not in err
    assert out.split()[-2:] == ["OK", "-"]
    assert "STOP" in out
    assert run(capsys, "sql", "SELECT 1 AS one", "--tables", str(tmp_path))[1] == ""


def test_statuses_are_unknown_once_the_data_is_old(tmp_path: Path, capsys: Captured) -> None:
    at = ago(6.5)
    stopped_group(tmp_path, at)
    arguments = ["lag", "--all-groups", "--status", "--tables", str(tmp_path)]
    out, err = run(capsys, *arguments)
    assert "STOP" not in out
    assert [line.split()[-2:] for line in out.splitlines() if "orders" in line] == [["UNKNOWN", "unknown"]] * 2
    assert UNKNOWN_CAUSE in err
    rows = [json.loads(line) for line in run(capsys, *arguments, "--format", "json")[0].splitlines()]
    assert {(row["status"], row["rule"], row["old"]) for row in rows} == {
        ("UNKNOWN", "unknown", f"since {clock_of(at)}: {UNKNOWN_CAUSE}")
    }
    assert [row["lag"] for row in rows] == [40, 0]


def test_json_of_fresh_data_has_no_reason(tmp_path: Path, capsys: Captured) -> None:
    stopped_group(tmp_path, ago(0.1))
    out, _ = run(capsys, "lag", "--all-groups", "--tables", str(tmp_path), "--format", "json")
    assert [json.loads(line)["old"] for line in out.splitlines()] == [None, None]


def test_a_past_time_is_not_old(tmp_path: Path, capsys: Captured) -> None:
    stopped_group(tmp_path, ago(6))
    out, err = run(capsys, "lag", "--all-groups", "--status", "--as-of", "0", "--tables", str(tmp_path))
    assert "STOP" in out
    assert "old" not in err
    assert run(capsys, "sql", "SELECT 1 AS one", "--as-of", "0", "--tables", str(tmp_path))[1] == ""


def test_the_sample_has_an_age_of_its_own(tmp_path: Path, capsys: Captured) -> None:
    sampled_at = ago(5.2)
    stopped_group(tmp_path, ago(0.1), sampled_at=sampled_at)
    out, err = run(capsys, "lag", "--all-groups", "--status", "--tables", str(tmp_path))
    reason = "no sample of log ends succeeds, or the job has stopped (one was expected every 30 s)"
    assert err.splitlines()[0] == f"log ends of {clock_of(sampled_at)}, 5 min old: {reason}"
    assert "STOP" not in out


def test_sql_says_it_in_one_line(tmp_path: Path, capsys: Captured) -> None:
    at = ago(6.5)
    stopped_group(tmp_path / "east", at)
    stopped_group(tmp_path / "west", ago(0.1))
    (tmp_path / "east" / FILE).write_text(f"grouplake run\npid 999999999 on {socket.gethostname()} since then\n")
    line = f"data of {clock_of(at)}, 6 min old: the job has stopped (a batch was expected every 30 s)\n"
    out, err = run(capsys, "sql", "SELECT count(*) AS n FROM lag", "--tables", str(tmp_path / "east"), "--format", "json")
    assert (out, err) == ('{"n": 2}\n', line)
    both = ["--tables", str(tmp_path / "east"), "--tables", str(tmp_path / "west")]
    assert run(capsys, "sql", "SELECT count(*) AS n FROM lag", *both)[1] == f"east: {line}"
    result = str(tmp_path / "rows.json")
    assert run(capsys, "sql", "SELECT 1 AS one", "--output", result, "--tables", str(tmp_path / "east"))[1] == line


def test_python_has_the_age(tmp_path: Path) -> None:
    at = ago(6.5)
    stopped_group(tmp_path, at)
    tables = grouplake.open(tmp_path)
    assert tables.is_old
    assert timedelta(minutes=6) < tables.age < timedelta(minutes=8)
    assert tables.old_reason == f"since {clock_of(at)}: {UNKNOWN_CAUSE}"
    assert not grouplake.open(tmp_path, as_of=0).is_old
    stopped_group(tmp_path, ago(0.1))
    fresh = grouplake.open(tmp_path)
    assert (fresh.is_old, fresh.old_reason) == (False, None)
