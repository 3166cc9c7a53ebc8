"""Migration of a folder to the present layout in place: the nullable columns and fields that its tables do not have yet."""

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Schema
from deltalake.exceptions import CommitFailedError, DeltaError

from pipelines.runtime.errors import TablesError
from pipelines.runtime.failpoints import failpoint
from pipelines.tables import definitions
from pipelines.tables.delta_writes import stamped
from pipelines.tables.object_stores import reason_of
from pipelines.tables.store import TableStore


def add_missing_columns(store: TableStore, stamp: str) -> list[str]:
    """Add the columns in commits with the stamp; existing rows are null there. Returns the names of the changed tables.

    Raises:
        TablesError: a table cannot be written.
    """
    changed = []
    for name in definitions.WRITE_ORDER:
        table = store.table(name)
        missing = missing_columns(name, table)
        if len(missing):
            add_columns(table, missing, store.path(name), stamped(stamp))
            changed.append(name)
            failpoint(f"migrated:{name}")
    return changed


def add_columns(table: DeltaTable, columns: pa.Schema, path: str, properties: CommitProperties | None = None) -> None:
    """Add columns, and fields of structs, to the table under `path`.

    Raises:
        TablesError: the table cannot be written.
    """
    try:
        table.alter.add_columns(list(Schema.from_arrow(columns).fields), commit_properties=properties)
    except (DeltaError, CommitFailedError) as error:
        raise TablesError(f"cannot add columns to {path}: {reason_of(error)}") from error


def missing_columns(name: str, table: DeltaTable) -> pa.Schema:
    """The columns of the definition of a table that the table does not have, or whose structs have more fields there.

    Delta Lake merges the fields of a struct into the stored column, which keeps its comment.
    """
    stored = pa.schema(table.schema().to_arrow())
    missing = []
    for field in definitions.table(name).commented_schema:
        number = stored.get_field_index(field.name)
        if number < 0:
            missing.append(field)
        elif not _struct_fields(field.type) <= _struct_fields(stored.field(number).type):
            missing.append(field.with_metadata(stored.field(number).metadata))
    return pa.schema(missing)


def _struct_fields(kind: pa.DataType) -> frozenset[str]:
    """Names of the fields of a struct, or of the structs in a list; empty for other types."""
    of = kind.value_type if pa.types.is_list(kind) or pa.types.is_large_list(kind) else kind
    return frozenset(field.name for field in of) if pa.types.is_struct(of) else frozenset()
