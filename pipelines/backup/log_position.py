"""Comparison of a log with the position of restored tables: whether the job can continue there."""

from collections.abc import Mapping

from coordinator_core.codec.uuids import uuid_from_text
from coordinator_core.log.errors import LogError
from pipelines.backup.manifest import Manifest
from pipelines.errors import TablesError, UsageError
from pipelines.source.address import SourceAddress, deleted_records_error, open_source, short_log_error


def expect_log_from(address: SourceAddress, kafka: Mapping[str, str], backup: Manifest) -> str:
    """One line about the records that the job will read.

    Raises:
        TablesError: the log does not have the records from the position on, or cannot be read.
    """
    if address.is_spark_kafka:
        raise UsageError(f"{address} cannot be compared without Spark: use kafka:// for the same cluster, or leave --source out")
    try:
        source = open_source(address, kafka, uuid_from_text(backup.topic_id) if backup.topic_id else None)
        try:
            beginnings, ends = source.earliest_offsets(), source.end_offsets()
        finally:
            source.close()
        for partition, offset in backup.next_offsets.items():
            if ends.get(partition, 0) < offset:
                raise short_log_error(address, partition, offset, ends.get(partition, 0))
            if 0 < offset < beginnings.get(partition, 0):
                raise deleted_records_error(address, partition, offset, beginnings[partition])
    except (LogError, ValueError) as error:
        raise TablesError(f"the tables are restored, but `grouplake run` cannot continue them: {error}") from error
    behind = sum(end - backup.next_offsets.get(partition, 0) for partition, end in ends.items())
    return f"{address} has all records from the position of the tables on: `grouplake run` will read {behind:,} offsets"
