"""The timeline of a run as data: topics, members, and the steps that plant incidents at known times."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from traffic import Stream

LIBRDKAFKA, JAVA, FRANZ = "librdkafka", "java", "franz"

ORDERS, TELEMETRY, PAYMENTS, PARCELS, CLICKS, SINGLE = "orders", "telemetry", "payments", "parcels", "clicks", "single"
READINGS = "readings"
STREAMS = (
    Stream(ORDERS, 3, 30),
    Stream(TELEMETRY, 1, 40),
    Stream(PAYMENTS, 1, 10, "payments-writer"),
    Stream(PARCELS, 1, 10),
    Stream(CLICKS, 4, 40),
    Stream(SINGLE, 1, 5),
    Stream(READINGS, 3, 18),
)
#: Transactional id of the transaction that is left open.
LEFT_OPEN = "payments-batch-17"
#: Share of the topic's rate that the slow group reads.
SLOW_SHARE = 0.9


@dataclass(frozen=True)
class Member:
    """A consumer; its client id is unique."""

    group: str
    library: str
    topic: str
    client_id: str
    isolation: str = "read_uncommitted"


@dataclass(frozen=True)
class Step:
    """An action of `Planting`, `at` seconds after the start."""

    at: float
    action: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Limits:
    """Times in seconds that a statement is judged by.

    - `found`: kind of incident → time, with the job running, within which readers report it.
    - `sample`: usual time between two samples; on a busy machine, where it is longer, so are these times.
    - `lingers`: kind → time for which a report may remain after the end: the window of the rule.
    - `delay`: greatest time between an event and its place in the tables: trigger, interval of samples, work of a batch.
    - `lag`: time for which a position that is told may be older than the log end beside it.
    - `stale`: age of the newest batch, without the time of the longest one, above which every reader states it.
    - `since`: tolerance of a start, `since_of_growth` of that of a lag which grows.
    """

    found: Mapping[str, float]
    lingers: Mapping[str, float]
    delay: float
    lag: float
    sample: float
    stale: float
    since: float
    since_of_growth: float

    def since_of(self, kind: str) -> float:
        """The tolerance of the start of an incident of a kind."""
        return self.since_of_growth if kind == "falls_behind" else self.since


@dataclass(frozen=True)
class Scenario:
    """All that a run needs. `status` has settings of the rules, `seconds` is the end.

    `unseen` are kinds of incidents that the source of the job does not show, and that no reader has to report.
    """

    members: Sequence[Member]
    steps: Sequence[Step]
    seconds: float
    trigger: str
    sample_seconds: int
    status: Mapping[str, int]
    retention_minutes: int
    limits: Limits
    streams: Sequence[Stream] = STREAMS
    unseen: frozenset[str] = frozenset()

    def topics(self) -> dict[str, int]:
        """Topic → partitions."""
        return {stream.topic: stream.partitions for stream in self.streams}

    def groups(self) -> dict[str, str]:
        """Group → its topic."""
        return {member.group: member.topic for member in self.members}


MEMBERS = (
    Member("healthy-librdkafka", LIBRDKAFKA, ORDERS, "healthy-librdkafka-1"),
    Member("healthy-java", JAVA, ORDERS, "healthy-java-1"),
    Member("healthy-franz", FRANZ, ORDERS, "healthy-franz-1"),
    Member("stopped-java", JAVA, ORDERS, "stopped-java-1"),
    Member("late-stop", LIBRDKAFKA, ORDERS, "late-stop-1"),
    Member("slow-franz", FRANZ, TELEMETRY, "slow-franz-1"),
    Member("blocked-librdkafka", LIBRDKAFKA, PAYMENTS, "blocked-librdkafka-1", "read_committed"),
    Member("blocked-java", JAVA, PAYMENTS, "blocked-java-1", "read_committed"),
    Member("blocked-franz", FRANZ, PAYMENTS, "blocked-franz-1", "read_committed"),
    Member("rewound", LIBRDKAFKA, ORDERS, "rewound-1"),
    Member("reset", LIBRDKAFKA, ORDERS, "reset-1"),
    Member("recreated", LIBRDKAFKA, ORDERS, "recreated-1"),
    Member("storm", LIBRDKAFKA, ORDERS, "storm-1"),
    Member("expiring", LIBRDKAFKA, ORDERS, "expiring-1"),
    Member("lost", LIBRDKAFKA, PARCELS, "lost-1"),
    Member("skewed", LIBRDKAFKA, CLICKS, "skewed-1"),
    Member("idle", LIBRDKAFKA, SINGLE, "idle-1"),
    *(Member("hot", LIBRDKAFKA, READINGS, f"hot-{number}") for number in (1, 2, 3)),
)


def timeline(before: float, away: float, after: float) -> tuple[list[Step], float]:
    """Steps and end of a run: incidents, `before` seconds with the job, `away` without it, and `after` with it again."""
    back = before + away
    steps = [
        Step(0, "set_rate", {"client_id": "stopped-java-1", "rate": 0.0}),
        Step(1, "slow_down", {"client_id": "slow-franz-1", "share": SLOW_SHARE}),
        Step(2, "skip", {"client_id": "skewed-1", "partition": 3}),
        Step(3, "open_transaction", {"transactional_id": LEFT_OPEN, "topic": PAYMENTS, "records": 3}),
        Step(4, "join", {"member": Member("idle", LIBRDKAFKA, SINGLE, "idle-2")}),
        # 40 records a second beside 6 in the other partitions, of which each member reads 20
        Step(5, "heat", {"group": "hot", "partition": 2, "rate": 34.0, "limit": 20.0}),
        Step(6, "set_rate", {"client_id": "lost-1", "rate": 0.0}),
        Step(8, "rewind", {"client_id": "rewound-1", "partition": 1, "records": 60}),
        Step(10, "reset_by_admin", {"client_id": "reset-1", "records": 50}),
        Step(12, "recreate", {"client_id": "recreated-1"}),
        Step(14, "leave", {"client_id": "expiring-1"}),
        # long enough after the group's first rebalance, which does not belong to the storm
        Step(0.3 * before, "storm", {"group": "storm", "topic": ORDERS, "members": 4}),
        Step(22, "delete_records", {"client_id": "lost-1", "left": 40}),
        Step(before - 28, "pause_broker", {"seconds": 6.0}),
        Step(before, "kill_job"),
        Step(before + 0.2 * away, "set_rate", {"client_id": "stopped-java-1", "rate": None}),
        Step(before + 0.3 * away, "set_rate", {"client_id": "late-stop-1", "rate": 0.0}),
        Step(back, "start_job"),
        Step(back + 0.5 * after, "abort_transaction", {"transactional_id": LEFT_OPEN}),
    ]
    return sorted(steps, key=lambda step: step.at), back + after


def short() -> Scenario:
    """About five minutes: the job is away for 85 s, and limits of rules are scaled down."""
    steps, seconds = timeline(before=110, away=85, after=90)
    found = {"stopped": 65, "falls_behind": 300, "blocked": 45, "rewound": 25, "reset": 25, "data_lost": 25, "skewed": 60}
    found |= {"storm": 30, "expiring": 25, "hot": 85}
    lingers = {"rewound": 600, "reset": 600, "storm": 100}
    return Scenario(
        MEMBERS,
        steps,
        seconds,
        trigger="2s",
        sample_seconds=4,
        status={
            "recent_ends_ms": 16_000,
            "least_silence_ms": 15_000,
            "few_commits_silent_ms": 30_000,
            "idle_member_ms": 20_000,
            "skew_lag": 150,
            "expiry_ms": 3_600_000,
            "jump_window_ms": 600_000,
            "transaction_ms": 20_000,
            "stale_sample_ms": 40_000,
            "storm_window_ms": 100_000,
            "hot_ms": 60_000,
            "hot_lag_ms": 10_000,
        },
        retention_minutes=25,
        limits=Limits(found, lingers, delay=15, lag=5, sample=5, stale=70, since=8, since_of_growth=8),
    )


def polled() -> Scenario:
    """The short form for a job that polls.

    - Polls do not see an offset that has moved on before the next one, nor a deletion before the second one, nor an expiry.
    - A commit is found by the next poll. Of one from the time without a job that is the first one after it, so silence is known
      late. Where a poll comes seconds after a commit, a lag that grows by few records a second seems to begin earlier or later.
    """
    scenario, (steps, seconds) = short(), timeline(before=110, away=85, after=210)
    limits = scenario.limits
    return replace(
        scenario,
        steps=[step for step in steps if step.action not in ("rewind", "recreate")],
        seconds=seconds,
        # the time without a job is longer, as it is in the full form
        status={**scenario.status, "trend_gap_ms": 80_000},
        limits=replace(limits, found={**limits.found, "stopped": 180}, since_of_growth=30),
        unseen=frozenset({"expiring"}),
    )


def full(before: float, away: float, after: float) -> Scenario:
    """The limits of the product, but for transactions, whose own limit is longer than the run."""
    steps, seconds = timeline(before, away, after)
    found = {"stopped": 300, "falls_behind": 300, "blocked": 180, "rewound": 90, "reset": 90, "data_lost": 90, "skewed": 300}
    found |= {"storm": 90, "expiring": 90, "hot": 720}
    lingers = {"rewound": 3600, "reset": 3600, "storm": 600}
    status = {"transaction_ms": 90_000}
    limits = Limits(found, lingers, delay=45, lag=5, sample=35, stale=120, since=15, since_of_growth=15)
    return Scenario(MEMBERS, steps, seconds, "10s", 30, status, retention_minutes=25, limits=limits)
