"""Source addresses: `kafka://…`, `segments:DIR`, `jsonl:FILE`, `spark-kafka://…` for Spark's own Kafka source, and
`kafka-groups://…` for polls of the coordinators, which read no log.
"""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from coordinator_core.log.errors import LogTruncated, RecordsDeleted
from pipelines.runtime.errors import UsageError

if TYPE_CHECKING:
    from coordinator_core.sources.source import LogSource

FORMS = "kafka://HOST:PORT[,…]/TOPIC, segments:DIR, jsonl:FILE, spark-kafka://HOST:PORT[,…]/TOPIC or kafka-groups://HOST:PORT[,…]"
DEFAULT_TOPIC = "__consumer_offsets"


@dataclass(frozen=True)
class SourceAddress:
    """A parsed source address. `location` is a path, or HOST:PORT[,…]; `topic` for brokers, and for folders of another topic."""

    scheme: str
    location: str
    topic: str = ""

    @property
    def is_spark_kafka(self) -> bool:
        """True if Spark's own Kafka source reads the log."""
        return self.scheme == "spark-kafka"

    @property
    def is_cluster(self) -> bool:
        """True if brokers serve the log, and false for files."""
        return self.scheme in ("kafka", "spark-kafka", "kafka-groups")

    @property
    def is_polled(self) -> bool:
        """True if the coordinators are polled about their groups, and no log is read."""
        return self.scheme == "kafka-groups"

    @property
    def has_own_client(self) -> bool:
        """True if this program's own client is connected to the brokers, which samples and settings can use too."""
        return self.scheme in ("kafka", "kafka-groups")

    @property
    def kafka_address(self) -> str:
        """The `kafka://` address of the brokers, for requests that do not read the log."""
        return f"kafka://{self.location}/{self.topic or DEFAULT_TOPIC}"

    def __str__(self) -> str:
        if self.is_polled:
            return f"{self.scheme}://{self.location}"
        if self.is_cluster:
            return f"{self.scheme}://{self.location}/{self.topic}"
        return f"{self.scheme}:{self.location}{f' ({self.topic})' if self.topic else ''}"


def parse_address(text: str, default_topic: str = DEFAULT_TOPIC) -> SourceAddress:
    """Parse a source address; `default_topic` is that of an address of brokers without a topic.

    Raises:
        UsageError: unknown form, or credentials in the address.
    """
    scheme, colon, rest = text.partition(":")
    if "@" in text and scheme not in ("segments", "jsonl"):
        raise UsageError("the address contains credentials: put them into the section [kafka] of the configuration")
    if colon and scheme in ("segments", "jsonl") and rest:
        return SourceAddress(scheme, rest)
    if colon and scheme in ("kafka", "spark-kafka", "kafka-groups") and rest.startswith("//"):
        location, slash, topic = rest[2:].partition("/")
        if scheme == "kafka-groups" and slash:
            raise UsageError(f"invalid source address {text!r}: {scheme}:// reads no topic, use {scheme}://{location}")
        if location and all(":" in server for server in location.split(",")):
            return SourceAddress(scheme, location, topic or default_topic)
    raise UsageError(f"invalid source address {text!r}: use {FORMS}")


def open_source(
    address: SourceAddress, kafka_options: Mapping[str, str], topic_id: UUID | None = None, *, seen_before: bool = False
) -> "LogSource":
    """Open the log at `address`. `kafka_options`: see `coordinator_core.sources.kafka`.

    A topic with another id than `topic_id` is rejected. `seen_before` states that the brokers have answered before: then requests
    are retried for `retry_seconds`; otherwise a wrong address is reported after a few seconds.

    Raises:
        LogError: the log does not exist or cannot be read.
    """
    match address.scheme:
        case "segments":
            from coordinator_core.sources.segments import SegmentSource

            return SegmentSource(address.location, address.topic or DEFAULT_TOPIC)
        case "jsonl":
            from coordinator_core.sources.jsonl import JsonlSource

            return JsonlSource(address.location)
        case "kafka":
            # the client library is slow to import, and files do not need it
            from coordinator_core.sources.kafka import KafkaSource

            return KafkaSource(str(address), kafka_options, expected_topic_id=topic_id, seen_before=seen_before)
    if address.is_polled:
        raise UsageError(f"{address} has no log to read: it is a source of `grouplake run` alone")
    raise UsageError(f"{address} cannot be read without Spark")


def load_reader(address: SourceAddress) -> None:
    """Import the modules that read logs at such an address."""
    if address.scheme == "kafka":
        importlib.import_module("coordinator_core.sources.kafka")


def short_log_error(address: SourceAddress, partition: int, position: int, end: int) -> LogTruncated:
    """Error for a log that ends before the position of the tables."""
    return LogTruncated(
        f"{address}, partition {partition}: the log ends at offset {end}, before offset {position} where the tables continue; "
        "it was truncated, recreated or restored; start over with an empty --tables folder, or restore the log"
    )


def old_epoch_error(address: SourceAddress, partition: int, epoch: int, now: int) -> LogTruncated:
    """Error for a leader epoch that is lower than the epoch the tables have seen."""
    return LogTruncated(
        f"{address}, partition {partition}: the leader epoch is {now}, but was {epoch} when the tables read it: the topic was "
        "recreated, the cluster was restored from an older copy, or the broker is cut off from the others; "
        "run again, and if the error persists, start over with an empty --tables folder"
    )


def truncated_log_error(address: SourceAddress, partition: int, position: int, end: int) -> LogTruncated:
    """Error for a log that lost records which the tables have read, and has grown since."""
    return LogTruncated(
        f"{address}, partition {partition}: the log was truncated to offset {end}, before offset {position} where the tables "
        "continue, and has grown again since (an unclean leader election, or a disk or a machine that failed); "
        "start over with an empty --tables folder"
    )


def deleted_records_error(address: SourceAddress, partition: int, position: int, beginning: int) -> RecordsDeleted:
    """Error for a log that starts after the position of the tables."""
    return RecordsDeleted(
        f"{address}, partition {partition}: the log now starts at offset {beginning}, but the tables need offset {position}; "
        "the records in between were deleted; start over with an empty --tables folder, or restore the log"
    )
