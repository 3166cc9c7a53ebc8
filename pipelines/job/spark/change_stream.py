"""The streaming DataFrame of packed change rows for an address."""

import json
import math
import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from coordinator_core.sources.kafka_options import retry_seconds
from pipelines.job.run_options import AVAILABLE_NOW
from pipelines.job.shared_files import absolute_address
from pipelines.job.spark.query_outage import QueryOutage
from pipelines.source.data_source import ConsumerOffsetsDataSource
from pipelines.source.log_reading import KAFKA_PREFIX, WARM_UP
from pipelines.source.position import Position

if TYPE_CHECKING:
    from pipelines.job.run_options import RunOptions


def spark_jars(options: "RunOptions", progress: Callable[[str], None]) -> tuple[str, ...]:
    """Jars that the session needs to read the source."""
    if not options.address.is_spark_kafka or options.spark["delta_jars"] != "cache":
        return ()
    from pipelines.job.spark.spark_kafka import connector_jars

    return connector_jars(options.spark["kafka_token_provider"], progress)


def open_stream(spark: SparkSession, options: "RunOptions", start: Position | None, topic_id: str | None = None) -> DataFrame:
    """Packed change rows from `start` on; an existing checkpoint of the stream takes precedence.

    A topic with another id than `topic_id` ends the stream.
    """
    if options.address.is_spark_kafka:
        from pipelines.job.spark.spark_kafka import open_spark_kafka

        return open_spark_kafka(spark, options, start.offsets if start else None)
    spark.dataSource.register(ConsumerOffsetsDataSource)
    reader = (
        spark.readStream.format(ConsumerOffsetsDataSource.name())
        .option("era", options.era.name)
        .option("retentionMs", options.retention_ms)
        .option("tasks", _tasks(spark, options))
    )
    if options.max_records:
        reader = reader.option("maxRecordsPerBatch", options.max_records)
    if start is not None:
        reader = reader.option("startingOffsets", json.dumps(start.to_json()))
    if topic_id is not None:
        reader = reader.option("topicId", topic_id)
    for name, value in {**options.kafka, **_patience(options)}.items():
        reader = reader.option(KAFKA_PREFIX + name, value)
    return reader.load(_path(options))


def current_partitions(spark: SparkSession, options: "RunOptions") -> Callable[[], int] | None:
    """The present number of partitions of Spark's Kafka source; None for ours, which notices new ones itself."""
    if not options.address.is_spark_kafka:
        return None
    from pipelines.job.spark.spark_kafka import partition_count

    return partial(partition_count, spark, options)


def open_outage(options: "RunOptions", progress: Callable[[str], None]) -> QueryOutage | None:
    """The outages of Spark's Kafka source; ours reports and outlasts them itself."""
    if not options.address.is_spark_kafka:
        return None
    return QueryOutage(progress, retry_seconds(options.kafka) if options.trigger == AVAILABLE_NOW else math.inf)


def _patience(options: "RunOptions") -> dict[str, str]:
    """Options of a job that follows the log: it waits for its brokers, however long they are away."""
    if options.trigger == AVAILABLE_NOW or options.address.scheme != "kafka":
        return {}
    # importing the client library takes half a second, and other sources do not need it
    from coordinator_core.sources.kafka_options import FOLLOWS_OPTION

    return {FOLLOWS_OPTION: "true"}


def warm_up(spark: SparkSession, options: "RunOptions") -> None:
    """Start the Python processes that read the log with an empty read, in the background.

    The first batch of a stream would start them in sequence, which takes longer than reading.
    """
    if options.address.is_spark_kafka:
        return
    spark.dataSource.register(ConsumerOffsetsDataSource)
    reader = spark.read.format(ConsumerOffsetsDataSource.name()).option(WARM_UP, "true").option("tasks", _tasks(spark, options))

    def read_nothing() -> None:
        try:
            reader.load(_path(options)).toArrow()
        except (PySparkException, Py4JError, OSError):
            # the stream has the same error, and reports it
            return

    threading.Thread(target=read_nothing, name="warm-up", daemon=True).start()


def _tasks(spark: SparkSession, options: "RunOptions") -> int:
    """The number of tasks; by default that of the cores of the executors, or of a local session."""
    return options.tasks or spark.sparkContext.defaultParallelism


def _path(options: "RunOptions") -> str:
    return f"{absolute_address(options.address)}"
