"""Groups that changed between two snapshots: the same as a comparison row by row."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from lag_tables import SAMPLED_AT

from pipelines.dashboard.live.changed_groups import changed_groups
from pipelines.query.snapshots.grouped_table import GroupedTable
from pipelines.query.snapshots.memory_snapshot import MemorySnapshot
from pipelines.tables import definitions
from pipelines.tables.store import Batch

BATCH = Batch(7, SAMPLED_AT, SAMPLED_AT, 1, "4", 1, 0, 0, {}, {}, {})
GROUPS = st.sampled_from(["a", "b", "c"])
NUMBERS = st.none() | st.integers(0, 3)

#: Group and partition → committed offset, log end, age.
positions = st.dictionaries(st.tuples(GROUPS, st.integers(0, 1)), st.tuples(NUMBERS, NUMBERS, st.none() | st.floats(0, 9)))
#: Group → status and rule.
statuses = st.dictionaries(GROUPS, st.tuples(st.sampled_from(["OK", "WARN"]), st.none() | st.just("burrow_1")))
#: Group → batch of its record.
records = st.dictionaries(GROUPS, st.integers(6, 8))
States = tuple[Mapping[Any, Any], Mapping[Any, Any], Mapping[Any, Any]]
states = st.tuples(positions, statuses, records)


def grouped(name: str, rows: list[dict[str, Any]], *key: str) -> GroupedTable:
    schema = pa.schema([field.with_nullable(True) for field in definitions.table(name).schema])
    return GroupedTable(pa.Table.from_pylist(rows, schema), *key)


def snapshot(state: States, batch_id: int) -> MemorySnapshot:
    lag, status, groups = state
    return MemorySnapshot(
        "east",
        replace(BATCH, batch_id=batch_id),
        (),
        grouped("lag", [fields(key, row) for key, row in lag.items()], "topic", "partition"),
        grouped("groups", [{"group_id": group, "batch_id": min(at, batch_id)} for group, at in groups.items()]),
        grouped("members", []),
        0,
        None,
        grouped("group_status", [{"group_id": g, "status": s, "rule": r, "detail": ""} for g, (s, r) in status.items()]),
    )


def fields(key: tuple[str, int], row: tuple[Any, Any, Any]) -> dict[str, Any]:
    group, partition = key
    offset, end, age = row
    lag = None if offset is None or end is None else end - offset
    return {
        "group_id": group,
        "topic": "orders",
        "partition": partition,
        "group_offset": offset,
        "latest_offset": end,
        "lag": lag,
        "lag_seconds": None if age is None else round(age, 3),
    }


def expected(old: States, new: States) -> set[str]:
    def lag_of(state: States, group: str) -> dict[Any, Any]:
        return {key: fields(key, row) for key, row in state[0].items() if key[0] == group}

    changed = {group for group in "abc" if lag_of(old, group) != lag_of(new, group)}
    changed |= {group for group, status in new[1].items() if old[1].get(group) != status}
    changed |= {group for group, at in new[2].items() if at > BATCH.batch_id}
    return changed | (old[2].keys() ^ new[2].keys())


@given(states, states)
def test_the_same_as_row_by_row(old: States, new: States) -> None:
    assert changed_groups(snapshot(old, 7), snapshot(new, 8)) == expected(old, new)
