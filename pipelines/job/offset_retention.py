"""The offset retention of a run: a setting of the job, otherwise that of the brokers, otherwise the default of the era."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

from pipelines.batch.without_records import finish_batch
from pipelines.job.run_options import RunOptions
from pipelines.runtime.phases import Phases
from pipelines.runtime.progress import Progress
from pipelines.tables.store import Batch
from pipelines.tables.writer import TablesWriter

_MINUTE_MS = 60_000
#: Name of the brokers' setting; importing it from the sources would import the client library for every source.
_SETTING = "offsets.retention.minutes"


def with_offset_retention(options: RunOptions, last: Batch | None, progress: Progress) -> RunOptions:
    """The options with the retention to use, which is reported for sources of brokers, and if it has changed since `last`."""
    if options.retention_setting is not None:
        retention_ms, origin = options.retention_ms, options.retention_setting
    elif options.address.has_own_client:
        from coordinator_core.sources.offsets_retention import offsets_retention_minutes

        retention_ms, origin = _of_brokers(offsets_retention_minutes(options.address.kafka_address, options.kafka), options)
    elif options.address.is_spark_kafka:
        retention_ms, origin = options.retention_ms, _default(options, "Spark's Kafka source cannot ask the brokers")
    else:
        retention_ms, origin = options.retention_ms, _default(options)
    changed = last is not None and last.retention_ms != retention_ms
    if changed or options.address.is_cluster:
        before = f"; it was {_minutes(last.retention_ms)} until batch {last.batch_id}" if last is not None and changed else ""
        progress(f"offset retention: {_minutes(retention_ms)} ({origin}){before}")
    return replace(options, retention_ms=retention_ms)


def record_retention(writer: TablesWriter, retention_ms: int) -> Batch:
    """Write a batch without records whose retention is `retention_ms`, so that times of expiry follow it from now on.

    Raises:
        AnotherWriter: another job took over the tables.
    """
    last = writer.last
    assert last is not None, "new tables get their retention with their first batch"
    phases = Phases(datetime.now(UTC))
    writer.begin()
    return finish_batch(writer, replace(last, retention_ms=retention_ms), phases, datetime.now(UTC))


def _of_brokers(found: Mapping[int, int] | str, options: RunOptions) -> tuple[int, str]:
    if isinstance(found, str):
        return options.retention_ms, _default(options, f"{_SETTING} of the brokers cannot be read: {found}")
    shortest = min(found.values())
    if len(set(found.values())) == 1:
        return shortest * _MINUTE_MS, f"{_SETTING} of the brokers"
    each = ", ".join(f"{minutes} of broker {node}" for node, minutes in sorted(found.items()))
    return shortest * _MINUTE_MS, f"the shortest {_SETTING} of the brokers, which differ: {each}"


def _default(options: RunOptions, reason: str = "") -> str:
    remedy = "set job.retention_minutes if the brokers have another one"
    return "; ".join(part for part in (f"default of era {options.era.name}", reason, remedy) if part)


def _minutes(retention_ms: int) -> str:
    """`10,080 minutes (7 days)`, `25 minutes`: the unit of Kafka's setting first."""
    minutes = retention_ms / _MINUTE_MS
    days = minutes / 1440
    return f"{minutes:,.0f} minutes" + (f" = {days:g} days" if days >= 2 and days.is_integer() else "")
