"""Forged and damaged requests get the same answers from a 4.1.1 broker and from the coordinator, but for documented differences.

tests/conformance/README.md has the reasons of the differences.
"""

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, Message, Producer
from hostile_requests import MIB, PLAIN, create_topics, play
from java_clients import JavaClients, java_clients
from live_kafka import QUIET
from patience import PATIENCE_SECONDS
from py4j.protocol import Py4JJavaError

from pipelines.examples.private.kafka.broker import PrivateBroker
from pipelines.examples.private.private_coordinator import PrivateCoordinator

pytestmark = pytest.mark.broker

PAGE = Path(__file__).parents[1] / "conformance" / "README.md"
_ROW = re.compile(r"^\| ([^|`]+) \| (\S[^|]*) \| (\S[^|]*) \| .+ \|$", re.MULTILINE)


@pytest.fixture(scope="module")
def coordinator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrivateCoordinator]:
    settings: dict[str, Any] = {"offsets_topic_num_partitions": 2, "transaction_state_log_num_partitions": 2}
    with PrivateCoordinator(tmp_path_factory.mktemp("hostile") / "log", **settings) as running:
        create_topics(running.bootstrap)
        yield running
        assert running.events("unexpected error") == []


@pytest.fixture(scope="module")
def both(broker: PrivateBroker, coordinator: PrivateCoordinator) -> tuple[str, str]:
    create_topics(broker.bootstrap)
    return broker.bootstrap, coordinator.bootstrap


def documented() -> dict[str, tuple[str, str]]:
    _, _, section = PAGE.read_text(encoding="utf-8").partition("### Hostile producers\n")
    rows = _ROW.findall(section.partition("\n## ")[0])
    return {case: (theirs, ours) for case, theirs, ours in rows if case not in ("request", "---")}


@pytest.mark.long
def test_answers_are_the_same(both: tuple[str, str]) -> None:
    with ThreadPoolExecutor(2) as pool:
        theirs, ours = pool.map(play, both)
    assert theirs.keys() == ours.keys()
    assert {case: (theirs[case], ours[case]) for case in ours if theirs[case] != ours[case]} == documented()


def test_large_records_of_librdkafka(both: tuple[str, str]) -> None:
    for bootstrap in both:
        errors: list[KafkaError | None] = []

        def delivered(error: KafkaError | None, _message: Message, errors: list[KafkaError | None] = errors) -> None:
            errors.append(error)

        producer = Producer({"bootstrap.servers": bootstrap, "message.max.bytes": 8 * MIB, **QUIET})
        for size in (3 * MIB, 10):
            producer.produce(PLAIN, bytes(size), partition=1, on_delivery=delivered)
            assert producer.flush(PATIENCE_SECONDS) == 0
        assert [error and error.code() for error in errors] == [KafkaError.MSG_SIZE_TOO_LARGE, None]


@pytest.fixture(scope="module")
def clients() -> Iterator[JavaClients]:
    with java_clients("4.1.1") as running:
        yield running


@pytest.mark.long
def test_large_records_of_java(clients: JavaClients, both: tuple[str, str]) -> None:
    for bootstrap in both:
        with clients.producer(
            bootstrap, max_request_size=str(8 * MIB), delivery_timeout_ms="20000", request_timeout_ms="10000"
        ) as send:
            with pytest.raises(Py4JJavaError) as refused:
                send(PLAIN, bytes(3 * MIB))
            assert refused.value.java_exception.getCause().getClass().getSimpleName() == "RecordTooLargeException"
            assert send(PLAIN, b"small") >= 0
