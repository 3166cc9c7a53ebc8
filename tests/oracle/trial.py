"""One broker of a generation that loads log after log, is queried, and is compared with the tables of the same log."""

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from uuid import UUID

from broker_queries import BrokerAnswers, BrokerQueries, NotLoaded
from comparison import Difference, differences, tombstone_differences
from eventually import NotReached, equal_to, eventually
from generations import Generation
from ours import Tables
from patience import PATIENCE_SECONDS
from scalar_logs import read_log
from seed_log import PARTITIONS_PER_SEED, SeedLog, write_seed
from segment_builder import LogBuilder
from stories import ALL_PARTITIONS, PATIENT_MS, TOPIC_PARTITIONS, TOPICS, Setting

from coordinator_core.log.entries import LogRecord
from coordinator_core.log.partition_metadata import parse_topic_id
from pipelines.examples.private.kafka.broker import PrivateBroker
from pipelines.examples.private.kafka.clients import Clients

Progress = Callable[[str], None]

SEEDS_PER_ROUND = 10
#: For rounds with fewer seeds too: the position of a seed, and thus the names of its groups, does not depend on other seeds.
PARTITIONS = SEEDS_PER_ROUND * PARTITIONS_PER_SEED
RETENTION_MINUTES = 1440
RETENTION_MS = RETENTION_MINUTES * 60_000
_SWEEP_INTERVAL_MS = 2000
_DAY_MS = 86_400_000
#: The broker's log lines after an aborted load: Scala, Java.
_GAVE_UP = ("Error loading offsets from", "Failed to load metadata from")
#: Logged once all groups are loaded (KAFKA-4704; `AnomalyKind.UNEXPECTED_UNLOAD`): nothing is missing then.
_HARMLESS = "Unexpected unload of active group"


class Mode(Enum):
    """The time of the queries: after the load and before the sweep, or after the sweep."""

    LOADED = "as loaded"
    SWEPT = "after the sweep"


@dataclass(frozen=True)
class RoundResult:
    """The result of a round: the number of groups compared, and the differences with their records."""

    groups: int
    differences: tuple[Difference, ...]
    records: Mapping[str, Sequence[LogRecord]]


class Trial:
    """A broker of `generation` that is queried in one `mode`; use it in a `with`."""

    def __init__(self, generation: Generation, mode: Mode) -> None:
        self.generation = generation
        self.mode = mode
        self._broker = PrivateBroker(
            generation.version,
            offsets_partitions=PARTITIONS,
            properties=_properties(generation, mode),
            jvm_arguments=("-XX:TieredStopAtLevel=1", "-Xmx1g"),
        )
        self._topic_ids: dict[str, UUID] = {}
        self._log_read = 0

    def __enter__(self) -> "Trial":
        try:
            self._broker.start()
            with Clients(self._broker.bootstrap) as clients:
                clients.create_topics(TOPICS, TOPIC_PARTITIONS)
                clients.commit(clients.consumer("makes-the-offsets-topic"), [(TOPICS[0], 0, 1)])
            self._broker.stop()
        except BaseException:
            self._broker.close()
            raise
        self._topic_ids = _topic_ids(self._broker.data)
        return self

    def __exit__(self, *_: object) -> None:
        self._broker.close()

    def round(self, seeds: Sequence[int], *, only: str | None = None, tables: type[Tables] = Tables) -> RoundResult:
        """Load the logs of some seeds with distinct positions, and compare; only one group, if given."""
        with tempfile.TemporaryDirectory(prefix="oracle-") as folder:
            log = Path(folder) / "log"
            builder = LogBuilder(log)
            for partition in range(PARTITIONS):
                (log / f"__consumer_offsets-{partition}").mkdir(parents=True)
            setting = Setting(self.generation, int(time.time() * 1000), RETENTION_MS, self._topic_ids)
            written = [write_seed(builder, seed, setting, first_partition(seed), PARTITIONS, only=only) for seed in seeds]
            ends = {partition: builder.next_offset(partition) for partition in range(PARTITIONS)}
            for topic, topic_id in self._topic_ids.items():
                builder.topic_id(topic, topic_id, TOPIC_PARTITIONS)
            with self.serving(log) as queries:
                found = self._compare(queries, written, ends, log, tables(Path(folder) / "tables", setting))
            if self.mode is Mode.SWEPT:
                records = [record for p in range(PARTITIONS) for record in builder.records(p)]
                found += tombstone_differences(self.generation, records, self._appended(ends), RETENTION_MS, setting.now_ms)
            groups = sum(len(each.everyone()) for each in written)
            return RoundResult(groups, tuple(found), _records_of(builder, {each.group for each in found}))

    @contextmanager
    def serving(self, log: Path) -> Iterator[BrokerQueries]:
        """The broker over the segments in `log`, loaded or still loading, and a connection for queries."""
        self._broker.place_segments(log)
        self._broker.start()
        try:
            with BrokerQueries(self._broker.bootstrap, self.generation) as queries:
                yield queries
        finally:
            self._broker.stop()

    def _compare(
        self, queries: BrokerQueries, written: Sequence[SeedLog], ends: Mapping[int, int], log: Path, tables: Tables
    ) -> list[Difference]:
        sentinels = {partition: group for each in written for partition, group in each.sentinels.items()}
        if self.mode is Mode.LOADED:
            missing = wait_until_loaded(queries, list(sentinels.values()))
        else:
            missing = self._wait_until_swept(sentinels, ends)
        refused = self.refused_loads()
        if missing or refused:
            found = [Difference(group, "its partition", why, self.mode.value) for group, why in missing.items()]
            return [*found, *(Difference("?", "a partition", complaint, self.mode.value) for complaint in refused)]
        groups = [group for each in written for group in each.everyone()]
        broker_answers = BrokerAnswers.collect(queries, groups, ALL_PARTITIONS)
        tables.load(log, seed=sum(each.seed for each in written))
        if self.mode is Mode.SWEPT:
            tables.sweep(int(time.time() * 1000))
        return differences(self.generation, groups, broker_answers, tables.answers())

    def _wait_until_swept(self, sentinels: Mapping[int, str], ends: Mapping[int, int]) -> dict[str, str]:
        """Wait for the sweep; return the sentinels without a tombstone when the time is over."""
        waiting = set(sentinels)

        def unswept() -> set[int]:
            nonlocal waiting
            waiting -= {
                record.partition for record in self._appended(ends) if sentinels[record.partition].encode() in (record.key or b"")
            }
            return waiting

        with suppress(NotReached):
            eventually("every sentinel is swept", unswept, equal_to(set()), pause_seconds=0.2)
        # a sweep takes the groups one by one: the next one begins when all of this one are done
        time.sleep(2 * _SWEEP_INTERVAL_MS / 1000)
        return {sentinels[partition]: "is not swept" for partition in waiting}

    def refused_loads(self) -> list[str]:
        """New lines of the broker's log about partitions whose load it aborted, with the reason."""
        with (self._broker.data.parent / "broker.log").open(errors="replace") as file:
            file.seek(self._log_read)
            lines = file.read().splitlines()
            self._log_read = file.tell()
        gave_up = [number for number, line in enumerate(lines) if any(words in line for words in _GAVE_UP)]
        complaints = [" ".join(lines[number : number + 2]) for number in gave_up]
        return [complaint for complaint in complaints if _HARMLESS not in complaint]

    def _appended(self, ends: Mapping[int, int]) -> list[LogRecord]:
        """The records that the broker has appended to the logs it was given."""
        found: list[LogRecord] = []
        for partition, end in ends.items():
            for segment in sorted((self._broker.data / f"__consumer_offsets-{partition}").glob("*.log")):
                read = read_log(segment.read_bytes(), partition)
                found += [record for record in read if isinstance(record, LogRecord) and record.offset >= end]
        return found


