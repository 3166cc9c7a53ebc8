"""Migration of a folder to the present layout in place: the nullable columns that its tables do not have yet."""

import pyarrow as pa
from deltalake import DeltaTable, Schema
from deltalake.exceptions import DeltaError

from pipelines.errors import TablesError
from pipelines.failpoints import failpoint
from pipelines.tables import definitions
from pipelines.tables.object_stores import reason_of
from pipelines.tables.store import TableStore


def add_missing_columns(store: TableStore) -> list[str]:
    """Add the columns; existing rows are null there. Returns the names of the changed tables.

    Raises:
        TablesError: a table cannot be written.
    """
    changed = []
    for name in definitions.WRITE_ORDER:
        table = store.table(name)
        missing = missing_columns(name, table)
        if len(missing):
            try:
                table.alter.add_columns(list(Schema.from_arrow(missing).fields))
            except DeltaError as error:
                raise TablesError(f"cannot add columns to {store.path(name)}: {reason_of(error)}") from error
            changed.append(name)
            failpoint(f"migrated:{name}")
    return changed


def missing_columns(name: str, table: DeltaTable) -> pa.Schema:
    """The columns of the definition of a table that the table does not have."""
    present = {field.name for field in table.schema().fields}
    return pa.schema([field for field in definitions.table(name).commented_schema if field.name not in present])
