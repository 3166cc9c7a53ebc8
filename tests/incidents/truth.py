"""What is true of each group and when, as the run planted it: the truth that statements are judged by."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from positions import Bounds, Positions, Series

#: Kinds of incidents, each with the rules that report it truly.
JUSTIFIED: Mapping[str, frozenset[str]] = {
    "stopped": frozenset({"stopped", "stalled", "lag_never_fell", "falls_behind", "near_retention"}),
    "falls_behind": frozenset({"falls_behind", "lag_never_fell", "near_retention"}),
    "blocked": frozenset({"hanging_transaction", "stopped", "stalled", "lag_never_fell", "falls_behind"}),
    "rewound": frozenset({"rewound", "went_back"}),
    "reset": frozenset({"reset", "went_back"}),
    "data_lost": frozenset({"data_lost"}),
    "skewed": frozenset({"skew", "stopped", "stalled", "lag_never_fell", "falls_behind"}),
    "hot": frozenset({"hot_partition", "skew", "lag_never_fell", "falls_behind", "near_retention"}),
    "storm": frozenset({"rebalance_storm"}),
    "expiring": frozenset({"offsets_expiring", "stopped", "lag_never_fell", "falls_behind"}),
}
#: Kinds of incidents, each with the rules of which one has to be reported.
NAMED: Mapping[str, frozenset[str]] = {
    **JUSTIFIED,
    "stopped": frozenset({"stopped"}),
    "falls_behind": frozenset({"falls_behind"}),
    "blocked": frozenset({"hanging_transaction"}),
    "rewound": frozenset({"rewound"}),
    "reset": frozenset({"reset"}),
    "skewed": frozenset({"skew", "stopped"}),
    "hot": frozenset({"hot_partition"}),
    "expiring": frozenset({"offsets_expiring"}),
}

#: Kinds whose rule compares a window of samples without a gap.
_OF_A_WINDOW = frozenset({"hot"})

#: Time after a pause of the broker in which clients and job return.
_BACK_SECONDS = 15.0


@dataclass
class Incident:
    """What was planted in a group.

    - `since`: the times between which it began. `until`: the time at which it ended, None at the end of the run.
    - `partition`: the one it concerns; None for all of the group.
    - `owners`: client ids of which a report names one; empty if the group has no member then. `host`: theirs.
    - `facts`: numbers that a report has, such as `from_offset`.
    """

    kind: str
    group: str
    since: Bounds
    until: float | None = None
    partition: int | None = None
    owners: tuple[str, ...] = ()
    host: str = "127.0.0.1"
    transactional_id: str | None = None
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"{self.kind} of {self.group}"


@dataclass
class Truth:
    """Incidents, times of the job and of the broker, and positions."""

    started: float = 0.0
    ended: float = 0.0
    incidents: list[Incident] = field(default_factory=list)
    #: Times without a running job, until the next one has read all that it missed.
    away: list[Bounds] = field(default_factory=list)
    #: Starts of the jobs at their ends.
    restarts: list[float] = field(default_factory=list)
    #: Times in which the broker did not answer.
    paused: list[Bounds] = field(default_factory=list)
    #: Times in which a group was deleted or had no offsets: group → intervals.
    absent: dict[str, list[Bounds]] = field(default_factory=dict)
    #: Start and completion of each batch of the job.
    batches: list[Bounds] = field(default_factory=list)
    #: Times of the samples of log ends, at which the job evaluates statuses.
    samples: list[float] = field(default_factory=list)
    positions: Positions = field(default_factory=Positions)
    #: Kinds of incidents that the source of the job does not show.
    unseen: frozenset[str] = frozenset()

    def of(self, group: str) -> Iterator[Incident]:
        """The incidents of a group."""
        return (incident for incident in self.incidents if incident.group == group)

    def start(self, incident: Incident, rule: str | None = None, *, is_latest: bool = False) -> Bounds:
        """The times of which readers may say that an incident began; with `is_latest` that it did so then or earlier.

        A loss of records, a record that waits, and what a poll finds, are known from the next sample on. Rules other than
        `hanging_transaction` tell what follows from an open transaction, and that begins when the group has read all that is
        before it. A group that lags on a hot partition reads on, so that what waits there has come ever later.
        """
        if incident.kind == "hot":
            return Bounds(incident.since.low, self.ended)
        if incident.kind == "blocked" and rule not in (None, "hanging_transaction"):
            return Bounds(incident.since.low, self.waits_from(incident))
        known = self._next_sample(incident.since.high)
        return Bounds(incident.since.low, known) if is_latest or incident.kind in ("data_lost", "skewed") else incident.since

    def may_have_expired(self, group: str, at: float) -> bool:
        """Whether the broker may have removed all offsets of a group, and the group, by a time."""
        expiring = [each for each in self.of(group) if each.kind == "expiring"]
        return any(each.facts["expires_at"][0] <= min(at, each.until or at) for each in expiring)

    def waits_from(self, incident: Incident) -> float:
        """The time from which on a group that an open transaction blocks waits for its end: slow clients read on until then."""
        stands = self.positions.stands_from(incident.group, self.ended if incident.until is None else incident.until)
        return max(incident.since.high, stands or incident.since.high)

    def read_until(self, at: float, delay: float) -> float:
        """The time up to which a reader knows the log: until the first sample after an absence, that of its begin.

        A sample is written within `delay`.
        """
        return min((gap.low for gap in self.away if gap.low <= at <= self._next_sample(gap.high) + delay), default=at)

    def _next_sample(self, after: float) -> float:
        """The first sample after a time, or that time if there is none."""
        return min((each for each in self.samples if each > after), default=after)

    def newest_batch(self, at: float) -> float | None:
        """The completion of the newest batch at a time."""
        return max((each.high for each in self.batches if each.high <= at), default=None)

    @property
    def longest_batch(self) -> float:
        """Seconds that the longest batch took."""
        return max((each.high - each.low for each in self.batches), default=0.0)

    def job_ran(self, start: float, end: float) -> bool:
        """Whether the job ran from `start` to `end`."""
        return not any(each.low <= end and start <= each.high for each in self.away)

    def working_seconds(self, start: float, end: float, sample_seconds: float) -> float:
        """How long the job ran between two times; on a busy machine `sample_seconds` for each of its samples, if that is less."""
        running = end - start - sum(max(0.0, min(end, gap.high) - max(start, gap.low)) for gap in self.away)
        taken = sum(start <= each <= end and self.job_ran(each, each) for each in self.samples)
        return min(running, sample_seconds * taken)

    def seconds_to_find(self, incident: Incident, at: float, sample_seconds: float) -> float:
        """How long the job has run since an incident began; where the rule compares a window, only since its last absence."""
        begun = incident.since.high
        back = [gap.high for gap in self.away if begun < gap.high <= at] if incident.kind in _OF_A_WINDOW else []
        return self.working_seconds(max([begun, *back]), at, sample_seconds)

    def had_seconds_to_find(self, incident: Incident, sample_seconds: float) -> float:
        """The most of these until the incident ended."""
        end = self.ended if incident.until is None else incident.until
        ends = [end, *(gap.low for gap in self.away if incident.since.high < gap.low < end)]
        return max(self.seconds_to_find(incident, at, sample_seconds) for at in ends)

    def phase(self, at: float) -> str:
        """Where a time is in the run."""
        if at < self.started:
            return "first load"
        for gap, restart in zip(self.away, self.restarts, strict=True):
            if gap.low <= at <= gap.high:
                return "catching up" if at > restart else "job away"
        if any(each.low <= at <= each.high + _BACK_SECONDS for each in self.paused):
            return "broker paused or just back"
        return "job runs"

    def write(self, path: Path) -> None:
        """Write the truth file."""
        plain = {name: getattr(self, name) for name in ("started", "ended", "restarts", "samples")}
        plain["incidents"] = [asdict(incident) for incident in self.incidents]
        plain |= {name: [asdict(each) for each in getattr(self, name)] for name in ("away", "paused", "batches")}
        plain["unseen"] = sorted(self.unseen)
        plain["absent"] = {group: [asdict(each) for each in gaps] for group, gaps in self.absent.items()}
        path.write_text(json.dumps({**plain, "positions": self.positions.plain()}))

    @classmethod
    def read(cls, path: Path) -> "Truth":
        """Read a truth file."""
        plain = json.loads(path.read_text())
        positions = Positions()
        for group, topic, partition, rows in plain["positions"]["committed"]:
            positions.committed[group, topic, partition] = _series(rows)
        for topic, partition, rows in plain["positions"]["ends"]:
            positions.ends[topic, partition] = _series(rows)
        incidents = [
            Incident(**{**each, "since": Bounds(**each["since"]), "owners": tuple(each["owners"])}) for each in plain["incidents"]
        ]
        return cls(
            plain["started"],
            plain["ended"],
            incidents,
            [Bounds(**each) for each in plain["away"]],
            plain["restarts"],
            [Bounds(**each) for each in plain["paused"]],
            {group: [Bounds(**each) for each in gaps] for group, gaps in plain["absent"].items()},
            [Bounds(**each) for each in plain["batches"]],
            plain["samples"],
            positions,
            frozenset(plain["unseen"]),
        )


def _series(rows: list[list[Any]]) -> Series:
    return Series(*([row[column] for row in rows] for column in range(3)))
