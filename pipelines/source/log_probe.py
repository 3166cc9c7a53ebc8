"""Checks of the log before a run: it is readable, and has the offsets at which the tables continue."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from coordinator_core.codec.uuids import uuid_from_text, uuid_text
from coordinator_core.log.errors import LogError, LogNotFound, LogUnreachable
from pipelines.runtime.errors import GrouplakeError, UsageError
from pipelines.source.address import SourceAddress, deleted_records_error, open_source, short_log_error


def probe_log(
    address: SourceAddress, kafka_options: Mapping[str, str], next_offsets: Mapping[int, int], topic_id: str | None
) -> tuple[str | None, Mapping[int, int]]:
    """Return the current id of the topic, if known, and the end offset of each log partition.

    `topic_id` is the id of the topic that the tables were made from, if known.

    Raises:
        UsageError: the log cannot be read, or lacks an offset of `next_offsets`.
        GrouplakeError: no broker answers, as after a power failure: a later attempt may succeed.
    """
    with _short_errors():
        return _probe(address, kafka_options, next_offsets, topic_id)


def probe_transactions(
    address: SourceAddress, kafka_options: Mapping[str, str], next_offsets: Mapping[int, int], topic_id: str | None
) -> tuple[str | None, Mapping[int, int]]:
    """As `probe_log`, for a topic that may not exist yet if `next_offsets` is empty: then it has no partitions.

    Raises as `probe_log` does.
    """
    with _short_errors():
        try:
            return _probe(address, kafka_options, next_offsets, topic_id)
        except LogNotFound:
            if next_offsets:
                raise
            return None, {}


def probe_brokers(address: SourceAddress, kafka_options: Mapping[str, str]) -> None:
    """Check that a broker answers, for a source that reads no log.

    Raises as `probe_log` does.
    """
    # the client library is slow to import, and files do not need it
    from coordinator_core.sources.kafka_connection import borrowed_connection
    from coordinator_core.sources.kafka_options import parse_address

    with _short_errors(), borrowed_connection(parse_address(address.kafka_address).servers, kafka_options) as connection:
        connection.metadata(())


def _probe(
    address: SourceAddress, kafka_options: Mapping[str, str], next_offsets: Mapping[int, int], topic_id: str | None
) -> tuple[str | None, Mapping[int, int]]:
    source = open_source(address, kafka_options, uuid_from_text(topic_id) if topic_id else None)
    try:
        beginnings, ends = source.earliest_offsets(), source.end_offsets()
        topic_id = uuid_text(source.topic_id) if source.topic_id else None
    finally:
        source.close()
    for partition, offset in next_offsets.items():
        if ends.get(partition, 0) < offset:
            raise short_log_error(address, partition, offset, ends.get(partition, 0))
        if 0 < offset < beginnings.get(partition, 0):
            raise deleted_records_error(address, partition, offset, beginnings[partition])
    return topic_id, ends


@contextmanager
def _short_errors() -> Iterator[None]:
    try:
        yield
    except LogUnreachable as error:
        raise GrouplakeError(str(error)) from error
    except (LogError, ValueError) as error:
        # ValueError: the table property holds no topic id, so another program wrote it
        raise UsageError(str(error)) from error
