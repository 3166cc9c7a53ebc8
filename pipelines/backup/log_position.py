"""Comparison of a log with the position of restored tables: whether the job can continue there."""

from collections.abc import Mapping

from pipelines.backup.manifest import Manifest
from pipelines.errors import GrouplakeError, TablesError, UsageError
from pipelines.job.log_probe import probe_log
from pipelines.source.address import SourceAddress
from pipelines.source.ranges import new_offsets


def expect_log_from(address: SourceAddress, kafka: Mapping[str, str], backup: Manifest) -> str:
    """One line about the records that the job will read.

    Raises:
        UsageError: the log can be read by Spark only.
        TablesError: the log does not have the records from the position on, or cannot be read.
    """
    if address.is_spark_kafka:
        raise UsageError(f"{address} cannot be compared without Spark: use kafka:// for the same cluster, or leave --source out")
    try:
        _, ends = probe_log(address, kafka, backup.next_offsets, backup.topic_id)
    except GrouplakeError as error:
        raise TablesError(f"the tables are restored, but `grouplake run` cannot continue them: {error}") from error
    new = new_offsets(backup.next_offsets, ends)
    return f"{address} has all records from the position of the tables on: `grouplake run` will read {new:,} offsets"
