"""Members without partitions for which there are none: a fact on the page, and no finding."""

import struct
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from log_builder import Log, member
from shop_pages import ShopPages
from status_story import Story
from table_logs import applied

from coordinator_core.codec import encode_assignment
from coordinator_core.codec.messages.classic import MemberMetadata
from coordinator_core.codec.messages.consumer_protocol import ConsumerProtocolAssignment, ProtocolTopicPartitions
from coordinator_core.codec.messages.streams import (
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupMemberMetadataValue,
    StreamsGroupMetadataValue,
    StreamsGroupTopologyValue,
    Subtopology,
    TaskIds,
)
from coordinator_core.state.era import Era
from pipelines.batch.without_records import finish_batch, write_rows
from pipelines.lag.past.status_at import group_status_at
from pipelines.query.engine import Snapshot
from pipelines.runtime.phases import Phases
from pipelines.tables import definitions
from pipelines.tables.store import TableStore

RULE = "members_without_partitions"


def having(name: str, topics: Sequence[str], user_data: bytes = b"", **partitions: Sequence[int]) -> MemberMetadata:
    """A member that subscribes to `topics` and has some of their partitions."""
    shares = tuple(ProtocolTopicPartitions(topic, tuple(numbers)) for topic, numbers in partitions.items())
    assignment = encode_assignment(ConsumerProtocolAssignment(shares, user_data), 0)
    return replace(member(name, topics=topics), client_id=f"client-{name}", assignment=assignment)


def evaluated(root: Path, *members: MemberMetadata, protocol: str = "range", after: float = 1_000) -> dict[str, Any]:
    """The findings of the group long after its last change, by rule."""
    story = Story(str(root)).end(5)
    story.log.group(members, group="billing", protocol=protocol)
    story.commit(5).at(1).sample()
    status = story.at(after).sample()
    story.expect_same_from_histories()
    return {finding["rule"]: finding for finding in status["findings"]}


def facts(root: Path) -> list[str]:
    found: list[str] = ShopPages(str(root)).json("groups/billing")["member_facts"]
    return found


def test_more_members_than_partitions(tmp_path: Path) -> None:
    """A hot spare, as of a topic with one partition."""
    assert RULE not in evaluated(tmp_path, having("a", ["orders"], orders=[0]), having("b", ["orders"]))
    fact = "1 of 2 members (client-b) has no partitions: the topics to which it subscribes have 1 partition."
    assert facts(tmp_path) == [fact]
    assert fact in ShopPages(str(tmp_path)).html("groups/billing").text


def test_several_spare_members(tmp_path: Path) -> None:
    members = [having("a", ["orders"], orders=[0, 1]), *(having(name, ["orders"]) for name in "bc")]
    assert RULE not in evaluated(tmp_path, *members)
    assert facts(tmp_path) == ["2 of 3 members have no partitions: the topics to which they subscribe have 2 partitions."]


def test_as_many_partitions_as_members_are_enough_for_all(tmp_path: Path) -> None:
    found = evaluated(tmp_path, having("a", ["orders"], orders=[0, 1]), having("b", ["orders"]))
    assert (found[RULE]["amount"], found[RULE]["client_id"]) == (1, "client-b")
    assert facts(tmp_path) == []


def test_partitions_of_other_subscriptions_do_not_count(tmp_path: Path) -> None:
    """Nine partitions of payments are of no use to a member that subscribes to orders."""
    members = [
        having("a", ["orders"], orders=[0]),
        having("b", ["orders"]),
        having("c", ["payments"], payments=range(9)),
    ]
    assert RULE not in evaluated(tmp_path, *members)


def test_members_of_other_subscriptions_do_not_count(tmp_path: Path) -> None:
    """Three members of orders are no rivals of one that subscribes to payments, of which another one has both partitions."""
    members = [
        *(having(name, ["orders"], orders=[number]) for number, name in enumerate("abc")),
        having("d", ["payments"], payments=[0, 1]),
        having("e", ["payments"]),
    ]
    assert evaluated(tmp_path, *members)[RULE]["client_id"] == "client-e"


@pytest.mark.parametrize("topics", [(), ("mistyped",)])
def test_a_subscription_without_partitions_is_a_defect(tmp_path: Path, topics: Sequence[str]) -> None:
    found = evaluated(tmp_path, having("a", ["orders"], orders=[0, 1]), having("b", topics))
    assert (found[RULE]["amount"], found[RULE]["client_id"]) == (1, "client-b")


def test_spare_members_beside_a_defect(tmp_path: Path) -> None:
    members = [having("a", ["orders"], orders=[0]), having("b", ["orders"]), having("c", ["mistyped"])]
    found = evaluated(tmp_path, *members)
    assert (found[RULE]["amount"], found[RULE]["window_rows"], found[RULE]["client_id"]) == (1, 3, "client-c")
    assert facts(tmp_path) == ["1 of 3 members (client-b) has no partitions: the topics to which it subscribes have 1 partition."]


