"""Records as Kafka's formatters print them."""

from typing import Any
from uuid import UUID

import pytest
from dump_forms import DELETE, dump_form
from expecting import expect

from coordinator_core.codec import Record, encode_assignment, encode_subscription
from coordinator_core.codec.messages.classic import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from coordinator_core.codec.messages.consumer import ConsumerGroupMemberMetadataValue, ConsumerGroupMetadataValue
from coordinator_core.codec.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    ProtocolTopicPartitions,
)
from coordinator_core.codec.messages.modern import GroupKey, MemberKey
from coordinator_core.codec.messages.offsets import OffsetCommitKey, OffsetCommitValue
from coordinator_core.codec.text import classic_line, json_form

COMMIT_KEY = OffsetCommitKey("g", "t", 3)
COMMIT = OffsetCommitValue(37, 5, "meta", 1420000000000, 1420086400000, UUID("7d79e6b7-162d-4dd0-8f54-32f8c79fbe58"))
MEMBER = MemberMetadata("m1", None, "c", "/127.0.0.1", 60000, 30000, b"\x00\x01", b"\x01\x02")
GROUP = GroupMetadataValue("consumer", 5, "range", "m1", 1234, (MEMBER,))


def commit(version: int, value: OffsetCommitValue = COMMIT) -> Record:
    return Record(1, COMMIT_KEY, value, version)


def group(version: int, value: GroupMetadataValue = GROUP) -> Record:
    return Record(2, GroupMetadataKey("g"), value, version)


@pytest.mark.parametrize(
    ("version", "data"),
    [
        (0, {"offset": 37, "metadata": "meta", "commitTimestamp": 1420000000000}),
        (1, {"offset": 37, "metadata": "meta", "commitTimestamp": 1420000000000, "expireTimestamp": 1420086400000}),
        (3, {"offset": 37, "leaderEpoch": 5, "metadata": "meta", "commitTimestamp": 1420000000000}),
        (
            4,
            {
                "offset": 37,
                "leaderEpoch": 5,
                "metadata": "meta",
                "commitTimestamp": 1420000000000,
                "topicId": "fXnmtxYtTdCPVDL4x5--WA",
            },
        ),
    ],
)
def test_json_of_offset_commits(version: int, data: dict[str, int | str]) -> None:
    form = json_form(commit(version))

    assert form == {
        "key": {"type": 1, "data": {"group": "g", "topic": "t", "partition": 3}},
        "value": {"version": version, "data": data},
    }
    assert list(form["value"]["data"]) == list(data)


def test_json_of_a_tombstone() -> None:
    assert json_form(Record(1, COMMIT_KEY, None, None))["value"] is None


def test_json_of_a_classic_group() -> None:
    assert json_form(group(3)) == {
        "key": {"type": 2, "data": {"group": "g"}},
        "value": {
            "version": 3,
            "data": {
                "protocolType": "consumer",
                "generation": 5,
                "protocol": "range",
                "leader": "m1",
                "currentStateTimestamp": 1234,
                "members": [
                    {
                        "memberId": "m1",
                        "groupInstanceId": None,
                        "clientId": "c",
                        "clientHost": "/127.0.0.1",
                        "rebalanceTimeout": 60000,
                        "sessionTimeout": 30000,
                        "subscription": "AAE=",
                        "assignment": "AQI=",
                    }
                ],
            },
        },
    }


def test_json_leaves_out_fields_of_later_versions() -> None:
    data = json_form(group(0))["value"]["data"]

    assert "currentStateTimestamp" not in data
    assert not {"groupInstanceId", "rebalanceTimeout"} & data["members"][0].keys()


def test_json_leaves_out_tags_with_their_default_and_shows_nulls() -> None:
    metadata = Record(3, GroupKey("g"), ConsumerGroupMetadataValue(1), 0)
    absent = Record(5, MemberKey("g", "m"), ConsumerGroupMemberMetadataValue(None, None, "c", "h"), 0)
    null = Record(5, MemberKey("g", "m"), ConsumerGroupMemberMetadataValue(None, None, "c", "h", classic_member_metadata=None), 0)

    assert json_form(metadata)["value"]["data"] == {"epoch": 1}
    assert "classicMemberMetadata" not in json_form(absent)["value"]["data"]
    assert json_form(null)["value"]["data"]["classicMemberMetadata"] is None


