"""Copies of tables in the present layout: columns by name, in the types of their definition."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Literal

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, QueryBuilder, Transaction

from pipelines.runtime.errors import GrouplakeError, TablesError
from pipelines.tables import definitions
from pipelines.tables.damage import damage_in, damaged_tables
from pipelines.tables.delta_writes import stamped, write_many_rows, write_rows
from pipelines.tables.object_stores import reason_of
from pipelines.tables.query_rows import stream_of
from pipelines.tables.sorted_files.file_order import order_files
from pipelines.tables.sorted_files.sorted_files import has_sorted_files
from pipelines.tables.store import APP_ID, Batch, TableStore, query
from pipelines.tables.writer import WRITER_ID, TablesWriter


def copy_rows(old: TableStore, last: Batch, generation: int, new: TableStore) -> None:
    """Copy the rows of `batches`, without table versions: those of the old tables do not exist in the new ones.

    Claims the new tables with the writer epoch `generation`, so that it stays above those of all earlier writers.
    """
    rows = query({"batches": old.table("batches")}, f"SELECT * FROM batches WHERE batch_id <= {last.batch_id} ORDER BY batch_id")
    schema = definitions.table("batches").schema
    without = pa.array([[]] * rows.num_rows, schema.field("versions").type)
    rows = rows.set_column(rows.schema.get_field_index("versions"), "versions", without)
    properties = CommitProperties(app_transactions=[Transaction(APP_ID, last.batch_id), Transaction(WRITER_ID, generation)])
    write_rows(new.table("batches"), _in_layout("batches", rows, None), "append", properties)


def copy_table(
    source: TableStore,
    name: str,
    version: int,
    writer: TablesWriter,
    batch_id: int | None,
    mode: Literal["append", "overwrite"] = "append",
) -> int:
    """Write the rows of a table at a version, sorted by key, as part of the writer's batch. Returns their number.

    `batch_id` replaces the batch ids of the rows, None keeps them. `mode` "overwrite" replaces the rows that were there.

    Raises:
        DamagedTables: a file of the source is missing or damaged.
        TablesError: a column has no value that the definition of the table accepts.
    """
    table = source.at(name, version)
    key = definitions.KEYS.get(name)
    order = f" ORDER BY {', '.join(key)}" if key else ""
    count = 0

    def change(target: DeltaTable, stamp: str) -> bool:
        nonlocal count
        with ThreadPoolExecutor(1) as reader:
            builder = QueryBuilder()
            builder.register(name, table)
            _schema, found = reader.submit(lambda: stream_of(builder.execute(f"SELECT * FROM {name}{order}"))).result()

            def batches() -> Iterator[pa.RecordBatch]:
                nonlocal count
                while (rows := reader.submit(next, found, None).result()) is not None:
                    count += rows.num_rows
                    yield from _in_layout(name, pa.Table.from_batches([rows]), batch_id).to_batches()

            rows = pa.RecordBatchReader.from_batches(definitions.table(name).schema, batches())
            write_many_rows(target, rows, mode, stamped(stamp))
        return True

    try:
        writer.commit(name, change)
    except GrouplakeError:
        raise
    except Exception as error:  # DataFusion's errors reach Python as bare Exception
        damage = damage_in(error)
        if damage is not None:
            raise damaged_tables(damage, source.root) from error
        raise TablesError(
            f"cannot read the old table {name}: {reason_of(error)}; rebuild from the log, with --source, or restore a backup"
        ) from error
    if key:
        writer.commit(name, lambda target, stamp: has_sorted_files(target) and order_files(target, name, stamp)[0] > 0)
    return count


def _in_layout(name: str, rows: pa.Table, batch_id: int | None) -> pa.Table:
    schema = definitions.table(name).schema
    columns = []
    for field in schema:
        if field.name == "batch_id" and batch_id is not None:
            columns.append(pa.array([batch_id] * rows.num_rows, field.type))
        elif field.name in rows.schema.names:
            columns.append(_cast(name, field, rows[field.name]))
        elif field.nullable or not rows.num_rows:
            columns.append(pa.nulls(rows.num_rows, field.type))
        else:
            raise TablesError(f"the old table {name} has no column {field.name}: rebuild from the log, with --source")
    return pa.Table.from_arrays(columns, schema=schema)


def _cast(name: str, field: pa.Field, values: pa.ChunkedArray) -> pa.ChunkedArray:
    try:
        return values.cast(field.type)
    except pa.ArrowException as error:
        reason = str(error).splitlines()[0]
        raise TablesError(f"column {field.name} of the old table {name} cannot become {field.type}: {reason}") from error
