"""Writes of `offsets` and `offset_history` as in `offsets_plan`, as Spark DataFrames.

For batches with too many commits for the driver; `offsets_plan` explains the rows.
"""

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import broadcast, coalesce, col, least, lit, when

from pipelines.batch.context import BatchContext
from pipelines.batch.offsets_plan import ELSEWHERE, KEY, history_rows, offset_rows
from pipelines.batch.placement import PlacedChanges
from pipelines.batch.plan import BatchPlan
from pipelines.source.changes import DDL, SCHEMA, ChangeKind, spark_type, unpacked
from pipelines.tables import definitions
from pipelines.tables.sorted_files.sorted_files import sorted_files_of
from pipelines.tables.writers.executor_tasks import ReadTask
from pipelines.tables.writers.table_write import DELETED, EFFECTIVE_OFFSET, TableWrite, source_names

#: Columns of a place: the group, and the log partition.
_PLACE = ("group_id", "log_partition")


def bulk_offset_writes(
    changed: DataFrame, plan: BatchPlan, placed: PlacedChanges, context: BatchContext
) -> tuple[TableWrite, ...]:
    """Build writes of `offsets` and `offset_history` for the executors; `changed` are packed change rows."""
    spark = changed.sparkSession
    all_commits = bulk_commits(changed)
    commits, history = all_commits, None
    if placed.places:
        places = pa.table(dict(zip(_PLACE, zip(*placed.places, strict=True), strict=True)))
        # Arrow's 32-bit integers are those of change rows
        elsewhere = spark.createDataFrame(places.set_column(1, _PLACE[1], places[1].cast(pa.int32())))
        commits = all_commits.join(broadcast(elsewhere), list(_PLACE), "left_anti").select(SCHEMA.names)
        history = all_commits.join(broadcast(elsewhere), list(_PLACE), "left_semi").select(SCHEMA.names)
    rows = _history_rows(spark, commits, plan, context, placed.elsewhere)
    if history is not None:
        rows = rows.unionByName(_elsewhere_rows(_with_previous(spark, history, context), context))
    return TableWrite("offsets", _offset_rows(commits, plan, context)), TableWrite("offset_history", rows)


def bulk_commits(changed: DataFrame) -> DataFrame:
    """The unpacked change rows of kind `commit`."""
    return changed.where(col("kind") == str(ChangeKind.COMMIT)).mapInArrow(unpacked, DDL)


def _with_previous(spark: SparkSession, commits: DataFrame, context: BatchContext) -> DataFrame:
    if context.previous.batch is None:
        return commits.withColumn("previous_offset", lit(None).cast("bigint"))
    previous = _stored(spark, context, (*KEY, "committed_offset")).withColumnRenamed("committed_offset", "previous_offset")
    return commits.join(previous, list(KEY), "left")


def _elsewhere_rows(with_previous: DataFrame, context: BatchContext) -> DataFrame:
    columns = {"change": lit(ELSEWHERE), "batch_id": lit(context.batch_id).cast("bigint")}
    return with_previous.withColumns(columns).select(definitions.table("offset_history").schema.names)


def _offset_rows(commits: DataFrame, plan: BatchPlan, context: BatchContext) -> DataFrame:
    names = source_names("offsets")
    rows = commits.withColumns(
        {"batch_id": lit(context.batch_id).cast("bigint"), EFFECTIVE_OFFSET: col("log_offset"), DELETED: lit(False)}
    ).select(names)
    small = offset_rows(SCHEMA.empty_table(), plan.tombstones, plan.resolved, context.batch_id)
    return _with_small(rows, small, commits, plan)


def _history_rows(
    spark: SparkSession, commits: DataFrame, plan: BatchPlan, context: BatchContext, elsewhere: pa.Table
) -> DataFrame:
    schema = definitions.table("offset_history").schema
    with_previous = _with_previous(spark, commits, context)
    first_is_lower = coalesce(col("first_offset") < col("previous_offset"), lit(False))
    went_back = coalesce(col("rewound"), lit(False)) | first_is_lower
    rows = with_previous.withColumns(
        {
            "change": when(went_back, "rewind").otherwise("commit"),
            "min_offset": when(first_is_lower, least(col("min_offset"), col("first_offset"))).otherwise(col("min_offset")),
            "batch_id": lit(context.batch_id).cast("bigint"),
        }
    ).select(schema.names)
    small = history_rows(SCHEMA.empty_table(), plan.tombstones, plan.resolved, context, elsewhere)
    return _with_small(rows, small, commits, plan)


def _stored(spark: SparkSession, context: BatchContext, columns: tuple[str, ...]) -> DataFrame:
    """Columns of `offsets` as the last batch left it, read by the executors."""
    table = context.previous.table("offsets")
    schema = pa.schema([definitions.table("offsets").schema.field(name).with_nullable(True) for name in columns])
    ddl = ", ".join(f"{name} {spark_type(schema.field(name).type)}" for name in columns)
    paths = pa.table({"path": pa.array([sorted_file.path for sorted_file in sorted_files_of(table)], pa.string())})
    files = spark.createDataFrame(paths).repartition(spark.sparkContext.defaultParallelism)
    return files.mapInArrow(ReadTask(table.table_uri, schema), ddl)


def _with_small(rows: DataFrame, small: pa.Table, commits: DataFrame, plan: BatchPlan) -> DataFrame:
    """Append the rows planned in the driver, without commits resolved by markers for keys that the range commits."""
    if not small.num_rows:
        return rows
    # one chunk, because Spark silently drops all chunks of an Arrow table after an empty one that is not the first
    rest = rows.sparkSession.createDataFrame(small.combine_chunks())
    if plan.resolved.num_rows:
        rest = rest.join(commits.select(*KEY), list(KEY), "left_anti")
    return rows.unionByName(rest)
