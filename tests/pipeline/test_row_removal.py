"""Age limits and thinning remove rows and add none: what their commits declare, and which files they replace."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, write_deltalake
from log_builder import NOW_MS, Log
from table_logs import applied

from coordinator_core.state.era import Era
from pipelines.runtime.errors import TablesError
from pipelines.runtime.timestamps import TIMESTAMP
from pipelines.tables import definitions
from pipelines.tables.row_removal import keep_rows, remove_rows
from pipelines.tables.store import TableStore
from pipelines.tables.writer import CommitConflict
from pipelines.upkeep.maintain import Maintenance, maintain

START = datetime(2026, 3, 1, tzinfo=UTC)
FILE_BYTES = 16 << 20


def changes(*hours: int | None) -> pa.Table:
    """Rows of offset_history, recorded some hours after the start."""
    schema = definitions.table("offset_history").schema
    row = {"group_id": "g", "topic": "t", "partition": 0, "change": "commit", "commits": 1, "log_partition": 0, "batch_id": 0}
    times = [None if each is None else START + timedelta(hours=each) for each in hours]
    return pa.Table.from_pylist([{**row, "log_offset": n, "record_timestamp": at} for n, at in enumerate(times)], schema)


@pytest.fixture
def history(tmp_path: Path) -> DeltaTable:
    """Four files: of old rows, of old and new rows and one without a time, of new rows, without times."""
    definition = definitions.table("offset_history")
    table = DeltaTable.create(str(tmp_path / "offset_history"), schema=definition.schema, configuration=definition.properties)
    for hours in ((0, 1), (2, None, 9, 3), (8, 9), (None,)):
        write_deltalake(table, changes(*hours), mode="append")
    table.update_incremental()
    return table


def older(hours: int) -> pc.Expression:
    return pc.field("record_timestamp") < pa.scalar(START + timedelta(hours=hours), TIMESTAMP)


def hours_of(table: DeltaTable) -> list[int | None]:
    times = table.to_pyarrow_table()["record_timestamp"].to_pylist()
    found = [None if at is None else int((at - START).total_seconds() // 3600) for at in times]
    return sorted(found, key=lambda each: -1 if each is None else each)


def actions(table: DeltaTable, version: int) -> dict[str, list[dict[str, Any]]]:
    entry = Path(table.table_uri.removeprefix("file://")) / "_delta_log" / f"{version:020}.json"
    found: dict[str, list[dict[str, Any]]] = {"add": [], "remove": [], "commitInfo": []}
    for line in entry.read_text().splitlines():
        for name, action in json.loads(line).items():
            found[name].append(action)
    return found


def test_only_files_with_old_rows_are_replaced(history: DeltaTable) -> None:
    before = set(history.file_uris())
    assert remove_rows(history, "offset_history", older(5), "stamp", FILE_BYTES)
    assert hours_of(history) == [None, None, 8, 9, 9]
    made = actions(history, history.version())
    assert [each["dataChange"] for each in made["remove"]] == [True, True]
    assert [each["dataChange"] for each in made["add"]] == [False]
    assert (made["commitInfo"][0]["operation"], made["commitInfo"][0]["userMetadata"]) == ("DELETE", "stamp")
    assert len(before & set(history.file_uris())) == 2
    assert not remove_rows(history, "offset_history", older(5), "stamp", FILE_BYTES)


def test_whole_files_are_removed_without_a_new_one(history: DeltaTable) -> None:
    assert remove_rows(history, "offset_history", older(2), "stamp", FILE_BYTES)
    assert (len(history.file_uris()), actions(history, history.version())["add"]) == (3, [])


def test_an_old_version_removes_nothing(history: DeltaTable) -> None:
    write_deltalake(history.table_uri, changes(7), mode="append")
    with pytest.raises(CommitConflict):
        remove_rows(history, "offset_history", older(5), "stamp", FILE_BYTES)
    assert len(hours_of(DeltaTable(history.table_uri))) == 10


def test_a_missing_file_is_named(history: DeltaTable) -> None:
    for uri in history.file_uris():
        Path(uri.removeprefix("file://")).unlink()
    with pytest.raises(TablesError, match="offset_history"):
        remove_rows(history, "offset_history", older(5), "stamp", FILE_BYTES)


def test_statistics_are_those_of_the_rows(tmp_path: Path) -> None:
    """Of texts, numbers and times, over several row groups and files, as delta-rs writes them."""
    definition = definitions.table("end_offsets")
    table = DeltaTable.create(str(tmp_path / "end_offsets"), schema=definition.schema, configuration=definition.properties)
    at = pa.array([START + timedelta(microseconds=1_500 * n) for n in range(250_000)], TIMESTAMP)
    number = pa.array(range(250_000))
    columns = {"topic": pc.divide(number, 1000).cast(pa.string()), "partition": number.cast(pa.int32())}
    columns |= {"answered_at": at, "asked_at": at, "batch_id": number}
    rows = pa.table(
        {name: columns.get(name, pa.nulls(250_000, definition.schema.field(name).type)) for name in definition.schema.names},
        definition.schema,
    )
    write_deltalake(table, rows, mode="append")
    table.update_incremental()
    names = [f"{kind}.{name}" for kind in ("min", "max", "null_count") for name in definition.schema.names[:3]]
    expected = pa.table(table.get_add_actions(flatten=True)).select(["num_records", *names]).to_pylist()
    keep_rows(table, "end_offsets", rows.to_batches(), "stamp", 1 << 30)
    assert pa.table(table.get_add_actions(flatten=True)).select(["num_records", *names]).to_pylist() == expected
    keep_rows(table, "end_offsets", rows.to_batches(), "stamp", 1)
    assert sorted(pa.table(table.get_add_actions())["num_records"].to_pylist()) == [50_000, 100_000, 100_000]
    assert table.to_pyarrow_table().sort_by("batch_id").equals(rows)


def test_a_change_data_feed_has_the_removed_rows(tmp_path: Path) -> None:
    log = Log(partition=3)
    log.commit(0, 5)
    applied(log, Era.named("4"), [], str(tmp_path))
    path = f"{tmp_path}/offset_history"
    DeltaTable(path).alter.set_table_properties({"delta.enableChangeDataFeed": "true"})
    start = DeltaTable(path).version()
    logged_at = datetime.fromtimestamp(NOW_MS / 1000, UTC)
    maintain(str(tmp_path), Maintenance(30, 168, 16), logged_at + timedelta(days=31), lambda _line: None)
    table = TableStore(str(tmp_path)).table("offset_history")
    feed = pa.table(table.load_cdf(starting_version=start + 1).read_all())
    assert [(row["_change_type"], row["committed_offset"]) for row in feed.to_pylist()] == [("delete", 5)]
