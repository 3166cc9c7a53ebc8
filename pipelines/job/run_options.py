"""Options of `grouplake run`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from coordinator_core.health import DEFAULT_SETTINGS, StatusSettings
from coordinator_core.health.durations import parse_duration_ms
from coordinator_core.state.era import Era
from pipelines.runtime.errors import UsageError
from pipelines.source.address import SourceAddress
from pipelines.source.name_patterns import NamePatterns

if TYPE_CHECKING:
    from pipelines.upkeep.maintain import Maintenance

#: Trigger of a job that reads up to the current end of the log and ends.
AVAILABLE_NOW = "available-now"


@dataclass(frozen=True)
class RunOptions:
    """Options of one run. Times in ms; `now_ms` is the time of the expiry sweep, None for the current time.

    `max_records` limits the records of a batch, `tasks` is the number of tasks that read; 0 for no limit and for one per core.
    """

    address: SourceAddress
    tables: str
    era: Era
    #: Offset retention; without `retention_setting` that of brokers which do not report theirs.
    retention_ms: int
    bulk_rows: int
    #: May hold the keys of an object store.
    spark: Mapping[str, Any] = field(repr=False)
    kafka: Mapping[str, str] = field(repr=False, default_factory=dict)
    #: Further options of Kafka's Java client, for spark-kafka:// sources.
    kafka_jvm: Mapping[str, Any] = field(repr=False, default_factory=dict)
    #: The setting that states `retention_ms`; None: the brokers are asked for theirs.
    retention_setting: str | None = None
    trigger: str = AVAILABLE_NOW
    expiry: str = "observe"
    now_ms: int | None = None
    max_records: int = 0
    tasks: int = 0
    #: A run with AVAILABLE_NOW that finds at most this many new offsets reads them in the driver; 0: with Spark.
    driver_records: int = 0
    #: Seconds between two runs with AVAILABLE_NOW; 0 if unknown.
    schedule_seconds: int = 0
    #: Seconds between polls of a source that is polled, with the trigger `continuous`.
    poll_seconds: int = 30
    #: Tables that were made from the log of the cluster continue with polls, or the other way round.
    source_change: bool = False
    #: Groups and topics that such a source reads.
    groups: NamePatterns = field(default_factory=NamePatterns)
    topics: NamePatterns = field(default_factory=NamePatterns)
    #: Seconds between samples of end offsets; 0 for no samples.
    lag_interval_seconds: int = 0
    status: StatusSettings = DEFAULT_SETTINGS
    #: Partitions per sample whose records are counted, and whose append times are searched for.
    lag_counted_partitions: int = 0
    lag_narrowed_partitions: int = 0
    #: Limits of maintenance by the job, None for a job that does not answer requests for it.
    maintenance: "Maintenance | None" = None
    #: Seconds between two maintenances; 0 for maintenance on request only.
    maintain_every_seconds: int = 0
    #: The log `__transaction_state`; None if transactions are not read.
    transactions: SourceAddress | None = None
    #: Partitions of `__consumer_offsets` and `__transaction_state`, for sources that do not know their number; 0 if not stated.
    offsets_partitions: int = 0
    transactions_partitions: int = 0
    #: Consumer group of which the position in the log is committed; "": none.
    group_id: str = ""
    #: Tables of state with a change data feed.
    feed_tables: frozenset[str] = frozenset()


def trigger_arguments(trigger: str) -> dict[str, Any]:
    """`available-now`, `continuous` or an interval such as `10s`, as arguments of `DataStreamWriter.trigger`."""
    if trigger == AVAILABLE_NOW:
        return {"availableNow": True}
    return {"processingTime": f"{trigger_ms(trigger)} milliseconds"}


def trigger_ms(trigger: str) -> int:
    """The interval of a job that follows the log, in ms; 0 for `continuous`. Raises UsageError for another text."""
    if trigger == "continuous":
        return 0
    try:
        ms = parse_duration_ms(trigger)
    except ValueError as error:
        raise UsageError(
            f"invalid trigger {trigger!r}: use available-now, continuous, or an interval such as 500ms, 10s, 5m or 1h"
        ) from error
    if not ms:
        raise UsageError(
            f"invalid trigger {trigger!r}: use an interval of 1ms or more, or continuous for batches without a pause"
        )
    return ms


def batch_ms(options: RunOptions) -> int:
    """The interval of batches of a job that follows its source, in ms: polls without a pause would keep the brokers busy."""
    return trigger_ms(options.trigger) or (options.poll_seconds * 1_000 if options.address.is_polled else 0)
