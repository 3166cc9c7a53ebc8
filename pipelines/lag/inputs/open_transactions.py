"""The open transactions that block positions of groups: columns of `lag`. Times in ms.

A position that is blocked in two samples gets them. A transaction that ends between two samples blocks nothing for long, and in
topics of transactional producers some transaction is open in most samples.
"""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from coordinator_core.codec.arrays import Int64s
from coordinator_core.health import (
    NONE,
    FirstRecord,
    KnownTransaction,
    OpenTransaction,
    ReadableSince,
    StartMethod,
    open_transaction,
)
from coordinator_core.health.sample_columns import CurrentLogs, SampleColumns, nullable, readable_columns
from coordinator_core.log.errors import LogError
from pipelines.lag.inputs.counted_records import ReadableEnds, retry_after_ms
from pipelines.query.engine import Snapshot
from pipelines.runtime.timestamps import TIMESTAMP, to_ms
from pipelines.runtime.timestamps import at_ms as timestamp

_Key = tuple[str, int]

#: The columns of `lag`, in the order of `OpenTransaction`.
COLUMNS: Mapping[str, pa.DataType] = {
    "blocked_since": TIMESTAMP,
    "blocked_since_method": pa.string(),
    "blocked_by_producer_id": pa.int64(),
    "blocked_by_transactional_id": pa.string(),
}
_TRANSACTIONS = """
SELECT transactional_id, producer_id, producer_epoch, start_timestamp, timeout_ms, partitions FROM transactions
WHERE state IN ('Ongoing', 'PrepareCommit', 'PrepareAbort') OR producer_id IN ({producers})
"""


class ReadFirstRecords(Protocol):
    """Reads the record at an offset of each (topic, partition); a text is the reason why it is unknown."""

    def __call__(self, offsets: Mapping[_Key, int], /) -> Mapping[_Key, FirstRecord | str]: ...


class OpenTransactions:
    """Open transactions from sample to sample. `read` is None for a source without brokers."""

    def __init__(self, read: ReadFirstRecords | None) -> None:
        self._read = read
        #: Offset and record of each blocked partition.
        self._records: dict[_Key, tuple[int, FirstRecord]] = {}
        self._retry_at_ms: dict[_Key, int] = {}

    def add_columns(self, lag: pa.Table, snapshot: Snapshot, samples: SampleColumns, partition: Int64s) -> pa.Table:
        """`lag` with the columns of COLUMNS. `partition` is the number of each row's partition in `samples`."""
        blocked = lag["blocked_by_transaction"].fill_null(False).to_numpy()
        rows = np.flatnonzero(blocked)
        if len(rows):
            ends = ReadableEnds.of(samples, partition[rows])
            rows = rows[ends.last_stable == ends.last_stable_before]
        found = [as_row(each) for each in self._of_rows(rows, lag, snapshot, samples, partition)]
        number = np.full(lag.num_rows, NONE)
        number[rows] = np.arange(len(rows))
        numbers = nullable(number)
        for name, kind in COLUMNS.items():
            lag = lag.append_column(name, pa.array([each[name] for each in found], kind).take(numbers))
        return lag

    def _of_rows(
        self, rows: Int64s, lag: pa.Table, snapshot: Snapshot, samples: SampleColumns, partition: Int64s
    ) -> list[OpenTransaction]:
        if not len(rows):
            self._records = {}
            return []
        stable = samples.last_stable[samples.newest][partition[rows]]
        taken = lag.select(["topic", "partition"]).take(pa.array(rows))
        keys = list(zip(taken["topic"].to_pylist(), taken["partition"].to_pylist(), strict=True))
        self._refresh(dict(zip(keys, stable.tolist(), strict=True)), int(samples.answered_at_ms.max()))
        known = self._known(snapshot, set(keys))
        seen = readable_columns(CurrentLogs(samples), partition[rows], stable)
        bounds = zip(seen.after_ms.tolist(), seen.by_ms.tolist(), strict=True)
        return [
            open_transaction(
                ReadableSince(None if after == NONE else after, by),
                self._records[key][1] if key in self._records else None,
                known.get(key, ()),
            )
            for key, (after, by) in zip(keys, bounds, strict=True)
        ]

    def _refresh(self, offsets: Mapping[_Key, int], now_ms: int) -> None:
        """Read the first records that are not known yet, and forget all others."""
        self._records = {key: each for key, each in self._records.items() if offsets.get(key) == each[0]}
        self._retry_at_ms = {key: at for key, at in self._retry_at_ms.items() if at > now_ms}
        missing = {key: at for key, at in offsets.items() if key not in self._records and key not in self._retry_at_ms}
        if self._read is None or not missing:
            return
        try:
            results = self._read(missing)
        except LogError:
            # the sample has just succeeded; the next one tries again
            return
        for key, found in results.items():
            if isinstance(found, str):
                self._retry_at_ms[key] = now_ms + retry_after_ms(found)
            else:
                self._records[key] = missing[key], found

    def _known(self, snapshot: Snapshot, blocked: set[_Key]) -> dict[_Key, list[KnownTransaction]]:
        """By partition, the transactional ids that have it in an open transaction, and that of its producer."""
        if not snapshot.batch.has_transactions:
            return {}
        by_producer: dict[int, list[_Key]] = {}
        for key, (_, record) in self._records.items():
            by_producer.setdefault(record.producer_id, []).append(key)
        producers = ", ".join(map(str, by_producer)) or "NULL"
        found: dict[_Key, list[KnownTransaction]] = {}
        for row in snapshot.query(_TRANSACTIONS.format(producers=producers)).to_pylist():
            having = {(each["topic"], number) for each in row["partitions"] for number in each["partitions"]} & blocked
            for key in having | set(by_producer.get(row["producer_id"], ())):
                found.setdefault(key, []).append(_transaction(row, has_partition=key in having))
        return found


def _transaction(row: Mapping[str, Any], *, has_partition: bool) -> KnownTransaction:
    start = row["start_timestamp"]
    return KnownTransaction(
        row["transactional_id"],
        row["producer_id"],
        row["producer_epoch"],
        None if start is None else to_ms(start),
        row["timeout_ms"],
        has_partition,
    )


def as_row(found: OpenTransaction) -> dict[str, Any]:
    """The columns of COLUMNS."""
    values = (timestamp(found.since_ms), str(found.method), found.producer_id, found.transactional_id)
    return dict(zip(COLUMNS, values, strict=True))


def from_row(row: Mapping[str, Any]) -> OpenTransaction | None:
    """The open transaction in a row with the columns of COLUMNS; None if they are null, or if an earlier layout lacks them."""
    if row.get("blocked_since") is None:
        return None
    since, method, producer, transactional_id = (row[name] for name in COLUMNS)
    return OpenTransaction(to_ms(since), StartMethod(method), producer, transactional_id)
