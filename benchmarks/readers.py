"""Readers of a whole `__consumer_offsets` log: Grouplake, Spark's Kafka source, aiokafka."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass

from aiokafka import AIOKafkaConsumer, TopicPartition
from pyspark.sql import Observation, SparkSession
from pyspark.sql.functions import count, length, lit
from pyspark.sql.functions import sum as total

from coordinator_core.reduction.partition_reduction import PartitionReducer, Reduction
from coordinator_core.sources.kafka import KafkaSource
from coordinator_core.sources.segments import CONSUMER_OFFSETS, SegmentSource
from coordinator_core.sources.source import LogSource
from coordinator_core.state.era import Era

_MEGABYTE = 1024 * 1024


@dataclass
class Seen:
    """Result of a reader: number of records, and reductions if it makes them."""

    records: int
    reductions: list[Reduction]


OpenSource = Callable[[], LogSource]


def open_segments(directory: str) -> OpenSource:
    """Opens a folder of segments."""
    return lambda: SegmentSource(directory)


def open_broker(bootstrap: str) -> OpenSource:
    """Opens the topic on a broker."""
    return lambda: KafkaSource(f"kafka://{bootstrap}/{CONSUMER_OFFSETS}")


def parse_only(open_source: OpenSource) -> Seen:
    """Parse record batches to columns: checksums, decompression, record framing."""
    source = open_source()
    try:
        records = 0
        for _, columns in source.read_many(_whole(source)):
            assert not columns.damages
            records += len(columns)
        return Seen(records, [])
    finally:
        source.close()


def reduce_all(open_source: OpenSource) -> Seen:
    """Do the work of a task of the job: parse, decode, and keep the last operation per key."""
    source = open_source()
    era = Era.named("4")
    try:
        wanted = _whole(source)
        reducers = {partition: PartitionReducer(era, partition) for partition in wanted}
        done = []
        for partition, columns in source.read_many(wanted):
            reducers[partition].add(columns)
            if columns.next_offset >= wanted[partition][1]:
                done.append(reducers.pop(partition).finish())
        return Seen(sum(each.records_read for each in done), done)
    finally:
        source.close()


def _whole(source: LogSource) -> dict[int, tuple[int, int]]:
    starts, ends = source.earliest_offsets(), source.end_offsets()
    return {partition: (starts[partition], end) for partition, end in ends.items() if end > starts[partition]}


def spark_kafka(spark: SparkSession, bootstrap: str, partitions: int) -> Seen:
    """Spark's Kafka source with its best settings into the noop sink: keys and values as bytes, undecoded."""
    spark.conf.set("spark.sql.streaming.kafka.useDeprecatedOffsetFetching", "true")
    seen = Observation()
    (
        spark.read.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("assign", json.dumps({CONSUMER_OFFSETS: list(range(partitions))}))
        .option("startingOffsets", "earliest")
        .option("endingOffsets", "latest")
        .option("kafka.fetch.max.wait.ms", "10")
        .option("kafka.max.poll.records", "20000")
        .option("kafka.max.partition.fetch.bytes", str(8 * _MEGABYTE))
        .load()
        .observe(seen, count(lit(1)).alias("records"), total(length("value")).alias("bytes"))
        .write.format("noop")
        .mode("overwrite")
        .save()
    )
    return Seen(seen.get["records"], [])


def aiokafka(bootstrap: str, partitions: int) -> Seen:
    """aiokafka, its C extension, all partitions in one consumer: records as Python objects, undecoded."""

    async def read() -> int:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=bootstrap,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            fetch_max_wait_ms=10,
            max_partition_fetch_bytes=8 * _MEGABYTE,
            exclude_internal_topics=False,
        )
        await consumer.start()
        try:
            topic_partitions = [TopicPartition(CONSUMER_OFFSETS, partition) for partition in range(partitions)]
            consumer.assign(topic_partitions)
            wanted = sum((await consumer.end_offsets(topic_partitions)).values())
            records = 0
            while records < wanted:
                records += sum(len(some) for some in (await consumer.getmany(timeout_ms=1000)).values())
            return records
        finally:
            await consumer.stop()

    return Seen(asyncio.run(read()), [])
