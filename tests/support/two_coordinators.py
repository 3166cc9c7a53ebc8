"""One scenario run on two coordinators at the same time, a real broker and ours, with all answers and records of both."""

import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from broker_queries import BrokerAnswers, BrokerQueries, DescribedGroup, NotLoaded, Offsets
from coordinator_scenario import COORDINATOR_SETTINGS, TOPICS, Stage, play, stage
from eventually import NotReached, eventually
from generations import GENERATIONS, Generation
from written_records import Placeholders, Written, written

from coordinator_core.log.partitioner import partition_for
from pipelines.examples.private.kafka.broker import PrivateBroker
from pipelines.examples.private.kafka.clients import Clients
from pipelines.examples.private.kafka.distribution import version_tuple
from pipelines.examples.private.private_coordinator import PrivateCoordinator

LOG_PARTITIONS = 4
OFFSETS_TOPIC = "__consumer_offsets"
_PARTITIONS = [(topic, partition) for topic, partitions in TOPICS.items() for partition in range(partitions)]


@dataclass(frozen=True)
class Performance:
    """All answers and records of a coordinator, as brokers of a version give them. `log` is its folder, not written any more."""

    version: str
    era: str
    log: Path
    groups: Sequence[str]
    answers: BrokerAnswers
    started_ms: int
    ended_ms: int

    def written(self) -> dict[str, list[Written]]:
        """Records by group; see `written_records`."""
        # brokers of 4.3 add the id of a topic that was named; for earlier ones, and ours, only commits by id have one
        with_topic_ids = version_tuple(self.version) < (4, 3)
        in_order = self.era == "4"
        return written(self.log, self.started_ms, self.ended_ms, in_order=in_order, with_topic_ids=with_topic_ids)


@dataclass(frozen=True)
class TwoPerformances:
    """Both results. `broker` is stopped and may be started again."""

    broker: PrivateBroker
    theirs: Performance
    ours: Performance


def generation_of(version: str) -> Generation:
    """The generation for queries of a broker version, and of our coordinator in the same era."""
    known = "3.9.1" if version_tuple(version) < (4,) else "4.3.0"
    return replace(GENERATIONS[known], version=version)


def scenario_broker(version: str) -> PrivateBroker:
    """A broker that is not started, with the settings of the scenario."""
    settings = {name: str(value) for name, value in COORDINATOR_SETTINGS.items()}
    # commits in transactions arrive without a transaction coordinator that could verify them
    settings["transaction.partition.verification.enable"] = "false"
    return PrivateBroker(version, offsets_partitions=LOG_PARTITIONS, properties=settings)


def our_coordinator(era: str, directory: Path, **settings: int | str | float) -> PrivateCoordinator:
    """A coordinator that is not started, with the same settings."""
    given: dict[str, Any] = {name.replace(".", "_"): value for name, value in COORDINATOR_SETTINGS.items()} | settings
    given = {"transaction_partition_verification_enable": False, "transaction_state_log_num_partitions": 4} | given
    return PrivateCoordinator(directory, topics=TOPICS, era=era, offsets_topic_num_partitions=LOG_PARTITIONS, **given)


@contextmanager
def played_to_both(version: str, directory: Path) -> Iterator[TwoPerformances]:
    """Run the scenario of brokers of a version on both; the broker is deleted with the context."""
    generation = generation_of(version)
    with scenario_broker(version) as broker, our_coordinator(generation.era, directory / "ours") as ours:
        prepare(broker)
        with ThreadPoolExecutor(2) as both:
            theirs = both.submit(perform, generation, broker.bootstrap, broker.data, broker.stop)
            mine = both.submit(perform, generation, ours.bootstrap, ours.directory, ours.stop)
        log = directory / "theirs"
        for folder in theirs.result().log.glob(f"{OFFSETS_TOPIC}-*"):
            shutil.copytree(folder, log / folder.name)
        yield TwoPerformances(broker, replace(theirs.result(), log=log), mine.result())


def prepare(broker: PrivateBroker) -> None:
    """Create the topics of the scenario, and the broker's own topic for offsets."""
    with Clients(broker.bootstrap) as clients:
        clients.create_topics(TOPICS, 4)
        _await_coordinators(clients)


def _await_coordinators(clients: Clients) -> None:
    """Wait until every log partition is loaded; on a broker, the first request creates the topic."""
    names = {partition_for(name := f"probe-{number}", LOG_PARTITIONS): name for number in range(10 * LOG_PARTITIONS)}
    for name in names.values():
        clients.committed(name, ["orders"], 1)


def perform(
    generation: Generation,
    bootstrap: str,
    log: Path,
    end: Callable[[], None],
    then: Callable[[Stage], Sequence[str]] | None = None,
) -> Performance:
    """Run the scenario, then `then` with other groups, collect the answers, and stop the coordinator while members still live."""
    started_ms = int(time.time() * 1000)
    with stage(bootstrap) as on:
        _await_coordinators(on.clients)
        groups = play(on, version_tuple(generation.version))
        if then is not None:
            groups += then(on)
        # kafka-python leaks sockets when it looks for a broker that has ended
        on.admin.close()
        with BrokerQueries(bootstrap, generation) as queries:
            answers = everything(queries, groups)
        end()
    return Performance(generation.version, generation.era, log, groups, answers, started_ms, int(time.time() * 1000))


def everything(queries: BrokerQueries, groups: Sequence[str]) -> BrokerAnswers:
    """All answers of a coordinator about groups; the order of members is not significant."""
    answers = BrokerAnswers.collect(queries, groups, _PARTITIONS)
    return replace(answers, classic={name: _sorted(group) for name, group in answers.classic.items()})


def once_loaded(queries: BrokerQueries, expected: BrokerAnswers, groups: Sequence[str]) -> BrokerAnswers:
    """The same, once all expected offsets are loaded or the time is over."""
    with suppress(NotReached):
        eventually(
            "the offsets are loaded",
            lambda: _has_offsets(queries, groups, expected.offsets),
            pause_seconds=0.1,
        )
    return everything(queries, groups)


def without_ids(performance: Performance) -> BrokerAnswers:
    """The answers with placeholders for member ids."""
    placeholders = Placeholders(performance.started_ms, performance.ended_ms)
    classic = {
        name: replace(
            group,
            members=tuple(
                replace(member, member_id=placeholders.member_id(name, member.member_id))
                for member in sorted(group.members, key=lambda member: (member.client_id, member.instance_id or ""))
            ),
        )
        for name, group in performance.answers.classic.items()
    }
    return replace(performance.answers, classic=classic)


def _has_offsets(queries: BrokerQueries, groups: Sequence[str], expected: Mapping[str, Offsets]) -> bool:
    try:
        return queries.offsets(groups) == expected
    except NotLoaded:
        return False


def _sorted(group: DescribedGroup) -> DescribedGroup:
    return replace(group, members=tuple(sorted(group.members, key=lambda member: member.member_id)))
