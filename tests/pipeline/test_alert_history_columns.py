"""Tables of alerts of an earlier version get the columns that this one adds."""

from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from sampled_topics import START_MS

from pipelines.alerts.alert_store import AlertStore
from pipelines.runtime.timestamps import at_ms
from pipelines.tables import definitions
from pipelines.tables.store import TableStore


def test_rows_of_an_earlier_version_have_neither_summary_nor_unit(tmp_path: Path) -> None:
    root = str(tmp_path)
    AlertStore(root)
    path = TableStore(root).path("alert_history")
    schema = pa.schema([field for field in definitions.table("alert_history").schema if field.name not in ("summary", "unit")])
    old = pa.Table.from_pylist([{"at": at_ms(START_MS), "change": "firing", "rule": "Behind", "labels": []}], schema)
    write_deltalake(path, old, mode="overwrite", schema_mode="overwrite")
    assert "summary" not in DeltaTable(path).to_pyarrow_table().column_names
    AlertStore(root)
    rows = DeltaTable(path).to_pyarrow_table().select(["rule", "summary", "unit"]).to_pylist()
    assert rows == [{"rule": "Behind", "summary": None, "unit": None}]