def test_dump_form_has_type_and_version_as_text() -> None:
    form = dump_form(commit(0))

    assert form.key == {"type": "1", "data": {"group": "g", "topic": "t", "partition": 3}}
    assert expect(dict, form.payload)["version"] == "0"
    assert dump_form(Record(1, COMMIT_KEY, None, None)).payload == DELETE


def dumped_member(protocol_type: str, subscription: bytes, assignment: bytes) -> tuple[Any, Any]:
    """Subscription and assignment, as text or as objects of JSON."""
    member = MemberMetadata("m1", None, "c", "/h", 1, 1, subscription, assignment)
    form = dump_form(group(3, GroupMetadataValue(protocol_type, 5, "range", "m1", 1234, (member,))))
    shown = expect(dict, form.payload)["data"]["members"][0]
    return shown["subscription"], shown["assignment"]


PARTITIONS = (ProtocolTopicPartitions("foo", (0,)),)
SUBSCRIPTION = ConsumerProtocolSubscription(("foo",), None, PARTITIONS, 0, "rack")
ASSIGNMENT = encode_assignment(ConsumerProtocolAssignment(PARTITIONS, b"\x01"), 0)


def test_dump_form_decodes_what_consumers_wrote() -> None:
    subscription, assignment = dumped_member("consumer", encode_subscription(SUBSCRIPTION), ASSIGNMENT)

    assert subscription == {
        "topics": ["foo"],
        "userData": None,
        "ownedPartitions": [{"topic": "foo", "partitions": [0]}],
        "generationId": 0,
        "rackId": "rack",
    }
    assert assignment == {"assignedPartitions": [{"topic": "foo", "partitions": [0]}], "userData": "AQ=="}


def test_dump_form_shows_the_fields_of_the_stated_version() -> None:
    assert dumped_member("consumer", encode_subscription(SUBSCRIPTION, 0), b"")[0] == {"topics": ["foo"], "userData": None}
    assert list(dumped_member("consumer", encode_subscription(SUBSCRIPTION, 2), b"")[0])[-1] == "generationId"


def test_dump_form_keeps_what_it_cannot_decode() -> None:
    assert dumped_member("consumer", b"\x00\x01", b"") == ("AAE=", "")
    assert dumped_member("consumer", encode_subscription(SUBSCRIPTION, 0), b"\x00\x00\x01") == (
        {"topics": ["foo"], "userData": None},
        "AAAB",
    )
    assert dumped_member("connect", encode_subscription(SUBSCRIPTION, 0), b"")[0] == "AAAAAAABAANmb2//////"


def test_dump_form_reads_unknown_versions_until_they_name_partitions() -> None:
    nothing = ConsumerProtocolAssignment((), None)

    assert dumped_member("consumer", b"", b"\x00\x04" + encode_assignment(nothing)[2:])[1]["assignedPartitions"] == []
    assert isinstance(dumped_member("consumer", b"", b"\x00\x04" + ASSIGNMENT[2:])[1], str)
    assert isinstance(dumped_member("consumer", b"", b"\xff\xff" + ASSIGNMENT[2:])[1], dict)


BARE_COMMIT = "[g,t,3]::OffsetAndMetadata(offset=37, "
OLD_COMMIT = "[g,t,3]::[OffsetMetadata[37,meta],CommitTime 1420000000000,ExpirationTime 1420086400000]"
NEW_COMMIT = (
    "[g,t,3]::OffsetAndMetadata(offset=37, leaderEpoch=Optional[5], metadata=meta, "
    "commitTimestamp=1420000000000, expireTimestamp=Some(1420086400000))"
)


