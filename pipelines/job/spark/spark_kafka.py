"""`spark-kafka://…`: the same change rows from Spark's own Kafka source, for clusters that require the JVM client to log in.

It has Spark's limits. Spark hides control batches: only committed transactions are read, as plain commits, and an open
transaction blocks its partition. Topic ids have no names. Reading is slower.

Spark removes internal topics from every subscription, without an error, unless the deprecated offset fetching is enabled. With
deprecated offset fetching, only `assign` does not write its own consumer groups into the topic being read.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from coordinator_core.log.columns import RecordColumns
from coordinator_core.reduction.range_reduction import RangeReducer
from coordinator_core.state.era import Era
from pipelines.runtime.cache.jars import resolved_jars
from pipelines.source.changes import PACKED_DDL, packed
from pipelines.source.ranges import Offsets
from pipelines.source.reduction_rows import change_rows

if TYPE_CHECKING:
    from pipelines.job.run_options import RunOptions

#: The version of kafka-clients that Spark was built with: deprecated offset fetching calls methods that 4.x removed.
_CONNECTOR = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
    "org.apache.kafka:kafka-clients:3.9.0",
    "org.apache.commons:commons-pool2:2.12.0",
)
#: A restart of the query in an outage waits this long, in ms, and cannot be interrupted.
_ADMIN_TIMEOUTS = dict.fromkeys(("request.timeout.ms", "default.api.timeout.ms"), "10000")
_EARLIEST = -2
_RECORDS_PER_POLL = "20000"
#: Time without an answer after which a task fails, in ms; by default Spark's is two minutes. `QueryOutage` outlasts it.
_TASK_MS = "30000"


def connector_jars(token_provider: str, progress: Callable[[str], None]) -> tuple[str, ...]:
    """Jars of the connector; `token_provider` is the version of its delegation-token module."""
    dependencies = (*_CONNECTOR, f"org.apache.spark:spark-token-provider-kafka-0-10_2.13:{token_provider}")
    folder = resolved_jars(f"spark-kafka-4.2.0-{token_provider}", dependencies, progress=progress, transitive=False)
    return tuple(str(path) for path in sorted(folder.glob("*.jar")))


def open_spark_kafka(spark: SparkSession, options: "RunOptions", next_offsets: Offsets | None) -> DataFrame:
    """Packed change rows of the topic at `options.address`."""
    topic = options.address.topic
    settings = _settings(options)
    partitions = _partitions(spark, topic, settings)
    known = next_offsets or {}
    starting = {topic: {str(p): known.get(p, _EARLIEST) for p in partitions}}
    spark.conf.set("spark.sql.streaming.kafka.useDeprecatedOffsetFetching", "true")
    reader = (
        spark.readStream.format("kafka")
        .option("assign", json.dumps({topic: partitions}))
        .option("startingOffsets", json.dumps(starting))
        .option("failOnDataLoss", "true")
        .option("kafkaConsumer.pollTimeoutMs", _TASK_MS)
        .option("kafka.default.api.timeout.ms", _TASK_MS)
        .option("kafka.isolation.level", "read_committed")
        .option("kafka.max.poll.records", _RECORDS_PER_POLL)
        .option("kafka.fetch.max.wait.ms", "10")
    )
    if options.max_records:
        reader = reader.option("maxOffsetsPerTrigger", options.max_records)
    for name, value in settings.items():
        reader = reader.option(f"kafka.{name}", value)
    rows = reader.load().select("partition", "offset", "timestamp", "key", "value")
    return rows.mapInArrow(_reducing(options.era.name, options.retention_ms, len(partitions)), PACKED_DDL)


def partition_count(spark: SparkSession, options: "RunOptions") -> int:
    """The present number of partitions of the topic; a stream reads those that the topic had when it began."""
    return len(_partitions(spark, options.address.topic, _settings(options)))


def _settings(options: "RunOptions") -> dict[str, str]:
    return jvm_settings(options.kafka, options.kafka_jvm) | {"bootstrap.servers": options.address.location}


def jvm_settings(kafka: Mapping[str, str], kafka_jvm: Mapping[str, Any]) -> dict[str, str]:
    """Translate connection options to those of Kafka's Java client; `kafka_jvm` overrides them."""
    settings = {}
    for ours, theirs in (("security_protocol", "security.protocol"), ("sasl_mechanism", "sasl.mechanism")):
        if ours in kafka:
            settings[theirs] = kafka[ours]
    if "sasl_username" in kafka:
        scram = kafka.get("sasl_mechanism", "").startswith("SCRAM")
        module = "scram.ScramLoginModule" if scram else "plain.PlainLoginModule"
        user, password = (json.dumps(kafka.get(name, ""), ensure_ascii=False) for name in ("sasl_username", "sasl_password"))
        settings["sasl.jaas.config"] = f"org.apache.kafka.common.security.{module} required username={user} password={password};"
    if "ssl_cafile" in kafka:
        settings |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": kafka["ssl_cafile"]}
    return settings | {name: str(value) for name, value in kafka_jvm.items()}


