"""How a member behaves: the consumer's settings about groups, with Kafka's defaults."""

from dataclasses import dataclass

from coordinator_core.assignors import Assignor, CooperativeStickyAssignor, RangeAssignor

#: `ConsumerProtocol.PROTOCOL_TYPE`.
CONSUMER = "consumer"


@dataclass(frozen=True, slots=True)
class MemberSettings:
    """Times in ms. `rebalance_timeout_ms` is the consumer's max.poll.interval.ms, `assignors` its partition.assignment.strategy.

    Raises ValueError where heartbeats would come too late for the session.
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

    def __post_init__(self) -> None:
        if not 0 < self.heartbeat_interval_ms < self.session_timeout_ms:
            raise ValueError(
                f"heartbeat_interval_ms {self.heartbeat_interval_ms} is not in 1–{self.session_timeout_ms - 1}, "
                "below session_timeout_ms"
            )
