"""One event for all batches that a reader has missed."""

from dataclasses import replace

import pyarrow as pa
from lag_tables import SAMPLED_AT

from pipelines.dashboard.live.batch_events import MAX_GROUPS, BatchEvent, BatchEvents
from pipelines.query.snapshots.grouped_table import GroupedTable
from pipelines.query.snapshots.memory_snapshot import MemorySnapshot
from pipelines.tables.store import Batch

BATCH = Batch(0, SAMPLED_AT, SAMPLED_AT, 1, "4", 1, 0, 0, {}, {}, {})
EMPTY = GroupedTable(pa.table({"group_id": pa.array([], pa.string()), "sampled_at": pa.array([], pa.timestamp("us", "UTC"))}))


def snapshot(batch_id: int) -> MemorySnapshot:
    return MemorySnapshot("east", replace(BATCH, batch_id=batch_id), (), EMPTY, EMPTY, EMPTY, 0, None)


def events(*batches: int, groups: int = 1) -> BatchEvents:
    """Events of batches, each with groups of its own."""
    made = BatchEvents(lambda _, new: frozenset(f"g{new.batch.batch_id}-{number}" for number in range(groups)))
    for batch in batches:
        made.add(snapshot(batch))
    return made


def test_nothing_before_the_first_batch() -> None:
    assert (events().newest, events().since(None), events().since(3)) == (None, None, None)


def test_the_first_batch_changes_everything() -> None:
    assert events(4).since(None) == BatchEvent(None, 4, SAMPLED_AT, None)
    assert events(4).since(3) == BatchEvent(3, 4, SAMPLED_AT, None)
    assert events(4).since(4) is None


def test_missed_batches_are_one_event_with_the_groups_of_all() -> None:
    made = events(4, 5, 8)
    assert made.since(4) == BatchEvent(4, 8, SAMPLED_AT, frozenset({"g5-0", "g8-0"}))
    assert made.since(5) == BatchEvent(5, 8, SAMPLED_AT, frozenset({"g8-0"}))
    # a batch between two that were loaded: its changes are in the next event
    assert made.since(6) == BatchEvent(6, 8, SAMPLED_AT, frozenset({"g8-0"}))
    assert made.since(3) == BatchEvent(3, 8, SAMPLED_AT, None)


def test_the_same_batch_is_no_event() -> None:
    made = events(4)
    assert made.add(snapshot(4)) is False
    assert made.add(snapshot(5)) is True


def test_many_groups_are_not_listed() -> None:
    found = events(4, 5, groups=MAX_GROUPS).since(4)
    assert found is not None
    assert found.groups is not None
    assert events(4, 5, groups=MAX_GROUPS + 1).since(4) == BatchEvent(4, 5, SAMPLED_AT, None)
    assert events(4, 5, 6, groups=MAX_GROUPS).since(4) == BatchEvent(4, 6, SAMPLED_AT, None)


def test_batches_that_were_too_long_ago() -> None:
    made = events(*range(200))
    assert made.since(1) == BatchEvent(1, 199, SAMPLED_AT, None)
    recent = made.since(190)
    assert recent is not None
    assert recent.groups == frozenset(f"g{number}-0" for number in range(191, 200))


def test_a_folder_that_begins_again() -> None:
    made = events(7, 8, 0)
    assert (made.newest, made.since(8)) == (0, BatchEvent(8, 0, SAMPLED_AT, None))
