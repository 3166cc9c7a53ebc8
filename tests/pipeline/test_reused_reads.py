"""What a sample does not read again: results of tables without changes, and changes of offsets before the last sample."""

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from status_story import Story

from pipelines.lag.sampling.added_changes import AddedChanges
from pipelines.lag.tables.offset_changes import MAY_BE_JUMP, OFFSET_CHANGES, offset_changes, possible_jumps
from pipelines.query.engine import Snapshot
from pipelines.query.kept_rows import KeptRows
from pipelines.tables.damage import DamagedTables
from pipelines.tables.store import TableStore

_COUNTS = "SELECT group_id, count(*) AS offsets FROM committed_offsets GROUP BY group_id ORDER BY group_id"
_GROUPS = "SELECT group_id, group_type FROM groups ORDER BY group_id"
_ORDER = [("batch_id", "ascending"), ("log_offset", "ascending")]


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story(str(tmp_path)).at(0).commit(5).batch()


def snapshot(kept: KeptRows, story: Story) -> Snapshot:
    return kept.snapshot(Snapshot.open(story.root).batch)


def expect_as_query(changes: pa.Table, story: Story, condition: str) -> None:
    """The rows are those that a query selects."""
    selected = Snapshot.open(story.root).query(f"SELECT * FROM ({OFFSET_CHANGES}) h WHERE {condition}")
    found = changes.select(selected.column_names)
    assert found.sort_by(_ORDER).to_pylist() == selected.sort_by(_ORDER).to_pylist()


def test_results_are_kept_while_their_tables_do_not_change(story: Story) -> None:
    kept = KeptRows(TableStore(story.root))
    first = snapshot(kept, story)
    groups, counts = first.query(_GROUPS), first.query(_COUNTS)
    story.at(1).commit(6, 1).batch()
    second = snapshot(kept, story)
    assert second.query(_GROUPS) is groups
    # the view reads a table that has changed
    assert (counts["offsets"].to_pylist(), second.query(_COUNTS)["offsets"].to_pylist()) == ([1], [2])
    story.at(2).commit(1, group="audit").batch()
    assert snapshot(kept, story).query(_GROUPS)["group_id"].to_pylist() == ["audit", "billing"]


def test_results_that_a_batch_did_not_need_are_forgotten(story: Story) -> None:
    kept = KeptRows(TableStore(story.root))
    groups = snapshot(kept, story).query(_GROUPS)
    for seconds in (1, 2):
        snapshot(kept, story.at(seconds).commit(6 + seconds).batch())
    again = snapshot(kept, story).query(_GROUPS)
    assert again is not groups
    assert again.equals(groups)


def test_added_changes_are_those_of_a_query(story: Story) -> None:
    added = AddedChanges()
    added.refresh(Snapshot.open(story.root))
    story.at(1).commit(9).commit(2).commit(7, 1).batch().at(2).commit(3, group="audit").batch()
    newest = Snapshot.open(story.root)
    added.refresh(newest)
    for after, rows in {-1: 4, 0: 3, 1: 1, 2: 0}.items():
        found = added.after(newest, after)
        assert found.num_rows == rows
        expect_as_query(found, story, f"batch_id > {after}")


def test_a_compaction_adds_no_change(story: Story) -> None:
    added = AddedChanges()
    for seconds in (1, 2):
        story.at(seconds).commit(5 + seconds).batch()
        added.refresh(Snapshot.open(story.root))
    DeltaTable(f"{story.root}/offset_history").optimize.compact()
    story.at(3).commit(20).batch()
    newest = Snapshot.open(story.root)
    added.refresh(newest)
    assert len(newest.files("offset_history")) == 2
    assert added.after(newest, 2)["committed_offset"].to_pylist() == [20]


def test_a_damaged_file_is_named(story: Story) -> None:
    added = AddedChanges()
    added.refresh(Snapshot.open(story.root))
    before = Snapshot.open(story.root).files("offset_history")
    newest = Snapshot.open(story.at(1).commit(9).batch().root)
    (new,) = newest.files("offset_history") - before
    Path(story.root, "offset_history", new).write_bytes(b"PAR1")
    added.refresh(newest)
    with pytest.raises(DamagedTables, match=new):
        added.after(newest, 0)


def test_possible_jumps_are_those_of_a_query(story: Story) -> None:
    story.log.commit(2, 40, leader_epoch=-1)
    story.at(1).commit(9).commit(2).commit(8, 1).batch()
    # as Kafka's tools commit, once with the same offset
    story.log.commit(0, 12, group="billing", topic="orders")
    story.log.commit(1, 8, group="billing", topic="orders")
    story.at(2).batch()
    story.log.offset_tombstone(1, group="billing", topic="orders")
    story.at(3).batch()
    history = Snapshot.open(story.root).query("SELECT * FROM offset_history")
    found = possible_jumps(offset_changes(history))
    assert sorted(found["change"].to_pylist()) == ["commit", "rewind"]
    expect_as_query(found, story, MAY_BE_JUMP)