def _partitions(spark: SparkSession, topic: str, settings: Mapping[str, str]) -> list[int]:
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    properties = jvm.java.util.Properties()
    for name, value in {**_ADMIN_TIMEOUTS, **settings}.items():
        properties.setProperty(name, value)
    admin = jvm.org.apache.kafka.clients.admin.Admin.create(properties)
    try:
        topics = jvm.java.util.ArrayList()
        topics.add(topic)
        described = admin.describeTopics(topics).allTopicNames().get()
        return sorted(partition.partition() for partition in described.get(topic).partitions())
    finally:
        admin.close()


def _reducing(
    era_name: str, retention_ms: int, partitions: int
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def reduce(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        era = Era.named(era_name)
        reducers: dict[int, RangeReducer] = {}
        ends: dict[int, int] = {}
        for batch in batches:
            for partition in pc.unique(batch["partition"]).to_pylist():
                columns = record_columns(batch.filter(pc.equal(batch["partition"], partition)))
                reducers.setdefault(partition, RangeReducer(era, partition)).add(columns)
                ends[partition] = columns.next_offset
        for partition, reducer in reducers.items():
            # the start of the range is unknown: the source hides compacted and aborted records
            yield from packed(change_rows(reducer.finish(), None, ends[partition], era, retention_ms, partitions=partitions))

    return reduce


def record_columns(batch: pa.RecordBatch) -> RecordColumns:
    """Convert rows of Spark's Kafka source, of one partition in log order, to the columns of the reducer."""
    keys, values = batch["key"], batch["value"]
    key_bytes, key_start, key_length = _slices(keys)
    value_bytes, value_start, value_length = _slices(values)
    offset = batch["offset"].to_numpy(zero_copy_only=False)
    count = len(offset)
    return RecordColumns(
        buffer=np.concatenate([key_bytes, value_bytes]),
        offset=offset,
        batch_offset=offset,
        timestamp=pc.cast(batch["timestamp"], pa.timestamp("ms"), safe=False).cast(pa.int64()).to_numpy(zero_copy_only=False),
        key_start=key_start,
        key_length=key_length,
        value_start=value_start + len(key_bytes),
        value_length=value_length,
        producer_id=np.full(count, -1, np.int64),
        producer_epoch=np.full(count, -1, np.int16),
        flags=np.zeros(count, np.uint8),
        next_offset=int(offset[-1]) + 1,
        consumed=0,
    )


def _slices(column: pa.Array) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    _, offsets, data = column.buffers()
    ends = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1].astype(np.int64)
    present = column.is_valid().to_numpy(zero_copy_only=False)
    lengths = np.where(present, np.diff(ends), -1).astype(np.int32)
    return np.frombuffer(data or b"", np.uint8), ends[:-1], lengths
