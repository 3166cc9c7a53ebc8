"""What a record did that a coordinator would not have expected."""

from dataclasses import dataclass
from enum import StrEnum


class AnomalyKind(StrEnum):
    """Why a record was reported. The comments say what a broker does at the same place."""

    #: Type or value version that the era's loader does not know: unknown types are skipped since 3.4.1 (KIP-915), the rest is
    #: fatal for the load.
    UNREAD = "unread"
    #: Bytes that are no record: fatal for the load of every broker.
    UNDECODABLE = "undecodable"
    #: Control record whose key cannot be read.
    BAD_CONTROL_RECORD = "bad_control_record"
    #: A record of one group type over a group of another: IllegalStateException in the Java coordinator.
    GROUP_TYPE = "group_type"
    #: A tombstone before the tombstones that it needs: IllegalStateException in the Java coordinator (KAFKA-17306).
    EARLY_TOMBSTONE = "early_tombstone"
    #: Two members of a classic group with one `group.instance.id`: IllegalStateException in both coordinators.
    DUPLICATE_INSTANCE_ID = "duplicate_instance_id"
    #: A subscription whose lengths say more than it has: RuntimeException in the loader of both coordinators since 2.4.
    BAD_SUBSCRIPTION = "bad_subscription"
    #: A removed group that pending transactional commits bring back: "Unexpected unload of active group" (Scala, KAFKA-4704).
    UNEXPECTED_UNLOAD = "unexpected_unload"


@dataclass(frozen=True, slots=True)
class Anomaly:
    """A report about one record: `offset` is its log offset, -1 when the report is about the log as a whole."""

    kind: AnomalyKind
    group_id: str | None
    offset: int
    detail: str
