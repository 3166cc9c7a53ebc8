"""Tables that tests copy (`created_tables.py`) are those that the store creates."""

from pathlib import Path
from typing import Any

from created_tables import created_tables
from deltalake import DeltaTable

from pipelines.tables import definitions
from pipelines.tables.store import TableStore


def described(root: Path) -> dict[str, tuple[Any, ...]]:
    tables = {name: DeltaTable(str(root / name)) for name in definitions.WRITE_ORDER}
    return {
        name: (table.version(), table.schema().to_json(), table.metadata().configuration, table.metadata().description)
        for name, table in tables.items()
    }


def test_copies_are_the_tables_that_the_store_creates(tmp_path: Path) -> None:
    TableStore(str(tmp_path / "created")).create()
    for _ in range(2):
        store = created_tables(tmp_path / "copied")
        assert described(tmp_path / "copied") == described(tmp_path / "created")
    assert store.last_batch() is None
