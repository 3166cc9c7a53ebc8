"""Logs of `__transaction_state` for tests: records in the order of a log, arbitrary bytes included."""

from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import strategies as st
from record_log import RecordLog

from coordinator_core.codec import decode_transaction
from coordinator_core.codec.messages.transactions import PartitionsSchema, TransactionLogKey, TransactionLogValue
from coordinator_core.codec.transactions import TransactionRecord, encode_transaction
from coordinator_core.log.entries import LogRecord
from coordinator_core.state.anomaly import Anomaly
from coordinator_core.state.transaction_cache import TransactionMetadataCache
from coordinator_core.state.transaction_state import EMPTY, TransactionState

NOW_MS = 1_700_000_000_000


class TransactionLog(RecordLog):
    """One log partition. Methods return the record that they append."""

    def state(
        self,
        transactional_id: str,
        state: TransactionState,
        *,
        producer_id: int = 7,
        epoch: int = 0,
        topics: Mapping[str, tuple[int, ...]] | None = None,
        start_ms: int = -1,
        at: int = NOW_MS,
        timeout_ms: int = 60_000,
        version: int = 1,
        **tags: Any,
    ) -> LogRecord:
        """A state of an id; partitions by topic."""
        listed = tuple(PartitionsSchema(topic, numbers) for topic, numbers in (topics or {}).items())
        value = TransactionLogValue(
            producer_id=producer_id,
            producer_epoch=epoch,
            transaction_timeout_ms=timeout_ms,
            transaction_status=int(state),
            transaction_partitions=None if state is EMPTY else listed,
            transaction_last_update_timestamp_ms=at,
            transaction_start_timestamp_ms=start_ms,
            **tags,
        )
        record = TransactionRecord(TransactionLogKey(transactional_id), value, version)
        return self.raw(*encode_transaction(record), at=at)

    def tombstone(self, transactional_id: str, *, at: int = NOW_MS) -> LogRecord:
        return self.raw(*encode_transaction(TransactionRecord(TransactionLogKey(transactional_id), None, None)), at=at)

    def raw(self, key: bytes | None, value: bytes | None, *, at: int = NOW_MS, is_control: bool = False) -> LogRecord:
        """Arbitrary bytes."""
        offset = self.end
        self.records.append(LogRecord(self.partition, offset, at, key, value, is_control=is_control, batch_offset=offset))
        return self.records[-1]


def folded(records: list[LogRecord], era: str) -> tuple[TransactionMetadataCache, dict[int, str]]:
    """The ids after all records, applied one by one, and the reasons of records without effect, by offset."""
    cache, unread = TransactionMetadataCache(era), {}
    for record in records:
        change = cache.apply(record, None if record.is_control else decode_transaction(record.key, record.value))
        if isinstance(change, Anomaly):
            unread[record.offset] = change.detail
    return cache, unread


@st.composite
def transaction_logs(
    draw: st.DrawFn, *, partition: int = 0, names: Sequence[str] = ("a", "b", "ledger-writer", "é")
) -> TransactionLog:
    """Records of a few ids, most of them as brokers write them; some bytes are damaged."""
    log = TransactionLog(partition)
    for _ in range(draw(st.integers(1, 30))):
        name = draw(st.sampled_from(names))
        if draw(st.integers(0, 9)) == 0:
            log.tombstone(name)
            continue
        state = draw(st.sampled_from(list(TransactionState)[:6]))
        record = log.state(
            name,
            state,
            # a producer id belongs to one transactional id
            producer_id=10 * sum(map(ord, name)) + draw(st.integers(0, 3)),
            epoch=draw(st.integers(0, 32_767)),
            topics=draw(st.dictionaries(st.sampled_from(["t", "__consumer_offsets"]), st.tuples(st.integers(0, 4)), max_size=2)),
            start_ms=draw(st.sampled_from([-1, NOW_MS - 5_000])),
            at=NOW_MS + log.end,
            version=draw(st.sampled_from([0, 1])),
        )
        damage = draw(st.integers(0, 19))
        if damage < len(_DAMAGES):
            log.records.pop()
            key, value = _DAMAGES[damage](record, draw)
            log.raw(key, value, is_control=damage == 0)
    return log


def _truncated(record: LogRecord, draw: st.DrawFn) -> tuple[bytes | None, bytes | None]:
    value = record.value or b""
    return record.key, value[: draw(st.integers(0, len(value) - 1))]


def _longer_key(record: LogRecord, draw: st.DrawFn) -> tuple[bytes | None, bytes | None]:
    return (record.key or b"") + draw(st.binary(max_size=2)), record.value


def _any_key(record: LogRecord, draw: st.DrawFn) -> tuple[bytes | None, bytes | None]:
    return draw(st.none() | st.binary(max_size=8)), record.value


def _changed_value(record: LogRecord, draw: st.DrawFn) -> tuple[bytes | None, bytes | None]:
    value = bytearray(record.value or b"")
    value[draw(st.integers(0, len(value) - 1))] = draw(st.integers(0, 255))
    return record.key, bytes(value)


def _same(record: LogRecord, _draw: st.DrawFn) -> tuple[bytes | None, bytes | None]:
    return record.key, record.value


_DAMAGES = (_same, _truncated, _longer_key, _any_key, _changed_value)