def first_partition(seed: int) -> int:
    """The first of the partitions of a seed."""
    return seed % SEEDS_PER_ROUND * PARTITIONS_PER_SEED


def _properties(generation: Generation, mode: Mode) -> dict[str, str]:
    properties = {
        "offsets.retention.minutes": str(RETENTION_MINUTES),
        "offsets.retention.check.interval.ms": str(_SWEEP_INTERVAL_MS if mode is Mode.SWEPT else _DAY_MS),
        # the log must stay as it was written
        "log.cleaner.min.compaction.lag.ms": str(_DAY_MS),
    }
    if generation.modern_groups:
        properties["group.coordinator.rebalance.protocols"] = "classic,consumer,share,streams"
        for kind in ("consumer", "share", "streams"):
            properties[f"group.{kind}.max.session.timeout.ms"] = str(PATIENT_MS)
            properties[f"group.{kind}.session.timeout.ms"] = str(PATIENT_MS)
    return properties


def _topic_ids(data: Path) -> dict[str, UUID]:
    """Ids that the broker gave to the topics; made-up ones where it knows none."""
    found = {}
    for number, topic in enumerate(TOPICS):
        path = data / f"{topic}-0" / "partition.metadata"
        topic_id = parse_topic_id(path.read_text()) if path.exists() else None
        found[topic] = topic_id or UUID(int=1000 + number)
    return found


def wait_until_loaded(queries: BrokerQueries, groups: Sequence[str], limit_seconds: float = PATIENCE_SECONDS) -> dict[str, str]:
    """Wait for the load; return groups without known offsets when the time is over, and why.

    Java loaders report that they are not ready, Scala loaders own a partition whose load they aborted.
    """
    waiting = dict.fromkeys(groups, "")

    def unloaded() -> dict[str, str]:
        for group in list(waiting):
            try:
                if queries.offsets([group])[group]:
                    del waiting[group]
                else:
                    waiting[group] = "has no offset"
            except NotLoaded as error:
                waiting[group] = str(error)
        return waiting

    with suppress(NotReached):
        eventually("every group has an offset", unloaded, equal_to({}), patience_seconds=limit_seconds, pause_seconds=0.1)
    return waiting


def _records_of(builder: LogBuilder, groups: set[str]) -> dict[str, list[LogRecord]]:
    """Records of these groups, and the markers of their partitions' producers."""
    found: dict[str, list[LogRecord]] = {}
    for group in groups:
        name = group.encode()
        records = [record for p in range(PARTITIONS) for record in builder.records(p)]
        own = [record for record in records if not record.is_control and record.key is not None and name in record.key]
        producers = {(record.partition, record.producer_id) for record in own if record.producer_id != -1}
        markers = [record for record in records if record.is_control and (record.partition, record.producer_id) in producers]
        found[group] = sorted([*own, *markers], key=lambda record: record.offset)
    return found
