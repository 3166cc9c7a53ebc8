"""The open transaction that holds the last stable offset of a partition, and the one definition of a hanging one. Times in ms.

The record at the last stable offset is the first one of the oldest open transaction. Its batch names the producer. The start of
the transaction is that of its transactional id, or the timestamp of that record, or at least the first sample with it.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from coordinator_core.health.status import StatusSettings


class ReadableSince(NamedTuple):
    """Bounds of the time at which a record became readable; `after_ms` is None if it was readable at the first sample."""

    after_ms: int | None
    by_ms: int


class StartMethod(StrEnum):
    """Origin of the start of an open transaction."""

    #: `start_timestamp` of its transactional id, from the clock of the coordinator.
    TRANSACTION = "transaction"
    #: Timestamp of its first record.
    RECORD = "record"
    #: First sample with that record: the transaction is open at least since then.
    SAMPLE = "sample"


class OpenTransaction(NamedTuple):
    """The oldest open transaction of a partition; None for a producer or an id that is unknown."""

    since_ms: int
    method: StartMethod
    producer_id: int | None = None
    transactional_id: str | None = None


class FirstRecord(NamedTuple):
    """The first record of a transaction, from the header of its batch; `timestamp_ms` is None if it has none."""

    producer_id: int
    producer_epoch: int
    timestamp_ms: int | None


class KnownTransaction(NamedTuple):
    """A transactional id. `has_partition`: its transaction is open and contains the partition."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    start_ms: int | None
    timeout_ms: int
    has_partition: bool


def hangs(since_ms: int, at_ms: int, settings: StatusSettings) -> bool:
    """True for a transaction that is open for longer than `transaction_ms`, in whatever state.

    The rule `hanging_transaction` and its alert use this function; the view `hanging_transactions` has the same limit.
    """
    return at_ms - since_ms > settings.transaction_ms


def open_transaction(seen: ReadableSince, first: FirstRecord | None, known: Sequence[KnownTransaction]) -> OpenTransaction:
    """The open transaction whose first record was seen in a sample (`seen`).

    - `first`: that record, None if it was not read.
    - `known`: transactional ids that have the partition or the producer; none if transactions are not read.
    """
    if first is None:
        having = [each for each in known if each.has_partition and each.start_ms is not None and each.start_ms <= seen.by_ms]
        if len(having) != 1:
            return OpenTransaction(seen.by_ms, StartMethod.SAMPLE)
        (only,) = having
        assert only.start_ms is not None
        return OpenTransaction(only.start_ms, StartMethod.TRANSACTION, only.producer_id, only.transactional_id)
    written_ms = _plausible(first.timestamp_ms, seen)
    since_ms, method = (seen.by_ms, StartMethod.SAMPLE) if written_ms is None else (written_ms, StartMethod.RECORD)
    own = next((each for each in known if each.producer_id == first.producer_id), None)
    if own is not None and own.has_partition and own.producer_epoch == first.producer_epoch and own.start_ms is not None:
        # no record precedes its transaction; one that is later by more than the timeout belongs to a later transaction than the
        # tables have
        is_later = since_ms - own.start_ms > own.timeout_ms
        since_ms, method = (since_ms, method) if is_later else (min(own.start_ms, seen.by_ms), StartMethod.TRANSACTION)
    return OpenTransaction(since_ms, method, first.producer_id, None if own is None else own.transactional_id)


def _plausible(timestamp_ms: int | None, seen: ReadableSince) -> int | None:
    """The timestamp of a record, unless the samples show that it is false: producers may set any time."""
    if timestamp_ms is None or timestamp_ms > seen.by_ms:
        return None
    return None if seen.after_ms is not None and timestamp_ms < seen.after_ms else timestamp_ms
