"""Commits of old clients, of clients with text that is not UTF-8, and with any retention: the answers of the era's brokers."""

from pathlib import Path

import pytest
from old_commits import answers_of_brokers, ask_for_all
from wire_connection import PLACE, Wire

from pipelines.examples.private.private_coordinator import PrivateCoordinator


@pytest.mark.parametrize(("era", "has_zookeeper"), [("0.9", True), ("0.10", True), ("1", True), ("2", True), ("3", False)])
def test_answers(tmp_path: Path, era: str, has_zookeeper: bool) -> None:
    with PrivateCoordinator(tmp_path / "log", topics={PLACE.topic: 1}, era=era) as process:
        wire = Wire(process.port)
        assert ask_for_all(wire) == answers_of_brokers(has_zookeeper=has_zookeeper)
        wire.close()
