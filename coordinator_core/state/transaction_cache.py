"""Fold of the records of `__transaction_state` into the transactional ids that a coordinator has after a load."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from coordinator_core.codec import Undecodable, UnknownType
from coordinator_core.codec.outcomes import UnknownVersion
from coordinator_core.codec.transactions import TransactionRecord
from coordinator_core.log.entries import LogRecord
from coordinator_core.state.anomaly import Anomaly, AnomalyKind
from coordinator_core.state.transaction_metadata import TransactionMetadata, loaded_metadata


@dataclass(frozen=True, slots=True)
class TransactionLoader:
    """Rules of an era's loader (`TransactionStateManager.loadTransactionMetadata`).

    `value_versions` are the versions that it reads. Where it does not skip a record, the load of the log partition ends there:
    the error is logged, and the coordinator serves the ids that it has read so far.
    """

    value_versions: range
    skips_unknown_types: bool
    skips_unknown_versions: bool


#: By era, for the last release of its span. Releases up to 0.10 have no transactions.
TRANSACTION_LOADERS: Mapping[str, TransactionLoader] = MappingProxyType(
    {
        "1": TransactionLoader(range(1), skips_unknown_types=False, skips_unknown_versions=False),
        "2": TransactionLoader(range(1), skips_unknown_types=False, skips_unknown_versions=False),
        "3": TransactionLoader(range(2), skips_unknown_types=True, skips_unknown_versions=False),
        "4": TransactionLoader(range(2), skips_unknown_types=True, skips_unknown_versions=True),
    }
)


class LoggedTransaction(NamedTuple):
    """A transactional id with the log position and the timestamp (ms) of its last record."""

    metadata: TransactionMetadata
    log_partition: int
    log_offset: int
    record_timestamp: int


class TransactionChange(NamedTuple):
    """Change made by one record. `before` is None for an id without a state, `after` for a tombstone."""

    transactional_id: str
    before: LoggedTransaction | None
    after: LoggedTransaction | None


class TransactionMetadataCache:
    """The transactional ids of one or more log partitions. Only records change them.

    Like `GroupState`, it accepts any record. One that ends the load of a broker is reported, and the later ones are applied.
    """

    def __init__(self, era: str) -> None:
        """Raises ValueError for an era without transactions."""
        if era not in TRANSACTION_LOADERS:
            raise ValueError(f"era {era!r} has no transactions: use {', '.join(TRANSACTION_LOADERS)}")
        self.era = era
        self.loader = TRANSACTION_LOADERS[era]
        self._logged: dict[str, LoggedTransaction] = {}

    @property
    def transactions(self) -> Mapping[str, LoggedTransaction]:
        """Every id with its last record."""
        return MappingProxyType(self._logged)

    def metadata(self) -> Mapping[str, TransactionMetadata]:
        """The state of every id, as comparable values."""
        return {transactional_id: logged.metadata for transactional_id, logged in self._logged.items()}

    def add(self, loaded: Iterable[LoggedTransaction]) -> None:
        """Add ids of a log partition that has none here yet."""
        self._logged.update((logged.metadata.transactional_id, logged) for logged in loaded)

    def apply(self, log_record: LogRecord, decoded: TransactionRecord | Undecodable | None) -> TransactionChange | Anomaly:
        """Apply the next record of its log partition. `decoded` is None for a control record, which has no effect here."""
        if not isinstance(decoded, TransactionRecord):
            kind = AnomalyKind.UNREAD if isinstance(decoded, UnknownType | UnknownVersion) else AnomalyKind.UNDECODABLE
            reason = "control record in a log without transactions" if decoded is None else decoded.reason
            return Anomaly(kind, None, log_record.offset, reason)
        transactional_id = decoded.key.transactional_id
        before = self._logged.get(transactional_id)
        if decoded.value is None:
            self._logged.pop(transactional_id, None)
            return TransactionChange(transactional_id, before, None)
        if decoded.value_version not in self.loader.value_versions:
            detail = f"{transactional_id!r}: value version {decoded.value_version}, the era reads {self.loader.value_versions}"
            return Anomaly(AnomalyKind.UNREAD, None, log_record.offset, detail)
        try:
            metadata = loaded_metadata(transactional_id, decoded.value)
        except ValueError as error:
            return Anomaly(AnomalyKind.UNDECODABLE, None, log_record.offset, f"{transactional_id!r}: {error}")
        after = LoggedTransaction(metadata, log_record.partition, log_record.offset, log_record.timestamp)
        self._logged[transactional_id] = after
        return TransactionChange(transactional_id, before, after)

    def ends_load(self, decoded: TransactionRecord | Undecodable | None) -> bool:
        """True if a broker's load ends at such a record, of those that `apply` reports."""
        if isinstance(decoded, UnknownType):
            return not self.loader.skips_unknown_types
        if isinstance(decoded, UnknownVersion):
            return not self.loader.skips_unknown_versions
        if isinstance(decoded, TransactionRecord) and decoded.value_version not in self.loader.value_versions:
            return not self.loader.skips_unknown_versions
        return True
