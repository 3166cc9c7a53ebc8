"""`spark-kafka://` follows a `__consumer_offsets` that gets more partitions: its query is restarted to read them."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewPartitions
from eventually import eventually
from following import Job
from group_offsets import commit_offsets, committed
from live_kafka import QUIET, create_topic
from patience import LIMIT_SECONDS, PATIENCE_SECONDS

from coordinator_core.log.partitioner import partition_for
from coordinator_core.protocol.internal_topics import OFFSETS_TOPIC
from pipelines.examples.private.kafka.broker import PrivateBroker
from pipelines.query.check import check
from pipelines.query.engine import Snapshot

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.long]

OLD, NEW = 3, 7
TOPIC = "orders"
GROUPS = tuple(map("group-{}".format, range(10)))
#: A group whose new partition is one of the old ones: a stream of the old partitions reads its records.
MOVED_WITHIN = next(
    name for name in map("moved-{}".format, range(99)) if partition_for(name, OLD) != partition_for(name, NEW) < OLD
)


@pytest.fixture
def broker() -> Iterator[PrivateBroker]:
    with PrivateBroker("4.3.0", offsets_partitions=OLD) as started:
        yield started


def test_the_tables_follow_a_growth(broker: PrivateBroker, tmp_path: Path) -> None:
    create_topic(broker.bootstrap, TOPIC, 2)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, **QUIET})
    groups = (*GROUPS, MOVED_WITHIN)
    commit(broker, 10, groups)
    with Job(f"spark-kafka://{broker.bootstrap}/{OFFSETS_TOPIC}", tmp_path) as job:
        job.wait_until_logged("ready: following ")
        expect(broker, groups, tmp_path, job)
        for future in admin.create_partitions([NewPartitions(OFFSETS_TOPIC, NEW)]).values():
            future.result(PATIENCE_SECONDS)
        broker.stop()
        broker.start()
        commit(broker, 20, (MOVED_WITHIN,))
        job.wait_until_logged(f"restarting the query: {OFFSETS_TOPIC} has {NEW} partitions now, and the stream reads {OLD}")
        expect(broker, groups, tmp_path, job)
        commit(broker, 30, GROUPS[::2])
        expect(broker, groups, tmp_path, job)
    assert check(str(tmp_path)) == []


def expect(broker: PrivateBroker, groups: tuple[str, ...], root: Path, job: Job) -> None:
    """The tables get what the broker answers."""
    # a client of before the restart may wait for its connection of before
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, **QUIET})
    answers = {group: {place[1]: offset for place, offset in committed(admin, group).items()} for group in groups}

    def offsets() -> dict[str, dict[int, int]]:
        found: dict[str, dict[int, int]] = {group: {} for group in groups}
        for row in Snapshot.open(str(root)).query("SELECT group_id, partition, committed_offset FROM offsets").to_pylist():
            found[row["group_id"]][row["partition"]] = row["committed_offset"]
        return found

    eventually(
        f"the tables have {answers}", offsets, lambda found: found == answers, unless=job.failure, patience_seconds=LIMIT_SECONDS
    )


def commit(broker: PrivateBroker, offset: int, groups: tuple[str, ...]) -> None:
    for group in groups:
        commit_offsets(broker.bootstrap, group, {(TOPIC, 0): offset})
