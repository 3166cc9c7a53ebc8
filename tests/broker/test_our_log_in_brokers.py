"""The log of a coordinator that was killed while it rolled and cleaned: brokers of both kinds load it, and so does ours."""

import shutil
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from broker_queries import BrokerQueries
from coordinator_scenario import Stage
from eventually import at_least, eventually
from two_coordinators import (
    OFFSETS_TOPIC,
    Performance,
    generation_of,
    once_loaded,
    our_coordinator,
    perform,
    prepare,
    scenario_broker,
)

from coordinator_core.sources.segments import SegmentSource

pytestmark = [pytest.mark.broker, pytest.mark.slow]

#: Era → the brokers that behave like the coordinator of the era.
_AS = {"3": "3.9.1", "4": "4.1.1"}
_SMALL = {"offsets_topic_segment_bytes": 2000, "log_cleaner_interval_ms": 100, "log_min_cleanable_ratio": 0.01}
_GROUPS = 8
_ROUNDS = 25


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Performance]:
    """By era: the coordinator was killed after its last response; one more batch was partly written."""
    directory = tmp_path_factory.mktemp("killed")
    with ThreadPoolExecutor(2) as both:
        performances = dict(zip(_AS, both.map(lambda era: _killed(era, directory / era), _AS), strict=True))
    for performance in performances.values():
        _tear(performance.log)
    return performances


def _killed(era: str, directory: Path) -> Performance:
    with our_coordinator(era, directory, **_SMALL) as ours:

        def kill() -> None:
            all_of_them = at_least(_GROUPS * _ROUNDS)
            eventually("the log is cleaned", lambda: _removed(directory), all_of_them)
            ours.kill()

        return perform(generation_of(_AS[era]), ours.bootstrap, directory, kill, _much_to_clean)


def _removed(log: Path) -> int:
    """The number of records that a cleaner has removed."""
    source = SegmentSource(log)
    starts, ends = source.earliest_offsets(), source.end_offsets()
    return sum(ends.values()) - sum(len(columns) for p in starts for columns in source.read_columns(p, starts[p], ends[p]))


def _much_to_clean(on: Stage) -> list[str]:
    groups = [f"often-{number}" for number in range(_GROUPS)]
    members = [on.clients.consumer(group) for group in groups]
    for offset in range(_ROUNDS):
        for member in members:
            on.clients.commit(member, [("orders", 0, offset), ("clicks", 1, offset)], f"round {offset}")
    return groups


def _tear(log: Path) -> None:
    for folder in log.glob(f"{OFFSETS_TOPIC}-*"):
        segments = sorted(folder.glob("*.log"))
        batch = next(data for path in segments if (data := path.read_bytes()))
        with segments[-1].open("ab") as file:
            file.write(batch[:40])


def test_the_log_was_rolled_and_cleaned(killed: Mapping[str, Performance]) -> None:
    for performance in killed.values():
        assert _removed(performance.log) >= _GROUPS * _ROUNDS
        assert all(len(list(folder.glob("*.log"))) > 1 for folder in performance.log.glob(f"{OFFSETS_TOPIC}-*"))


@pytest.mark.parametrize("version", ["4.1.1", "3.9.1"])
def test_a_broker_loads_it_as_it_was_left(version: str, killed: Mapping[str, Performance]) -> None:
    with scenario_broker(version) as broker:
        prepare(broker)
        for performance in killed.values():
            broker.stop()
            broker.place_segments(performance.log)
            broker.start()
            with BrokerQueries(broker.bootstrap, generation_of(version)) as queries:
                assert once_loaded(queries, performance.answers, performance.groups) == performance.answers


def test_it_loads_it_as_it_was_left(killed: Mapping[str, Performance], tmp_path: Path) -> None:
    for era, performance in killed.items():
        shutil.copytree(performance.log, tmp_path / era)
        with (
            our_coordinator(era, tmp_path / era, **_SMALL) as ours,
            BrokerQueries(ours.bootstrap, generation_of(_AS[era])) as queries,
        ):
            assert once_loaded(queries, performance.answers, performance.groups) == performance.answers
