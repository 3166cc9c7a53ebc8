"""`grouplake check` finds what is wrong in the tables of samples."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from status_story import Story

from pipelines.query.check import SAMPLE_RULES, check
from pipelines.runtime.phases import Phases
from pipelines.tables import definitions
from pipelines.tables.delta_writes import stamped
from pipelines.tables.store import TableStore
from pipelines.tables.writer import TablesWriter

#: The story has no share group.
SHARE_OFFSET = {
    "group_id": "queue",
    "topic": "orders",
    "partition": 0,
    "answered_at": datetime(2026, 3, 1, tzinfo=UTC),
    "batch_id": 1,
}
#: Rule → table and the change of one of its rows that breaks the rule.
BREACHES: dict[str, tuple[str, dict[str, Any]]] = {
    "lag: one row per group_id, topic, partition": ("lag", {}),
    "end_offsets: one row per topic, partition, answered_at": ("end_offsets", {}),
    "lag_history: one row per group_id, topic, sampled_at": ("lag_history", {}),
    "group_status: one row per group_id": ("group_status", {}),
    "partition_status: one row per group_id, topic, partition": ("partition_status", {}),
    "share_offsets: one row per group_id, topic, partition": ("share_offsets", {}),
    **{
        f"{name}: no row of a batch that is not complete": (name, {"batch_id": 99})
        for name in ("lag", "end_offsets", "lag_history", "group_status", "partition_status", "share_offsets")
    },
    "partition_status: every row has its group in group_status": ("partition_status", {"group_id": "unknown"}),
    "group_status: the first finding decides": ("group_status", {"group_id": "other", "rule": "skew"}),
    "lag_history: partitions behind have all of the lag": ("lag_history", {"topic": "other", "lag": 1_000_000}),
}


def test_every_rule_has_a_breach() -> None:
    assert BREACHES.keys() == SAMPLE_RULES.keys()


@pytest.mark.parametrize("rule", BREACHES)
def test_a_breach_is_found(rule: str, tmp_path: Path) -> None:
    story = Story(str(tmp_path)).end(9, start=7)
    story.commit(5).sample()
    assert check(story.root) == []
    name, change = BREACHES[rule]
    store = TableStore(story.root)
    writer = TablesWriter.claim(store)
    assert writer.last is not None
    writer.begin()
    stored = store.table(name).to_pyarrow_table().to_pylist()[:1]
    first = stored or [SHARE_OFFSET]
    extra = pa.Table.from_pylist([*([] if stored else first), {**first[0], **change}], definitions.table(name).schema)
    writer.commit(name, lambda table, stamp: _append(table, extra, stamp))
    last = writer.last
    writer.finish(
        Phases(story.clock()), story.clock(), era=last.era, retention_ms=last.retention_ms, next_offsets=last.next_offsets
    )
    assert rule in {finding.rule for finding in check(story.root)}


def _append(table: Any, rows: pa.Table, stamp: str) -> bool:
    write_deltalake(table, rows, mode="append", commit_properties=stamped(stamp))
    return True
