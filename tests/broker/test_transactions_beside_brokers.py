"""The transaction coordinator beside brokers: the same answers and the same records, and each loads the other's log."""

import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import java_tools
import pytest
from dumped_transactions import group_offsets, transaction_states
from live_kafka import create_topic
from transaction_scenario import (
    IDS,
    SETTINGS,
    TOPIC,
    TransactionClient,
    play_transactions,
    transaction_client,
    transaction_records,
    without_producer_ids,
)

from coordinator_core.protocol.internal_topics import OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC
from pipelines.examples.private.kafka.broker import PrivateBroker
from pipelines.examples.private.kafka.distribution import version_tuple
from pipelines.examples.private.private_coordinator import PrivateCoordinator

pytestmark = [pytest.mark.broker, pytest.mark.long]

OFFSETS_PARTITIONS, TRANSACTION_PARTITIONS = 4, 2


@dataclass(frozen=True)
class Performance:
    """Answers, descriptions of all ids, and the folder of a log that is not written any more."""

    answers: list[tuple[str, str]]
    described: dict[str, tuple[str, ...]]
    listed: dict[str, str]
    log: Path


@dataclass(frozen=True)
class Both:
    version: str
    era: str
    broker: PrivateBroker
    theirs: Performance
    ours: Performance


def ours_of(era: str, directory: Path) -> PrivateCoordinator:
    settings: dict[str, Any] = {name.replace(".", "_"): value for name, value in SETTINGS.items()}
    settings |= {
        "transaction_state_log_num_partitions": TRANSACTION_PARTITIONS,
        "offsets_topic_num_partitions": OFFSETS_PARTITIONS,
    }
    return PrivateCoordinator(directory, topics={TOPIC: 1}, era=era, **settings)


def perform(bootstrap: str, era: str, log: Path) -> Performance:
    with transaction_client(bootstrap) as client:
        play_transactions(client, era)
        return Performance(client.answers, described(client), client.listed(), log)


def described(client: TransactionClient) -> dict[str, tuple[str, ...]]:
    return {name: client.describe(name) for name in IDS}


@pytest.fixture(
    scope="module",
    params=["4.1.1", pytest.param("4.3.0", marks=pytest.mark.slow), pytest.param("3.9.1", marks=pytest.mark.slow)],
)
def both(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    version, directory = request.param, tmp_path_factory.mktemp("both")
    era = "3" if version_tuple(version) < (4,) else "4"
    properties = {name: str(value) for name, value in SETTINGS.items()}
    with (
        PrivateBroker(version, offsets_partitions=OFFSETS_PARTITIONS, properties=properties) as broker,
        ours_of(era, directory / "ours") as ours,
    ):
        create_topic(broker.bootstrap, TOPIC, 1)
        with ThreadPoolExecutor(2) as pool:
            theirs = pool.submit(perform, broker.bootstrap, era, directory / "theirs")
            mine = pool.submit(perform, ours.bootstrap, era, ours.directory)
            played = theirs.result(), mine.result()
        broker.stop()
        ours.kill()
        for topic in (TRANSACTION_STATE_TOPIC, OFFSETS_TOPIC):
            for folder in broker.data.glob(f"{topic}-*"):
                shutil.copytree(folder, directory / "theirs" / folder.name)
        yield Both(version, era, broker, *played)


def test_the_answers_are_the_same(both: Both) -> None:
    assert both.ours.answers == both.theirs.answers
    assert both.ours.described == both.theirs.described
    assert both.ours.listed == both.theirs.listed


def test_the_records_are_the_same(both: Both) -> None:
    """In the order of each id; brokers before 4.3 do not write the producer ids of an overflow."""
    ours, theirs = transaction_records(both.ours.log), transaction_records(both.theirs.log)
    if (4,) <= version_tuple(both.version) < (4, 3):
        ours = without_producer_ids(ours)
    assert ours == theirs


@pytest.mark.long
def test_the_dumps_are_the_same(both: Both) -> None:
    """`kafka-dump-log` of 4.1.1 with `--transaction-log-decoder` and `--offsets-decoder`."""
    for topic, decoder, read in (
        (TRANSACTION_STATE_TOPIC, "transaction-log", transaction_states),
        (OFFSETS_TOPIC, "offsets", group_offsets),
    ):
        ours, theirs = (java_tools.dumped_records(each.log, topic, decoder) for each in (both.ours, both.theirs))
        assert ours.keys() == theirs.keys()
        for folder, lines in ours.items():
            assert read(lines) == read(theirs[folder])


def test_it_loads_the_log_of_the_broker(both: Both, tmp_path: Path) -> None:
    shutil.copytree(both.theirs.log, tmp_path / "log")
    with ours_of(both.era, tmp_path / "log") as ours, transaction_client(ours.bootstrap) as client:
        assert (described(client), client.listed()) == (both.theirs.described, both.theirs.listed)


def test_the_broker_loads_its_log(both: Both) -> None:
    both.broker.place_segments(both.ours.log, TRANSACTION_STATE_TOPIC)
    both.broker.place_segments(both.ours.log, OFFSETS_TOPIC)
    both.broker.start()
    with transaction_client(both.broker.bootstrap) as client:
        for name in IDS:
            client.await_coordinator(name)
        assert (described(client), client.listed()) == (both.ours.described, both.ours.listed)
