"""Source addresses: `kafka://…`, `segments:DIR`, `jsonl:FILE`, and `spark-kafka://…` for Spark's own Kafka source."""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from coordinator_core.log.errors import LogTruncated, RecordsDeleted
from pipelines.errors import UsageError

if TYPE_CHECKING:
    from coordinator_core.sources.source import LogSource

FORMS = "kafka://HOST:PORT[,…]/TOPIC, segments:DIR, jsonl:FILE or spark-kafka://HOST:PORT[,…]/TOPIC"
DEFAULT_TOPIC = "__consumer_offsets"


@dataclass(frozen=True)
class Address:
    """A parsed source address. `location` is a path, or HOST:PORT[,…]; `topic` only for brokers."""

    scheme: str
    location: str
    topic: str = ""

    @property
    def is_spark_kafka(self) -> bool:
        """Whether Spark's own Kafka source reads it."""
        return self.scheme == "spark-kafka"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.location}/{self.topic}" if self.topic else f"{self.scheme}:{self.location}"


def parse_address(text: str) -> Address:
    """Parses a source address.

    Raises:
        UsageError: it is of no known form.
    """
    scheme, colon, rest = text.partition(":")
    if "@" in text and scheme not in ("segments", "jsonl"):
        raise UsageError("credentials do not belong into an address: put them into the [kafka] part of the configuration")
    if colon and scheme in ("segments", "jsonl") and rest:
        return Address(scheme, rest)
    if colon and scheme in ("kafka", "spark-kafka") and rest.startswith("//"):
        location, _, topic = rest[2:].partition("/")
        if location and all(":" in server for server in location.split(",")):
            return Address(scheme, location, topic or DEFAULT_TOPIC)
    raise UsageError(f"not a source address: {text!r} (expected {FORMS})")


def open_source(
    address: Address, kafka_options: Mapping[str, str], topic_id: UUID | None = None, *, seen_before: bool = False
) -> "LogSource":
    """Opens the log at `address`. `kafka_options`: see `coordinator_core.sources.kafka`.

    A topic with another id than `topic_id` is refused. Brokers that are away are waited for when this run has `seen_before`
    that they are there; otherwise the address may be wrong, and that is said soon.

    Raises:
        LogError: it is not there or cannot be read.
    """
    match address.scheme:
        case "segments":
            from coordinator_core.sources.segments import SegmentSource

            return SegmentSource(address.location)
        case "jsonl":
            from coordinator_core.sources.jsonl import JsonlSource

            return JsonlSource(address.location)
        case "kafka":
            # the client library takes a while to import, and files need none of it
            from coordinator_core.sources.kafka import KafkaSource

            return KafkaSource(str(address), kafka_options, expected_topic_id=topic_id, seen_before=seen_before)
    raise UsageError(f"{address} cannot be read without Spark")


def load_reader(address: Address) -> None:
    """Imports what reads logs at such an address."""
    if address.scheme == "kafka":
        importlib.import_module("coordinator_core.sources.kafka")


def truncated(address: Address, partition: int, position: int, end: int) -> LogTruncated:
    """The error of a log that ends before the position that the tables have reached."""
    return LogTruncated(
        f"{address}, partition {partition}: the log ends at offset {end}, before offset {position} where the tables continue: "
        "it was truncated, recreated or restored; start over with an empty --tables folder, or restore the log"
    )


def older(address: Address, partition: int, epoch: int, now: int) -> LogTruncated:
    """The error of a log whose leaders are counted from an earlier state of the cluster than the tables have seen."""
    return LogTruncated(
        f"{address}, partition {partition}: its leader has epoch {now}, and had {epoch} when the tables read it: the topic was "
        "recreated, or the cluster restored from an older copy, or the broker is cut off from the others; "
        "run again, and if it stays so start over with an empty --tables folder"
    )


def cut_back(address: Address, partition: int, position: int, end: int) -> LogTruncated:
    """The error of a log that has lost what the tables were made from, and was written on since."""
    return LogTruncated(
        f"{address}, partition {partition}: the log was cut back to offset {end}, before offset {position} where the tables "
        "continue, and written anew from there (an unclean leader election, or a disk or a machine that failed): "
        "start over with an empty --tables folder"
    )


def deleted(address: Address, partition: int, position: int, beginning: int) -> RecordsDeleted:
    """The error of a log whose records behind the position that the tables have reached are gone."""
    return RecordsDeleted(
        f"{address}, partition {partition}: the log begins at offset {beginning}, behind offset {position} where the tables "
        "continue: the records between were deleted; start over with an empty --tables folder, or restore the log"
    )
