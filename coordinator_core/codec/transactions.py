"""Codec of the records of `__transaction_state` (`TransactionLog`)."""

from dataclasses import dataclass

from coordinator_core.codec.envelope import open_envelope, record_codecs, seal_envelope
from coordinator_core.codec.messages.transactions import TransactionLogKey, TransactionLogValue
from coordinator_core.codec.outcomes import Undecodable
from coordinator_core.codec.schema import catalog

#: The only record type of that topic.
TRANSACTION_RECORD = 0


@dataclass(frozen=True, slots=True)
class TransactionRecord:
    """State of one transactional id; `value` and `value_version` are None for a tombstone."""

    key: TransactionLogKey
    value: TransactionLogValue | None
    value_version: int | None


_LAYOUTS = catalog().layouts
_CODECS = record_codecs([(TRANSACTION_RECORD, _LAYOUTS["TransactionLogKey"], _LAYOUTS["TransactionLogValue"], None)])


def decode_transaction(key: bytes | None, value: bytes | None) -> TransactionRecord | Undecodable:
    """Decode any bytes to a record, or to the reason why they are not one; never raises."""
    return open_envelope(_CODECS, key, value, _transaction_record)


def encode_transaction(record: TransactionRecord) -> tuple[bytes, bytes | None]:
    """Encode key and value. Raises ValueError if the record cannot be written."""
    return seal_envelope(_CODECS, TRANSACTION_RECORD, record.key, record.value, record.value_version)


def _transaction_record(
    _record_type: int, key: TransactionLogKey, value: TransactionLogValue | None, value_version: int | None
) -> TransactionRecord:
    return TransactionRecord(key, value, value_version)