def test_an_unreadable_subscription_is_no_defect(tmp_path: Path) -> None:
    unreadable = replace(having("b", ["orders"]), subscription=b"\xff\xff\xff")
    assert RULE not in evaluated(tmp_path, having("a", ["orders"], orders=[0, 1, 2]), unreadable)


def test_unreadable_assignments_hide_partitions(tmp_path: Path) -> None:
    """The member with the unreadable assignment may have any number of partitions."""
    unreadable = replace(having("a", ["orders"]), assignment=b"\0")
    assert RULE not in evaluated(tmp_path, unreadable, having("b", ["orders"]))


def test_the_cluster_knows_the_partitions(tmp_path: Path) -> None:
    """`topic_partitions` counts also where no member has a partition."""
    story = Story(str(tmp_path)).end(5)
    story.log.group([having("a", ["orders"], orders=[0]), having("b", ["orders"])], group="billing")
    story.commit(5).at(1).sample()
    assert RULE not in {each["rule"] for each in story.at(1_000).sample()["findings"]}
    writer = story.writer()
    assert writer.last is not None
    schema = pa.schema([field for field in definitions.table("topic_partitions").schema if field.name != "batch_id"])
    rows = [{"topic": "orders", "partition": number, "replicas": [1], "in_sync_replicas": [1]} for number in range(3)]
    write_rows(writer, "topic_partitions", pa.Table.from_pylist(rows, schema), writer.begin())
    finish_batch(writer, writer.last, Phases(story.clock()), story.clock())
    status = story.at(2_000).end(6).sample()
    assert RULE in {each["rule"] for each in status["findings"]}


def user_data(standby: int, version: int = 11) -> bytes:
    """`AssignmentInfo` without active tasks."""
    tasks = b"".join(struct.pack(">iiii", 0, number, 0, 0) for number in range(standby))
    return struct.pack(">iiii", version, version, 0, standby) + tasks


@pytest.mark.parametrize("standby", [0, 2])
def test_standby_tasks_of_a_classic_streams_application(tmp_path: Path, standby: int) -> None:
    """An instance without active tasks that holds copies of the state; without any it is idle."""
    active = having("a", ["orders"], user_data(0), orders=[0, 1, 2])
    found = evaluated(tmp_path, active, having("b", ["orders"], user_data(standby)), protocol="stream")
    assert (RULE in found) == (standby == 0)
    shown = ["1 of 2 members (client-b) has no partitions: it holds 2 standby tasks."]
    assert facts(tmp_path) == (shown if standby else [])
    stored = Snapshot.open(str(tmp_path)).query("SELECT standby_tasks FROM members ORDER BY member_id")
    assert stored["standby_tasks"].to_pylist() == [0, standby]


def test_user_data_of_other_assignors_are_not_tasks(tmp_path: Path) -> None:
    members = [having("a", ["orders"], orders=[0, 1]), having("b", ["orders"], user_data(2))]
    assert RULE in evaluated(tmp_path, *members, protocol="range")


def test_standby_tasks_of_a_streams_group(tmp_path: Path) -> None:
    """KIP-1071: active, standby and warm-up tasks are in the records."""
    log = Log()
    topology = StreamsGroupTopologyValue(1, (Subtopology("0", source_topics=("orders",)),))
    log.modern(17, StreamsGroupMetadataValue(1, 0, validated_topology_epoch=1))
    log.modern(23, topology)
    for name in ("m1", "m2"):
        log.modern(19, StreamsGroupMemberMetadataValue(None, None, "client", "/h", -1, 0, "p"), member=name)
    log.modern(22, StreamsGroupCurrentMemberAssignmentValue(1, 0, 1, (TaskIds("0", (0, 1)),)), member="m1")
    standby, warm = (TaskIds("0", (0,)),), (TaskIds("0", (1,)),)
    log.modern(22, StreamsGroupCurrentMemberAssignmentValue(1, 0, 1, standby_tasks=standby, warmup_tasks=warm), member="m2")
    applied(log, Era.named("4"), [], str(tmp_path))
    rows = Snapshot.open(str(tmp_path)).query("SELECT member_id, standby_tasks FROM members ORDER BY member_id").to_pylist()
    assert rows == [{"member_id": "m1", "standby_tasks": 0}, {"member_id": "m2", "standby_tasks": 2}]


def test_past_members_are_not_accused_without_their_table(tmp_path: Path) -> None:
    """The history has numbers of members, not what they subscribed to."""
    story = Story(str(tmp_path)).end(5)
    story.log.group([having("a", ["orders"], orders=[0]), having("b", ["orders"])], group="billing")
    story.commit(5).at(1).sample()
    story.at(1_000).sample()
    at = story.clock()
    story.at(1_100).log.group([having("a", ["orders"], orders=[0])], group="billing", generation=6)
    story.sample()
    for name in definitions.KEYS:
        TableStore(story.root).table(name).vacuum(0, dry_run=False, enforce_retention_duration=False)
    (status,) = group_status_at(Snapshot.open(story.root), at, ["billing"]).to_pylist()
    assert RULE not in {each["rule"] for each in status["findings"]}