@pytest.mark.parametrize(
    ("era", "line"),
    [("0.9", OLD_COMMIT), ("0.10", OLD_COMMIT), ("1", OLD_COMMIT), ("2", NEW_COMMIT), ("3", NEW_COMMIT), ("4", NEW_COMMIT)],
)
def test_lines_of_offset_commits(era: str, line: str) -> None:
    assert classic_line(commit(1), era) == line


@pytest.mark.parametrize(
    ("era", "leader_epoch", "line"),
    [
        ("1", -1, "[g,t,3]::[OffsetMetadata[37,NO_METADATA],CommitTime 7,ExpirationTime -1]"),
        (
            "3",
            -1,
            f"{BARE_COMMIT}leaderEpoch=Optional.empty, metadata=, commitTimestamp=7, expireTimestamp=None)",
        ),
        (
            "2",
            -2,
            f"{BARE_COMMIT}leaderEpoch=Optional.empty, metadata=, commitTimestamp=7, expireTimestamp=None)",
        ),
        (
            "3",
            -2,
            f"{BARE_COMMIT}leaderEpoch=Optional[-2], metadata=, commitTimestamp=7, expireTimestamp=None)",
        ),
    ],
)
def test_lines_of_offset_commits_without_metadata(era: str, leader_epoch: int, line: str) -> None:
    assert classic_line(commit(3, OffsetCommitValue(37, leader_epoch, "", 7)), era) == line


MEMBER_LINE = (
    "clientId=c, clientHost=/127.0.0.1, sessionTimeoutMs=30000, rebalanceTimeoutMs=60000, supportedProtocols=List(range)"
)
GROUP_LINE = "g::GroupMetadata(groupId=g, generation=5, protocolType=Some(consumer), currentState=Stable, members="


@pytest.mark.parametrize(
    ("era", "line"),
    [
        ("0.9", "g::[g,consumer,Stable,Map(m1 -> [m1,c,/127.0.0.1,30000])]"),
        ("0.10", "g::[g,Some(consumer),Stable,Map(m1 -> [m1,c,/127.0.0.1,30000])]"),
        ("1", f"{GROUP_LINE}Map(m1 -> MemberMetadata(memberId=m1, {MEMBER_LINE}, )))"),
        ("2", f"{GROUP_LINE}Map(m1 -> MemberMetadata(memberId=m1, groupInstanceId=Some(null), {MEMBER_LINE}, )))"),
        ("3", f"{GROUP_LINE}HashMap(m1 -> MemberMetadata(memberId=m1, groupInstanceId=None, {MEMBER_LINE})))"),
        ("4", f"{GROUP_LINE}HashMap(m1 -> MemberMetadata(memberId=m1, groupInstanceId=None, {MEMBER_LINE})))"),
    ],
)
def test_lines_of_classic_groups(era: str, line: str) -> None:
    assert classic_line(group(3), era) == line


@pytest.mark.parametrize(
    ("era", "line"),
    [
        ("0.9", "g::[g,consumer,Stable,Map()]"),
        ("0.10", "g::[g,None,Empty,Map()]"),
        ("3", "g::GroupMetadata(groupId=g, generation=6, protocolType=Some(consumer), currentState=Empty, members=HashMap())"),
    ],
)
def test_lines_of_empty_groups(era: str, line: str) -> None:
    assert classic_line(group(0, GroupMetadataValue("consumer", 6, None, None)), era) == line


def test_rebalance_timeout_of_version_0_is_the_session_timeout() -> None:
    assert "rebalanceTimeoutMs=30000" in (classic_line(group(0), "3") or "")


def test_lines_of_tombstones() -> None:
    assert classic_line(Record(0, COMMIT_KEY, None, None), "3") == "[g,t,3]::NULL"
    assert classic_line(Record(2, GroupMetadataKey("g"), None, None), "3") == "g::NULL"


def test_other_types_have_no_line() -> None:
    assert classic_line(Record(3, GroupKey("g"), ConsumerGroupMetadataValue(1), 0), "4") is None
    assert classic_line(Record(5, MemberKey("g", "m"), None, None), "4") is None


def test_an_unknown_era_is_refused() -> None:
    with pytest.raises(ValueError, match="era '5'"):
        classic_line(commit(3), "5")
