"""Commits of old clients, of clients with text that is not UTF-8, and with any retention: the answers of real brokers."""

import pytest
from group_offsets import commit_offsets
from live_kafka import create_topic
from old_commits import answers_of_brokers, ask_for_all
from wire_connection import PLACE, Wire

from pipelines.examples.private.kafka.broker import PrivateBroker

pytestmark = [pytest.mark.broker, pytest.mark.slow]


@pytest.mark.parametrize(("release", "has_zookeeper"), [("1.1.1", True), ("2.8.2", True), ("3.9.1", False)])
def test_answers(release: str, has_zookeeper: bool) -> None:
    with PrivateBroker(release) as broker:
        create_topic(broker.bootstrap, PLACE.topic, 1)
        # a request for the coordinator creates the topic of offsets
        commit_offsets(broker.bootstrap, "first", {(PLACE.topic, 0): 1})
        wire = Wire(int(broker.bootstrap.rpartition(":")[2]))
        assert ask_for_all(wire) == answers_of_brokers(has_zookeeper=has_zookeeper)
        wire.close()
