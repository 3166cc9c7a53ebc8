"""The consumer's group settings, with Kafka's defaults."""

from dataclasses import dataclass

from coordinator_core.assignors import Assignor, CooperativeStickyAssignor, RangeAssignor

#: `ConsumerProtocol.PROTOCOL_TYPE`.
CONSUMER = "consumer"


@dataclass(frozen=True, slots=True)
class MemberSettings:
    """Times in ms. `rebalance_timeout_ms` is the consumer's max.poll.interval.ms, `assignors` its partition.assignment.strategy,
    `leave_group_on_close` its internal.leave.group.on.close.

    Defaults are those of Kafka 4; the session timeout was 30 s in 0.9 and 10 s up to 2.8, the only assignor `range` up to 2.8.
    Raises ValueError for a heartbeat interval not below the session timeout, or a commit interval below 1 ms.
    """

    group_id: str
    assignors: tuple[Assignor, ...] = (RangeAssignor(), CooperativeStickyAssignor())
    session_timeout_ms: int = 45_000
    rebalance_timeout_ms: int = 300_000
    heartbeat_interval_ms: int = 3_000
    retry_backoff_ms: int = 100
    group_instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    enable_auto_commit: bool = True
    auto_commit_interval_ms: int = 5_000
    leave_group_on_close: bool = True

    def __post_init__(self) -> None:
        if not 0 < self.heartbeat_interval_ms < self.session_timeout_ms:
            raise ValueError(
                f"heartbeat_interval_ms is {self.heartbeat_interval_ms}: use 1–{self.session_timeout_ms - 1}, "
                "below session_timeout_ms"
            )
        if self.auto_commit_interval_ms < 1:
            raise ValueError(f"auto_commit_interval_ms is {self.auto_commit_interval_ms}: use 1 or more")
