"""Simulated traffic with known truth: topics with a group each that keeps up, or falls behind from a known time on.

Records are produced and read in ticks of five seconds. Consumers commit at an interval of their own, with jitter; a job reads the
commits in batches, and samples the log ends every 30 s, with jitter. The findings of `falls_behind` are compared with the truth.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from coordinator_core.health import (
    DEFAULT_SETTINGS,
    NONE,
    GrowthStarts,
    RecentPoints,
    SampleColumns,
    SampledEnds,
    StatusSettings,
    trend_columns,
)
from coordinator_core.health.sample_columns import CurrentLogs

Floats = NDArray[np.float64]
Int64s = NDArray[np.int64]

TICK_S = 5
BATCH_S = 10
SAMPLE_S = 30
#: Samples that are kept: those of the longest window.
KEPT = 50
HOUR_S = 3_600
START_MS = 1_795_000_020_000

#: Kinds of traffic whose groups are well, and deficits of the others: the share of the records that the consumer does not read.
HEALTHY = ("steady", "bursty", "diurnal", "batch loads", "batch jobs", "idle", "pausing", "catching up")
DEFICITS = {"5 % too slow": 0.05, "10 % too slow": 0.10, "30 % too slow": 0.30}


class Traffic(NamedTuple):
    """Produced records per second and readable records per second, by tick and partition, and how a group commits."""

    kind: str
    produced: Floats
    capacity: Floats
    commit_s: float
    commits_idle: bool
    deficit_from_s: int | None


@dataclass
class Outcome:
    """What was found in the topics of one kind. `alarms` are the times in s at which a finding began, by topic.

    `starts_s` has, by whether it is the latest possible one, how much later than the true start the first finding reports it.
    """

    topics: int = 0
    alarms: dict[int, list[int]] = field(default_factory=dict)
    detection_s: list[int] = field(default_factory=list)
    missed: int = 0
    held: list[float] = field(default_factory=list)
    starts_s: dict[bool, list[float]] = field(default_factory=lambda: {False: [], True: []})

    @property
    def false_alarms(self) -> int:
        """Findings that began while the group was well."""
        return sum(map(len, self.alarms.values()))


def traffic(kind: str, random: np.random.Generator, seconds: int, slow_from_s: int | None = None) -> Traffic:
    """The traffic of one topic. A deficit begins at `slow_from_s`, or at a random time."""
    ticks = seconds // TICK_S
    partitions = int(random.choice([1, 1, 2, 4]))
    rate = float(np.exp(random.uniform(np.log(10), np.log(3_000))))
    commit_s, commits_idle = float(random.choice([5, 5, 5, 10, 30, 60])), bool(random.random() < 0.7)
    shape, at_s, deficit_from = np.ones(ticks), np.arange(ticks) * TICK_S, None
    capacity = np.full(ticks, random.uniform(1.2, 3))
    match kind:
        case "bursty":
            for start, end in _spans(random, seconds, pause=(300, 3_600), length=(20, 180)):
                shape[start:end] = random.uniform(1.5, 8)
            # the consumer keeps up on the average
            capacity = np.full(ticks, max(random.uniform(1.2, 3), 1.15 * shape.mean()))
        case "diurnal":
            shape = 1 + 0.9 * np.sin(2 * np.pi * (at_s + random.uniform(0, 86_400)) / 86_400)
            capacity *= 1.9
        case "batch loads":
            shape = np.full(ticks, random.choice([0, 0.02]))
            for start, end in _spans(random, seconds, pause=(1_800, 7_200), length=(30, 480)):
                shape[start:end] = random.uniform(1, 10)
            capacity = np.full(ticks, random.uniform(0.5, 12))
        case "batch jobs":
            capacity = np.zeros(ticks)
            commits_idle = False
            for start, end in _spans(random, seconds, pause=(600, 3_600), length=(60, 300)):
                capacity[start:end] = 80
        case "idle":
            shape *= random.choice([0, 0.001, 0.0001])
        case "pausing" | "catching up":
            long = kind == "catching up"
            pauses = {"pause": (7_200, 20_000), "length": (300, 3_600)} if long else {"pause": (300, 3_600), "length": (10, 120)}
            capacity = np.full(ticks, random.uniform(1.3, 3) if long else random.uniform(1.2, 3))
            for start, end in _spans(random, seconds, **pauses):
                capacity[start:end] = 0
        case name if name in DEFICITS:
            deficit_from = int(random.uniform(0.1, 0.7) * seconds) if slow_from_s is None else slow_from_s
            capacity[deficit_from // TICK_S :] = 1 - DEFICITS[name]
    weights = random.dirichlet(np.full(partitions, 20.0))
    noise = random.normal(1, random.choice([0.02, 0.1]), (ticks, partitions)).clip(0.2)
    produced = random.poisson(rate * shape[:, None] * weights * TICK_S) / TICK_S
    return Traffic(kind, produced, rate * weights * capacity[:, None] * noise, commit_s, commits_idle, deficit_from)


def _spans(
    random: np.random.Generator, seconds: int, *, pause: tuple[int, int], length: tuple[int, int]
) -> Iterator[tuple[int, int]]:
    """Ticks of spans of random lengths with random pauses between them."""
    at = random.uniform(*pause)
    while at < seconds:
        end = at + random.uniform(*length)
        yield int(at) // TICK_S, int(end) // TICK_S
        at = end + random.uniform(*pause)


class Simulation:
    """A day of topics, seen by a job."""

    def __init__(self, topics: list[Traffic], random: np.random.Generator, settings: StatusSettings = DEFAULT_SETTINGS) -> None:
        self._topics, self._random, self._settings = topics, random, settings
        sizes = [topic.produced.shape[1] for topic in topics]
        self._starts = np.append(0, np.cumsum(sizes))
        self._produced = np.concatenate([topic.produced for topic in topics], axis=1) * TICK_S
        self._capacity = np.concatenate([topic.capacity for topic in topics], axis=1) * TICK_S
        self._commit_s = np.repeat([topic.commit_s for topic in topics], sizes)
        self._commits_idle = np.repeat([topic.commits_idle for topic in topics], sizes)
        self._rows = rows = int(self._starts[-1])
        self._points = RecentPoints(rows)
        self._before = GrowthStarts.none(rows)
        self._samples: list[tuple[int, Int64s]] = []
        #: Log ends and positions at the begin and the end of the present tick.
        self._end, self._position = (np.zeros((2, rows)) for _ in range(2))
        self._next_commit = random.uniform(0, self._commit_s)
        self._committed = np.full(rows, NONE)
        self._events: list[tuple[Int64s, Int64s, Int64s]] = []
        self.trends: Any = None

    def run(self) -> Iterator[tuple[int, Any]]:
        """The second and the trends after each sample."""
        next_sample = SAMPLE_S
        for tick in range(len(self._produced)):
            self._tick(tick)
            second = (tick + 1) * TICK_S
            if second % BATCH_S == 0:
                self._read_commits()
            if second >= next_sample:
                next_sample += SAMPLE_S
                yield second, self._sample(second)

    def _tick(self, tick: int) -> None:
        end, position = self._end[1], self._position[1]
        new_end = end + self._produced[tick]
        new_position = np.minimum(new_end, position + self._capacity[tick])
        self._end, self._position = np.stack([end, new_end]), np.stack([position, new_position])
        since = self._next_commit - tick * TICK_S
        due = np.flatnonzero(since < TICK_S)
        if len(due):
            share = since[due].clip(0) / TICK_S
            offset = np.floor(position[due] + (new_position[due] - position[due]) * share).astype(np.int64)
            at_ms = START_MS + tick * TICK_S * 1000 + (share * TICK_S * 1000).astype(np.int64)
            self._next_commit[due] += self._commit_s[due] * self._random.uniform(0.8, 1.2, len(due))
            # a consumer without capacity is away, and many clients commit nothing new only while they run
            is_away = self._capacity[tick, due] <= 0
            commits = ~is_away & ((offset != self._committed[due]) | self._commits_idle[due])
            self._committed[due[commits]] = offset[commits]
            self._events.append((due[commits], at_ms[commits], offset[commits]))

    def _read_commits(self) -> None:
        row, at_ms, offset = (
            (np.concatenate(column) for column in zip(*self._events, strict=True))
            if self._events
            else [np.zeros(0, np.int64)] * 3
        )
        self._events = []
        order = np.lexsort((at_ms, row))
        row, at_ms, offset = row[order], at_ms[order], offset[order]
        # a batch stores the last commit of each partition
        is_last = np.append(row[1:] != row[:-1], np.full(min(1, len(row)), True))
        self._points.add(row[is_last], at_ms[is_last], offset[is_last])

    def _sample(self, second: int) -> Any:
        share = self._random.uniform(0.2, 1)
        now = START_MS + int((second - TICK_S * (1 - share)) * 1000)
        self._samples.append((now, np.floor(self._end[0] + (self._end[1] - self._end[0]) * share).astype(np.int64)))
        self._samples = self._samples[-KEPT:]
        ends = SampledEnds(CurrentLogs(self._sample_columns()), self._settings.trend_gap_ms)
        partition = np.arange(self._rows)
        self._points.set_log_ends(ends, partition)
        found = trend_columns(
            self._points.columns, ends, partition, np.full(self._rows, now), self._starts, self._settings, self._before
        )
        self._before = found.falls_behind
        return found

    def _sample_columns(self) -> SampleColumns:
        kept, rows = len(self._samples), self._rows
        at = np.tile(np.array([now for now, _ in self._samples]), rows)
        none = np.full(kept * rows, NONE)
        end = np.stack([ends for _, ends in self._samples], axis=1).ravel()
        return SampleColumns(np.arange(rows + 1) * kept, at - 5, at + 5, np.zeros_like(end), end, none, none, none, none)

    def outcomes(self) -> dict[str, Outcome]:
        """The findings of the whole time by kind of traffic."""
        found: dict[str, Outcome] = {}
        fell = np.zeros(len(self._topics), np.bool_)
        detected: dict[int, int] = {}
        starts: dict[int, tuple[bool, float]] = {}
        held: dict[int, list[bool]] = {}
        for second, trends in self.run():
            falls = np.maximum.reduceat(trends.falls_behind.at_ms, self._starts[:-1]) != NONE
            for number in np.flatnonzero(falls & ~fell).tolist():
                topic = self._topics[number]
                start = topic.deficit_from_s
                if start is None or second < start:
                    found.setdefault(topic.kind, Outcome()).alarms.setdefault(number, []).append(second)
                elif number not in detected:
                    detected[number] = second
                    starts[number] = self._start(number, trends.falls_behind, start)
            for number in detected:
                held.setdefault(number, []).append(bool(falls[number]))
            fell = falls
        for number, topic in enumerate(self._topics):
            outcome = found.setdefault(topic.kind, Outcome())
            outcome.topics += 1
            if topic.deficit_from_s is not None:
                if number in detected:
                    outcome.detection_s.append(detected[number] - topic.deficit_from_s)
                    outcome.held.append(float(np.mean(held[number])))
                    is_latest, off_s = starts[number]
                    outcome.starts_s[is_latest].append(off_s)
                else:
                    outcome.missed += 1
        return found

    def _start(self, topic: int, reported: GrowthStarts, true_s: int) -> tuple[bool, float]:
        """Whether the reported start is the latest possible one, and how much later than the true one it is."""
        rows = slice(self._starts[topic], self._starts[topic + 1])
        falls = reported.at_ms[rows] != NONE
        at_ms = int(reported.at_ms[rows][falls].min())
        return bool(reported.is_latest[rows][falls].any()), (at_ms - START_MS) / 1000 - true_s


class Run(NamedTuple):
    """Numbers of topics of each kind whose groups are well or too slow."""

    seed: int
    hours: float
    healthy: int
    too_slow: int


def simulate(run: Run, settings: StatusSettings = DEFAULT_SETTINGS) -> dict[str, Outcome]:
    """Simulate topics, in the order of the kinds."""
    random = np.random.default_rng(run.seed)
    kinds = [(kind, run.healthy) for kind in HEALTHY] + [(kind, run.too_slow) for kind in DEFICITS]
    topics = [traffic(kind, random, int(run.hours * HOUR_S)) for kind, number in kinds for _ in range(number)]
    found = Simulation(topics, random, settings).outcomes()
    return {kind: found[kind] for kind, number in kinds if number}


#: The run of the table in docs/lag.md: 1,010 topics for a day. No limit was chosen by this seed.
PUBLISHED = Run(seed=2_026, hours=24, healthy=100, too_slow=70)


def outcome_table(outcomes: dict[str, Outcome]) -> str:
    """Outcomes as a table in Markdown."""
    rows = [
        "| traffic | topics | false alarms | found | median | 95 % | last | start, middle 90 % |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for kind, outcome in outcomes.items():
        times = sorted(outcome.detection_s)
        shown = [""] * 5
        if kind in DEFICITS:
            shown = [f"{len(times)} of {outcome.topics}"]
            shown += [f"{np.percentile(times, share, method='higher'):.0f} s" for share in (50, 95, 100)]
            low, high = (np.percentile(outcome.starts_s[False], share, method="nearest") for share in (5, 95))
            shown.append(f"{low:+.0f} to {high:+.0f} s".replace("-", "−"))
        rows.append(f"| {kind} | {outcome.topics} | {outcome.false_alarms} | {' | '.join(shown)} |")
    return "\n".join(rows)
