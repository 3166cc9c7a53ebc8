"""Temporary views of a Spark session over the tables of one batch."""

import os
import re
from datetime import datetime
from typing import TYPE_CHECKING

from pipelines.query.batch_values import spark_batch_values
from pipelines.query.engine import Snapshot
from pipelines.runtime.errors import GrouplakeError, UsageError
from pipelines.tables import definitions
from pipelines.tables.store import TableStore

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PREFIX = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)?")


def register_tables(
    spark: "SparkSession", tables: "str | os.PathLike[str]", as_of: int | str | datetime | None, prefix: str
) -> tuple[str, ...]:
    """Register the temporary views: see `grouplake.register`."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    if not _PREFIX.fullmatch(prefix):
        raise UsageError(f"invalid prefix {prefix!r}: use letters, digits and '_', and begin with no digit")
    snapshot = Snapshot.open(os.fspath(tables), as_of)
    store = TableStore(os.fspath(tables))
    try:
        for name in snapshot.tables:
            _table(spark, store, snapshot, name).createOrReplaceTempView(f"{prefix}{name}")
        for name in snapshot.views:
            spark.sql(_view(snapshot, name, prefix)).createOrReplaceTempView(f"{prefix}{name}")
    except (PySparkException, Py4JError) as error:
        reason = f"Spark cannot read the tables under {store.root} ({_reason(error)})"
        raise GrouplakeError(f"{reason}: the session needs Delta Lake, see docs/python.md") from error
    return tuple(f"{prefix}{name}" for name in (*snapshot.tables, *snapshot.views))


def _reason(error: Exception) -> str:
    """The first line of Spark's error; py4j has a line of its own before it."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return next((line.removeprefix(": ") for line in lines if line.startswith(": ")), lines[0])


def _table(spark: "SparkSession", store: TableStore, snapshot: Snapshot, name: str) -> "DataFrame":
    """The rows of a table at the batch; those of `batches` and of alerts, whose versions no batch names, at the newest version.

    The row of a batch is in a later version of `batches` than the row can name.
    """
    version = snapshot.batch.versions[name] if name in snapshot.batch.versions else store.table(name).version()
    found = spark.read.format("delta").option("versionAsOf", version).load(store.uri(name))
    return found.where(f"batch_id <= {snapshot.batch.batch_id}") if name == "batches" else found


def _view(snapshot: Snapshot, name: str, prefix: str) -> str:
    query = definitions.spark_view_sql(name, spark_batch_values(snapshot.batch))
    if not prefix:
        return query
    named = (f"{read} AS (SELECT * FROM {prefix}{read})" for read in sorted(definitions.read_by_view(name)))
    return f"WITH {', '.join(named)} SELECT * FROM (\n{query}\n) {name}"
