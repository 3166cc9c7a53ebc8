"""The subject of all checks: the options of the job, and the time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from coordinator_core.state.era import Era
from pipelines.query.engine import Snapshot
from pipelines.runtime.configuration import Configuration
from pipelines.runtime.progress import Progress, print_progress
from pipelines.source.address import SourceAddress
from pipelines.tables.location import local_folder
from pipelines.tables.store import Batch, TableStore


@dataclass(frozen=True)
class Subject:
    """Options of a job. Without an address, a folder of tables or a file of rules the checks of it are left out."""

    configuration: Configuration
    era: Era
    #: Offset retention of the job; without `retention_is_set` only if the brokers do not report theirs.
    retention_ms: int
    clock_ms: Callable[[], int]
    address: SourceAddress | None = None
    #: Address of `__transaction_state`; None if the job does not read it.
    transactions: SourceAddress | None = None
    tables: str | None = None
    rules: str | None = None
    #: The settings of the dashboard in words, from the checks of its start; None if it is not installed.
    dashboard: Callable[[], str] | None = None
    starts_spark: bool = False
    retention_is_set: bool = True
    #: Lines of steps that take long.
    progress: Progress = print_progress

    @cached_property
    def kafka(self) -> dict[str, str]:
        """Connection options of the source that differ from their defaults. May hold secrets."""
        return self.configuration.kafka_options

    @property
    def is_local(self) -> bool:
        """True if the tables are in a folder, not in an object store."""
        return self.tables is not None and local_folder(self.tables) is not None

    @cached_property
    def store(self) -> TableStore:
        """The tables."""
        assert self.tables is not None
        return TableStore(self.tables)

    @cached_property
    def last(self) -> Batch | None:
        """The last batch; None without tables or batches."""
        return self.store.last_batch() if self.tables is not None and self.store.exists() else None

    @cached_property
    def topics(self) -> Sequence[str] | None:
        """Topics with committed offsets; None without tables or batches."""
        if self.last is None:
            return None
        rows = Snapshot(self.store, self.last).query("SELECT DISTINCT topic FROM offsets ORDER BY topic")
        return [topic for topic in rows["topic"].to_pylist() if topic]

    @cached_property
    def transactional_ids(self) -> Sequence[str]:
        """Transactional ids of the tables; none without tables or batches."""
        if self.last is None:
            return ()
        rows = Snapshot(self.store, self.last).query("SELECT transactional_id FROM transactions ORDER BY transactional_id")
        found: list[str] = rows["transactional_id"].to_pylist()
        return found
