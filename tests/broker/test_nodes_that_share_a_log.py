"""Two coordinators with one topic as their log: clients find the owner, and a node that is killed loses nothing."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from eventually import equal_to, eventually
from group_offsets import commit_offsets
from live_kafka import QUIET
from log_builder import Log
from patience import PATIENCE_SECONDS
from table_logs import applied

from coordinator_core.state.era import Era
from pipelines.cli.main import main
from pipelines.examples.private.kafka.broker import PrivateBroker
from pipelines.examples.private.private_coordinator import PrivateCoordinator, PrivateCoordinatorError
from pipelines.query.engine import Snapshot

pytestmark = [pytest.mark.broker, pytest.mark.long]

PARTITIONS = 8
GROUPS = [f"group-{number}" for number in range(20)]
LOG_TOPIC = "grouplake_offsets"


@pytest.fixture(scope="module")
def broker() -> Iterator[PrivateBroker]:
    """A broker of this file."""
    with PrivateBroker() as running:
        yield running


def node(broker: PrivateBroker, folder: Path, number: int) -> PrivateCoordinator:
    return PrivateCoordinator(
        folder / f"node-{number}",
        topics={"orders": 4},
        log=f"kafka://{broker.bootstrap}/{LOG_TOPIC}",
        node_id=number,
        offsets_topic_num_partitions=PARTITIONS,
        group_initial_rebalance_delay_ms=0,
    )


def consumer(bootstrap: str, group: str) -> Consumer:
    return Consumer({"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False, **QUIET})


def commit(bootstrap: str, group: str, offset: int) -> None:
    commit_offsets(bootstrap, group, {("orders", 0): offset})


def committed(bootstrap: str) -> dict[str, int]:
    found = {}
    for group in GROUPS:
        member = consumer(bootstrap, group)

        def offset(member: Consumer = member) -> int | None:
            try:
                return member.committed([TopicPartition("orders", 0)], PATIENCE_SECONDS)[0].offset
            except KafkaException:
                return None

        found[group] = eventually(f"the offset of {group}", offset, lambda value: value is not None)
        member.close()
    return {group: offset for group, offset in found.items() if offset is not None}


def test_a_killed_node_loses_nothing(broker: PrivateBroker, tmp_path: Path) -> None:
    first, second = node(broker, tmp_path, 1), node(broker, tmp_path, 2)
    with first:
        first.wait_until_active(PARTITIONS)
        for number, group in enumerate(GROUPS):
            commit(first.bootstrap, group, number)
        with second:
            second.wait_until_active(PARTITIONS // 2)
            described = AdminClient({"bootstrap.servers": second.bootstrap, **QUIET}).list_topics(timeout=PATIENCE_SECONDS)
            assert {number: f"{each.host}:{each.port}" for number, each in described.brokers.items()} == {
                1: first.bootstrap,
                2: second.bootstrap,
            }
            before = dict(zip(GROUPS, range(len(GROUPS)), strict=True))
            assert committed(second.bootstrap) == before
            for number, group in enumerate(GROUPS):
                commit(second.bootstrap, group, 100 + number)
            second.kill()
            first.wait_until_active(PARTITIONS)
            assert first.events("node ended")
            after = {group: 100 + offset for group, offset in before.items()}
            assert committed(first.bootstrap) == after
        admin = AdminClient({"bootstrap.servers": first.bootstrap, **QUIET})
        assert {each.group_id for each in admin.list_consumer_groups().result().valid} == set(GROUPS)
        first.stop()
    assert in_tables(broker, tmp_path) == after


def in_tables(broker: PrivateBroker, folder: Path) -> dict[str, int]:
    """Offsets in the tables of a job that reads the log; they have a batch, so that it does not start Spark."""
    conf = folder / "job.toml"
    conf.write_text('[kafka]\nisolation_level = "read_committed"\n')
    source, tables = f"kafka://{broker.bootstrap}/{LOG_TOPIC}", str(folder / "tables")
    applied(Log(), Era.named("4"), [], tables)
    command = ["run", "--source", source, "--tables", tables, "--trigger", "available-now", "--conf", str(conf)]
    assert main(command) == 0
    rows = Snapshot.open(tables).query("SELECT group_id, committed_offset FROM offsets").to_pylist()
    return {str(row["group_id"]): int(row["committed_offset"]) for row in rows}


def test_a_node_id_that_is_in_use(broker: PrivateBroker, tmp_path: Path) -> None:
    with node(broker, tmp_path, 1) as running:
        # compiled code is loaded before the node takes partitions from others
        assert "numba" in Path(f"/proc/{running.pid}/maps").read_text()
        running.wait_until_active(PARTITIONS)
        second = node(broker, tmp_path / "second", 1)
        with pytest.raises(PrivateCoordinatorError, match=f"node id 1 is in use by the coordinator at {running.bootstrap}"):
            second.start()
        running.stop()


def test_a_node_outlasts_a_restart_of_the_broker(tmp_path: Path) -> None:
    with PrivateBroker() as broker, node(broker, tmp_path, 1) as running:
        running.wait_until_active(PARTITIONS)
        commit(running.bootstrap, GROUPS[0], 1)
        broker.kill()
        broker.start()
        commit(running.bootstrap, GROUPS[0], 2)
        member = consumer(running.bootstrap, GROUPS[0])
        read = lambda: member.committed([TopicPartition("orders", 0)], PATIENCE_SECONDS)[0].offset  # noqa: E731
        eventually("the offset is read", read, equal_to(2))
        member.close()
        running.stop()
