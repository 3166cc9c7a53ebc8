"""What Kafka's log cleaner may do to a partition (`LogCleaner`, `CleanedTransactionMetadata`)."""

from collections.abc import Iterable

from coordinator_core.log.entries import ControlType, LogRecord
from coordinator_core.log.record_batch import control_type


def last_stable_offset(records: Iterable[LogRecord]) -> int:
    """First offset of the oldest open transaction; the cleaner does not read past it."""
    records = list(records)
    began: dict[int, int] = {}
    for record in records:
        if record.is_control:
            began.pop(record.producer_id, None)
        elif record.is_transactional:
            began.setdefault(record.producer_id, record.offset)
    return min([*began.values(), records[-1].offset + 1 if records else 0])


def compacted(records: Iterable[LogRecord], end: int, tombstones_before: int) -> list[LogRecord]:
    """The log after everything below `end` was cleaned.

    For each key the last record is kept. Records of aborted transactions do not count and are removed, markers are kept.
    Tombstones below `tombstones_before` are older than `delete.retention.ms` and are removed.
    """
    records = list(records)
    end = min(end, last_stable_offset(records))
    aborted = _aborted(records)
    last = {r.key: r.offset for r in records if r.offset < end and not r.is_control and r.offset not in aborted}
    return [r for r in records if r.offset >= end or _stays(r, last, aborted, tombstones_before)]


def _stays(record: LogRecord, last: dict[bytes | None, int], aborted: set[int], tombstones_before: int) -> bool:
    if record.is_control:
        return True
    if record.offset in aborted or record.offset != last[record.key]:
        return False
    return record.value is not None or record.offset >= tombstones_before


def _aborted(records: list[LogRecord]) -> set[int]:
    in_transaction: dict[int, list[int]] = {}
    aborted: set[int] = set()
    for record in records:
        if not record.is_transactional:
            continue
        if not record.is_control:
            in_transaction.setdefault(record.producer_id, []).append(record.offset)
            continue
        written = in_transaction.pop(record.producer_id, [])
        if control_type(record.key) == ControlType.ABORT:
            aborted.update(written)
    return aborted
