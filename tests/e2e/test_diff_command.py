"""`grouplake diff`: changes between two batches, from files or from histories."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from log_builder import NOW_MS, Log, member
from table_logs import applied

from coordinator_core.state.era import Era
from pipelines.cli import main
from pipelines.upkeep.maintain import Maintenance, maintain

Captured = pytest.CaptureFixture[str]
ERA = Era.named("4")


def logged_at() -> datetime:
    """The time of the records."""
    return datetime.fromtimestamp(NOW_MS / 1000, UTC)


def written(root: str, *, again: bool = False, clock: Callable[[], datetime] = logged_at) -> str:
    """Tables after four batches: the first has two groups with offsets, and each other one changes something.

    By default the job followed the log when the groups were made.
    """
    log = Log(partition=3)
    log.commit(0, 5, group="billing", topic="orders")
    log.commit(1, 50, group="billing", topic="orders")
    log.group([member("m1")], group="billing", generation=1)
    log.commit(0, 7, group="old", topic="clicks", version=1)
    cuts = [log.end]
    log.group([member("m1"), member("m2")], group="billing", generation=2)
    log.commit(0, 9, group="billing", topic="orders")
    log.commit(1, 60, group="billing", topic="orders")
    log.commit(2, 1, group="billing", topic="orders")
    cuts.append(log.end)
    log.group([], group="billing", generation=3)
    log.commit(1, 20, group="billing", topic="orders")
    log.commit(0, 1, group="new", topic="clicks")
    cuts.append(log.end)
    log.offset_tombstone(0, group="old", topic="clicks")
    log.group_tombstone("old")
    applied(log, ERA, cuts, root, again=again, clock=clock)
    return root


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> str:
    return written(str(tmp_path_factory.mktemp("tables")))


def printed(capsys: Captured, root: str, *arguments: str) -> str:
    assert main(["diff", "--tables", root, *arguments]) == 0
    return capsys.readouterr().out


def rows(capsys: Captured, root: str, *arguments: str) -> list[tuple[Any, ...]]:
    lines = printed(capsys, root, *arguments, "--format", "json").splitlines()
    return [tuple(json.loads(line).values()) for line in lines]


EVERYTHING: list[tuple[Any, ...]] = [
    ("billing", "state", None, None, "Stable", "Empty", None),
    ("billing", "rebalanced", None, None, "1", "3", "1 → 0 members"),
    ("billing", "member_left", None, None, "m1", None, "client"),
    ("billing", "reset", "orders", 1, "60", "20", "-40, by admin at 2023-11-14T22:13:20.000Z"),
    ("billing", "rewind", "orders", 1, "50", "20", "-30"),
    ("billing", "committed", "orders", 2, None, "1", None),
    ("billing", "progress", "orders", 0, "5", "9", "+4"),
    ("new", "appeared", None, None, None, "Empty", "0 members"),
    ("new", "committed", "clicks", 0, None, "1", None),
    ("old", "vanished", None, None, "Empty", None, "0 members"),
    ("old", "removed", "clicks", 0, "7", None, None),
]


def test_every_kind_of_change(root: str, capsys: Captured) -> None:
    assert rows(capsys, root, "--from", "0") == EVERYTHING
    assert rows(capsys, root, "--from", "0", "--to", "1") == [
        ("billing", "rebalanced", None, None, "1", "2", "1 → 2 members"),
        ("billing", "member_joined", None, None, None, "m2", "client"),
        ("billing", "committed", "orders", 2, None, "1", None),
        ("billing", "progress", "orders", 0, "5", "9", "+4"),
        ("billing", "progress", "orders", 1, "50", "60", "+10"),
    ]
    assert rows(capsys, root, "--from", "0", "--group", "old", "--group", "new") == EVERYTHING[-4:]


def test_groups_that_the_log_had_before_the_job_did_not_appear(tmp_path: Path, capsys: Captured) -> None:
    """A job that starts on a log with groups, and reads it in several batches."""
    log = Log(partition=3)
    for number in range(21):
        log.commit(0, 5, group=f"group-{number}", topic="orders")
    applied(log, ERA, [1], str(tmp_path), again=False)
    changes = {change for _, change, *_ in rows(capsys, str(tmp_path), "--from", "0")}
    assert changes == {"first_read", "committed"}
    assert printed(capsys, str(tmp_path), "--from", "0").splitlines()[-1] == "20 groups changed: 20 first read"


@pytest.mark.parametrize(("batches", "groups"), [(1, ("billing",)), (2, ("billing", "simple"))])
def test_a_group_that_was_deleted_and_created_again_made_no_progress(
    batches: int, groups: tuple[str, ...], tmp_path: Path, capsys: Captured
) -> None:
    log = Log(partition=3)
    log.group([member("m1")], group="billing")
    for group in groups:
        log.commit(0, 100, group=group, topic="orders")
    cuts = [log.end]
    for group in groups:
        log.offset_tombstone(0, group=group, topic="orders")
        log.group_tombstone(group)
    if batches == 2:
        cuts.append(log.end)
    log.group([member("m1")], group="billing")
    for group in groups:
        log.commit(0, 369_928, group=group, topic="orders")
    applied(log, ERA, cuts, str(tmp_path), again=False, clock=logged_at)
    found = rows(capsys, str(tmp_path), "--from", "0")
    assert not [row for row in found if row[1] in ("progress", "reset", "rewind")]
    assert [row[1] for row in found if row[0] == "billing"] == ["vanished", "appeared", "removed", "committed"]
    for group in groups:
        assert [row[1:] for row in found if row[0] == group][-2:] == [
            ("removed", "orders", 0, "100", None, None),
            ("committed", "orders", 0, None, "369928", None),
        ]


def test_the_table_adds_up_the_progress_of_a_topic(root: str, capsys: Captured) -> None:
    first, *lines = printed(capsys, root, "--from", "0", "--to", "1").splitlines()
    assert first.startswith("from batch 0 (20")
    assert " to batch 1 (20" in first
    (progress,) = (line for line in lines if line.split()[1:2] == ["progress"])
    assert progress.split() == ["billing", "progress", "orders", "2", "partitions,", "+14"]
    assert lines[-1] == "1 group changed: 1 rebalanced, 1 made progress"
    assert printed(capsys, root, "--from", "0").splitlines()[-1] == (
        "3 groups changed: 1 appeared, 1 vanished, 1 changed state, 1 rebalanced, 1 were reset, 1 went back, 1 made progress"
    )
    assert printed(capsys, root, "--from", "2", "--to", "2").splitlines()[1:] == ["", "no changes"]


def test_histories_stand_in_for_removed_files(tmp_path: Path, capsys: Captured) -> None:
    tables = written(str(tmp_path), clock=lambda: datetime.now(UTC))
    expected = {batch: rows(capsys, tables, "--from", batch) for batch in ("0", "1", "2")}
    maintain(tables, Maintenance(90, 0, 16), logged_at() + timedelta(days=1), lambda _line: None)
    assert main(["sql", "--tables", tables, "--as-of", "0", "SELECT * FROM offsets"]) == 2
    assert "can no longer be read" in capsys.readouterr().err
    assert {batch: rows(capsys, tables, "--from", batch) for batch in expected} == expected
    maintain(tables, Maintenance(90, 0, 16), logged_at() + timedelta(days=91), lambda _line: None)
    assert main(["diff", "--tables", tables, "--from", "0"]) == 2
    assert "batch 0 can no longer be compared: `grouplake maintain` has removed its files" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--from", "2020-01-01"], "--from 2020-01-01 is before the first batch under "),
        (["--from", "2999-01-01"], "--from 2999-01-01T00:00:00+00:00 is in the future: use a time until now, 20"),
        (["--from", "0", "--to", "2999-01-01"], "--to 2999-01-01T00:00:00+00:00 is in the future"),
        (["--from", "2020-01-01T00:00:00+01:00"], ": batch 0 was complete at 20"),
        (["--from", "noon"], "invalid --from 'noon': use a batch id or an ISO 8601 time"),
        (["--from", "0", "--to", "1", "--group", "gone"], "no group 'gone' in either batch"),
        (["--from", "2", "--to", "1"], "--from is batch 2, after batch 1 of --to: exchange them"),
        (["--from", "0", "--to", "99"], "no batch as of 99 under "),
    ],
)
def test_bad_usage(arguments: list[str], message: str, root: str, capsys: Captured) -> None:
    assert main(["diff", "--tables", root, *arguments]) == 2
    assert message in capsys.readouterr().err


def test_times_select_batches(root: str, capsys: Captured) -> None:
    assert rows(capsys, root, "--from", datetime.now(UTC).isoformat()) == []
