"""Reading of `__transaction_state` in the driver: the records after a position, reduced per log partition."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from coordinator_core.log.errors import LogError, LogNotFound, LogUnreachable
from coordinator_core.protocol.internal_topics import TRANSACTION_STATE_TOPIC
from coordinator_core.reduction.reduced_transactions import TransactionReduction
from coordinator_core.state.transaction_cache import TRANSACTION_LOADERS
from pipelines.runtime.errors import GrouplakeError, TablesError, UsageError
from pipelines.runtime.failpoints import failpoint
from pipelines.runtime.progress import Progress
from pipelines.source.address import SourceAddress, deleted_records_error, parse_address
from pipelines.source.log_reading import SourceOptions
from pipelines.source.log_stream import LogStream
from pipelines.source.position import Position
from pipelines.source.position_file import epochs_at, read_positions, write_positions
from pipelines.source.ranges import LogRange, Offsets, ranges

#: Value of the option for the topic beside that of `--source`.
BESIDE_SOURCE = "source"

#: An outage is reported after this time: the next look at the log tries again, and offsets are read meanwhile.
_RETRY_SECONDS = "5"


def transaction_address(source: SourceAddress, given: str, era: str) -> SourceAddress:
    """Address of `__transaction_state`: `given`, or of the topic beside `source` for the value `source`.

    Raises:
        UsageError: the address is invalid, cannot be read without Spark, or the era has no transactions.
    """
    if era not in TRANSACTION_LOADERS:
        raise UsageError(f"--transactions: era {era} has no transactions; use --era {', '.join(TRANSACTION_LOADERS)}")
    beside = given == BESIDE_SOURCE
    address = replace(source, topic=TRANSACTION_STATE_TOPIC) if beside else parse_address(given, TRANSACTION_STATE_TOPIC)
    if address.is_spark_kafka:
        raise UsageError(
            f"--transactions: {address} cannot be read without Spark; add an address, as --transactions kafka://HOST:PORT"
        )
    if beside and source.scheme == "jsonl":
        raise UsageError(f"--transactions: {source} has one topic only; add an address, as --transactions jsonl:FILE")
    return replace(address, topic=TRANSACTION_STATE_TOPIC) if address.scheme == "segments" else address


class TransactionRange(NamedTuple):
    """New records: the offsets after them, and their reduction per log partition."""

    next_offsets: Offsets
    reductions: tuple[TransactionReduction, ...]
    #: Number of partitions of the topic; None for a source that may lack some of them.
    partitions: int | None = None

    @property
    def records_read(self) -> int:
        """Number of records in the range."""
        return sum(reduction.records_read for reduction in self.reductions)

    @property
    def records_kept(self) -> int:
        """Number of transactional ids that the range changes."""
        return sum(len(reduction.transactions) for reduction in self.reductions)


class OutageTolerantReader(ABC):
    """A reader of transactions beside a job that continues without them: the begin and the end of an outage are a line each."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._is_failing = False

    @abstractmethod
    def read(self, after: Offsets | None) -> TransactionRange | None:
        """The records after a position, None: from the start. Returns None if there are none.

        Raises:
            GrouplakeError: no broker answers.
            TablesError: any other error.
        """

    def read_if_reachable(self, after: Offsets | None) -> TransactionRange | None:
        """As `read`; while no broker answers, None. An outage is reported once.

        Raises:
            TablesError: any other error.
        """
        try:
            return self.read(after)
        except TablesError:
            raise
        except GrouplakeError as error:
            if self._begins_to_fail():
                self._progress(str(error))
            return None

    def _begins_to_fail(self) -> bool:
        """Note a failure; True for the first one of an outage."""
        was_failing, self._is_failing = self._is_failing, True
        return not was_failing

    def _report_recovery(self) -> None:
        if self._is_failing:
            self._progress("transactions are read again")
        self._is_failing = False


class TransactionLogReader(OutageTolerantReader):
    """Reads the topic from the position of the tables to its present end. For one thread at a time.

    A topic that does not exist yet has no records: brokers create it for the first transactional producer. `positions` keeps the
    leader epochs for the next process; None: they are compared within this one.
    """

    def __init__(self, options: SourceOptions, progress: Progress, positions: Path | None = None) -> None:
        super().__init__(progress)
        self._options = replace(options, kafka={**options.kafka, "retry_seconds": _RETRY_SECONDS})
        self._stream: LogStream | None = None
        self._positions = positions
        #: Positions of which one is that of the tables: before and after the last range.
        self._known: tuple[Position, ...] = () if positions is None else tuple(read_positions(positions))

    def read(self, after: Offsets | None) -> TransactionRange | None:
        """The records after a position, None: from the start of the log. Returns None if there are none.

        Raises:
            GrouplakeError: no broker answers.
            TablesError: the log cannot be read, or does not continue at `after`.
        """
        try:
            return self._read(after or {})
        except LogNotFound as error:
            self.close()
            if self._begins_to_fail():
                self._progress(f"no transactions are read: {error}")
            return None
        except LogUnreachable as error:
            self.close()
            raise GrouplakeError(f"transactions cannot be read: {error}") from error
        except LogError as error:
            raise TablesError(str(error)) from error

    def close(self) -> None:
        """Close the log; the next read opens it again."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def _read(self, after: Offsets) -> TransactionRange | None:
        if self._stream is None:
            self._stream = LogStream(self._options)
        first = self._stream.start().offsets
        for partition, offset in after.items():
            if 0 < offset < first.get(partition, 0):
                raise deleted_records_error(self._options.address, partition, offset, first[partition])
        begin = Position({**first, **after}, epochs_at(self._known, after) if after else {})
        end = self._stream.end_after(begin)
        self._report_recovery()
        todo = ranges(begin.offsets, end.offsets)
        self._known = (begin, end) if todo else (end,)
        if todo or (end.epochs and not begin.epochs):
            self._store_positions()
        partitions = self._stream.ends.partitions if self._stream.ends else None
        return TransactionRange(end.offsets, reduced(self._options, todo), partitions) if todo else None

    def _store_positions(self) -> None:
        """Keep the positions before and after a batch, before it is applied, for the next process."""
        if self._positions is None:
            return
        try:
            write_positions(self._positions, self._known)
        except OSError as error:
            raise TablesError(str(error)) from error


def reduced(options: SourceOptions, todo: list[LogRange]) -> tuple[TransactionReduction, ...]:
    """Read ranges of the topic, and reduce each of them. Raises LogError."""
    # a run that finds nothing new does not load compiled code
    from coordinator_core.reduction.transaction_reduction import TransactionReducer

    reducers: Mapping[int, TransactionReducer] = {one.partition: TransactionReducer(options.era, one.partition) for one in todo}
    source = options.open(seen_before=True)
    try:
        for partition, columns in source.read_many({one.partition: (one.start, one.end) for one in todo}):
            reducers[partition].add(columns)
            failpoint("transactions:read")
    finally:
        source.close()
    return tuple(reducer.finish() for reducer in reducers.values())
