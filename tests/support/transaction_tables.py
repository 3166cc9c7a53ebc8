"""Tables of a log of transactions, beside tables of offsets, as the job writes them without Spark."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from created_tables import created_tables
from log_builder import Log
from table_logs import change_table
from transaction_logs import TransactionLog

from coordinator_core.log.columns import RecordColumns, columns_of
from coordinator_core.log.damage import TornEnd
from coordinator_core.log.errors import LogError
from coordinator_core.sources.source import LogSource, one_after_another
from coordinator_core.state.era import Era
from pipelines.batch.apply import BatchApplier
from pipelines.query.engine import Snapshot
from pipelines.runtime.phases import Phases
from pipelines.runtime.progress import Progress
from pipelines.source.address import SourceAddress
from pipelines.source.log_reading import SourceOptions
from pipelines.source.transaction_log import TransactionLogReader
from pipelines.tables.writer import TablesWriter


def tables_without_records(folder: Path) -> Path:
    """Tables with a batch without records, so that the next run needs no Spark."""
    store = created_tables(folder)
    writer = TablesWriter.claim(store)
    writer.begin()
    at = datetime.now(UTC)
    writer.finish(Phases(at), at, era="4", retention_ms=Era.named("4").default_retention_ms, next_offsets={})
    return folder


class MemorySource:
    """Implements `LogSource` for logs of a test, up to an end that the test moves."""

    def __init__(self, logs: Iterable[TransactionLog]) -> None:
        self.logs = {log.partition: log for log in logs}
        self.limits: dict[int, int] = {}
        #: Whether the source knows the number of partitions.
        self.knows_partitions = False
        self.beginnings: dict[int, int] = {}
        #: Raised by the next requests.
        self.problem: LogError | None = None

    def partitions(self) -> tuple[int, ...]:
        return tuple(sorted(self.logs))

    def earliest_offsets(self) -> dict[int, int]:
        if self.problem is not None:
            raise self.problem
        return {partition: self.beginnings.get(partition, 0) for partition in self.logs}

    def end_offsets(self) -> dict[int, int]:
        return {partition: min(log.end, self.limits.get(partition, log.end)) for partition, log in self.logs.items()}

    def partition_count(self) -> int | None:
        return len(self.logs) if self.knows_partitions else None

    def read_columns(self, partition: int, start: int, end: int) -> Iterator[RecordColumns]:
        wanted = [record for record in self.logs[partition].records if start <= record.offset < end]
        middle = len(wanted) // 2
        for some in (wanted[:middle], wanted[middle:]):
            if some:
                yield columns_of(some, next_offset=some[-1].offset + 1)

    def read_many(self, wanted: Mapping[int, tuple[int, int]]) -> Iterator[tuple[int, RecordColumns]]:
        return one_after_another(self.read_columns, wanted)

    def torn_ends(self) -> tuple[TornEnd, ...]:
        return ()

    def topic_ids(self) -> dict[UUID, str]:
        return {}

    @property
    def topic_id(self) -> UUID | None:
        return None

    def leader_epochs(self) -> dict[int, int]:
        return {}

    def truncated_partitions(self, positions: Mapping[int, tuple[int, int]]) -> dict[int, int]:  # noqa: ARG002 - no epochs
        return {}

    def close(self) -> None:
        pass


@dataclass(frozen=True)
class MemoryOptions(SourceOptions):
    """Options of a source in memory."""

    source: MemorySource | None = None

    def open(self, *, seen_before: bool) -> LogSource:  # noqa: ARG002 - there is no outage
        assert self.source is not None
        return self.source


def memory_reader(source: MemorySource, progress: Progress, era: str = "4", scheme: str = "jsonl") -> TransactionLogReader:
    """A reader of logs in memory. With scheme `kafka` it knows the number of partitions."""
    options = MemoryOptions(SourceAddress(scheme, "memory"), era, Era.named(era).default_retention_ms, {}, source=source)
    source.knows_partitions = scheme == "kafka"
    return TransactionLogReader(options, progress)


class TransactionTables:
    """Tables of both topics under `root`; `at` is the time of every batch, None for the present."""

    def __init__(
        self, root: Path | str, *logs: TransactionLog, at: datetime | None = None, era: str = "4", scheme: str = "jsonl"
    ) -> None:
        self.source = MemorySource(logs)
        self.lines: list[str] = []
        self.store = created_tables(root)
        self._era = Era.named(era)
        retention_ms = self._era.default_retention_ms
        reader = memory_reader(self.source, self.lines.append, era, scheme)
        self.applier = BatchApplier(
            self.store,
            self._era,
            retention_ms,
            dict,
            bulk_rows=1_000_000,
            transactions=reader,
            progress=self.lines.append,
        )
        if at is not None:
            self.applier.clock = lambda: at

    def apply(self, offsets: Log | None = None, start: int = 0, end: int | None = None) -> None:
        """One batch: of a range of offsets and the new transactions, or of transactions alone."""
        if offsets is None:
            self.applier.apply_transactions(required=True)
        else:
            changes = change_table(offsets, self._era, start, offsets.end if end is None else end)
            self.applier.apply_rows(changes)

    def rows(self, sql: str) -> list[dict[str, Any]]:
        """Rows of a query at the last batch."""
        found: list[dict[str, Any]] = Snapshot.open(self.store.root).query(sql).to_pylist()
        return found
