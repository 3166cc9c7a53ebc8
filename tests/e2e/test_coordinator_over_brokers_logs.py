"""The coordinator over logs that real brokers wrote: it gives the brokers' answers."""

from pathlib import Path
from typing import Any

import genuine
import pytest
from broker_queries import BrokerQueries, DescribedGroup
from generations import GENERATIONS

from coordinator_core.codec import Malformed, NoAssignment, decode_assignment
from pipelines.examples.private.private_coordinator import PrivateCoordinator, PrivateCoordinatorError

#: Recorded broker → generation of the queries.
_ASKED_AS = {"4.1.1": GENERATIONS["4.3.0"], "2.8.2": GENERATIONS["2.8.2"]}
#: Groups of KIP-848, which the coordinator does not describe.
_MODERN = {"next-gen", "next-gen-left"}


@pytest.mark.parametrize("version", ["4.1.1", pytest.param("2.8.2", marks=pytest.mark.slow)])
def test_it_answers_what_the_broker_answered(version: str, tmp_path: Path) -> None:
    recorded, generation = genuine.expected(version), _ASKED_AS[version]
    log = next(genuine.segments_dir(version, tmp_path).rglob("__consumer_offsets-*")).parent
    # partitions without a record are not in the archive
    for partition in recorded["high_watermarks"]:
        (log / f"__consumer_offsets-{partition}").mkdir(exist_ok=True)
    settings: dict[str, Any] = {
        "offsets_topic_num_partitions": len(recorded["high_watermarks"]),
        "offsets_retention_minutes": genuine.RETENTION_MINUTES,
    }
    with PrivateCoordinator(log, era=generation.era, **settings) as coordinator:
        with BrokerQueries(coordinator.bootstrap, generation) as queries:
            committed = queries.offsets(recorded["committed"])
            described = queries.classic([group for group in recorded.get("described", ()) if group not in _MODERN])
        coordinator.stop()
    assert {group: _plain(offsets) for group, offsets in committed.items()} == {
        group: {(topic, partition): (offset, metadata) for topic, partition, offset, metadata, *_ in offsets}
        for group, offsets in recorded["committed"].items()
    }
    assert {group: _as_recorded(found) for group, found in described.items()} == {
        group: (found["state"], found["assignor"], found["members"])
        for group, found in recorded.get("described", {}).items()
        if group not in _MODERN
    }


def test_a_log_from_before_0_11_is_refused_and_left_alone(tmp_path: Path) -> None:
    log = next(genuine.segments_dir("0.10.2.2", tmp_path).rglob("__consumer_offsets-*")).parent
    segments = {path: path.read_bytes() for path in log.rglob("*.log")}
    for partition in range(50):
        (log / f"__consumer_offsets-{partition}").mkdir(exist_ok=True)
    with pytest.raises(PrivateCoordinatorError, match=r"messages in a format from before Kafka 0\.11.*Nothing was cut off"):
        PrivateCoordinator(log, era="0.10", offsets_topic_num_partitions=50).start()
    assert {path: path.read_bytes() for path in segments} == segments


def _plain(offsets: dict[tuple[str, int], tuple[int, int, str]]) -> dict[tuple[str, int], tuple[int, str]]:
    # librdkafka appended a NUL to the metadata, and removed it when the answers were recorded
    return {key: (offset, metadata.removesuffix("\0")) for key, (offset, _, metadata) in offsets.items()}


def _as_recorded(group: DescribedGroup) -> tuple[str, str, list[list[Any]]]:
    members = [[member.client_id, member.instance_id, _assigned(member.assigned)] for member in group.members]
    return group.state.upper(), group.protocol or "", sorted(members, key=lambda member: (member[0], member[1] or ""))


def _assigned(data: bytes) -> list[list[Any]]:
    decoded = decode_assignment(data)
    assert not isinstance(decoded, (NoAssignment, Malformed)), decoded
    return sorted([each.topic, partition] for each in decoded.assigned_partitions for partition in each.partitions)
