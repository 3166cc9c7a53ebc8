"""Records that break a rule of the broker's loader, and the reports about them."""

from dataclasses import dataclass
from enum import StrEnum


class AnomalyKind(StrEnum):
    """Reason for a report. Each comment gives the reaction of a broker to the same record."""

    #: Type or value version that the era's loader does not know. Brokers skip unknown types since 3.4.1 (KIP-915); everything
    #: else fails the load.
    UNREAD = "unread"
    #: Bytes that are not a valid record: fail the load in every broker.
    UNDECODABLE = "undecodable"
    #: Control record whose key cannot be read.
    BAD_CONTROL_RECORD = "bad_control_record"
    #: A record of one group type for a group of another type: IllegalStateException in the Java coordinator.
    GROUP_TYPE = "group_type"
    #: A tombstone before the tombstones that must precede it: IllegalStateException in the Java coordinator (KAFKA-17306).
    EARLY_TOMBSTONE = "early_tombstone"
    #: Two members of a classic group with the same `group.instance.id`: IllegalStateException in both coordinators.
    DUPLICATE_INSTANCE_ID = "duplicate_instance_id"
    #: A subscription with a length field that exceeds its bytes: RuntimeException in the loader of both coordinators since 2.4.
    BAD_SUBSCRIPTION = "bad_subscription"
    #: A removed group with pending transactional commits: "Unexpected unload of active group" (Scala, KAFKA-4704).
    UNEXPECTED_UNLOAD = "unexpected_unload"


@dataclass(frozen=True, slots=True)
class Anomaly:
    """A report about one record. `offset` is its log offset, or -1 when the report concerns the whole log."""

    kind: AnomalyKind
    group_id: str | None
    offset: int
    detail: str
