"""Subscription, assignment and user data of classic consumers."""

from collections.abc import Callable
from typing import Any

import pytest

from coordinator_core.codec import (
    Malformed,
    NoAssignment,
    cooperative_generation,
    decode_assignment,
    decode_cooperative_user_data,
    decode_sticky_user_data,
    decode_subscription,
    encode_assignment,
    encode_cooperative_user_data,
    encode_sticky_user_data,
    encode_subscription,
    subscribed_topics,
)
from coordinator_core.codec.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    CooperativeStickyUserData,
    ProtocolTopicPartitions,
    StickyUserData,
)

OWNED = (ProtocolTopicPartitions("t", (0, 1)),)
TOPICS = "00000001 0001 74"
OWNED_HEX = "00000001 0001 74 00000002 00000000 00000001"

BY_VERSION = [
    (0, f"0000 {TOPICS} ffffffff", ConsumerProtocolSubscription(("t",))),
    (1, f"0001 {TOPICS} 00000001 aa {OWNED_HEX}", ConsumerProtocolSubscription(("t",), b"\xaa", OWNED)),
    (2, f"0002 {TOPICS} 00000000 {OWNED_HEX} 00000007", ConsumerProtocolSubscription(("t",), b"", OWNED, 7)),
    (3, f"0003 {TOPICS} ffffffff {OWNED_HEX} 00000007 0001 72", ConsumerProtocolSubscription(("t",), None, OWNED, 7, "r")),
]


@pytest.mark.parametrize(("version", "data", "subscription"), BY_VERSION)
def test_subscriptions_of_every_version(version: int, data: str, subscription: ConsumerProtocolSubscription) -> None:
    assert decode_subscription(bytes.fromhex(data)) == subscription
    assert encode_subscription(subscription, version) == bytes.fromhex(data)
    assert subscribed_topics(bytes.fromhex(data)) == ("t",)


def test_a_later_version_is_read_as_the_highest_known_one() -> None:
    _, data, subscription = BY_VERSION[3]
    later = b"\x00\x09" + bytes.fromhex(data)[2:] + b"fields to come"

    assert decode_subscription(later) == subscription
    assert decode_assignment(bytes.fromhex("0009 00000000 ffffffff")) == ConsumerProtocolAssignment()


@pytest.mark.parametrize("data", ["", "00", "ffff 00000000 ffffffff", "0000 7fffffff", "0001 00000000 ffffffff", "0000 ffffffff"])
def test_malformed_subscriptions(data: str) -> None:
    assert isinstance(decode_subscription(bytes.fromhex(data)), Malformed)


def test_the_coordinator_reads_no_more_than_version_0() -> None:
    assert subscribed_topics(bytes.fromhex(f"0001 {TOPICS} ffffffff")) == ("t",)
    assert subscribed_topics(bytes.fromhex(f"ffff {TOPICS} ffffffff")) == ("t",)
    assert isinstance(subscribed_topics(bytes.fromhex(f"0000 {TOPICS}")), Malformed)


@pytest.mark.parametrize("version", range(4))
def test_assignments_have_one_layout_in_every_version(version: int) -> None:
    data = bytes.fromhex(f"000{version} {OWNED_HEX} 00000001 aa")

    assert decode_assignment(data) == ConsumerProtocolAssignment(OWNED, b"\xaa")
    assert encode_assignment(ConsumerProtocolAssignment(OWNED, b"\xaa"), version) == data


def test_empty_assignment_bytes_are_no_assignment() -> None:
    assert decode_assignment(b"") == NoAssignment()


@pytest.mark.parametrize("encode", [encode_subscription, encode_assignment])
def test_unknown_versions_are_not_written(encode: Callable[..., Any]) -> None:
    with pytest.raises(ValueError, match="version 4"):
        encode(ConsumerProtocolSubscription(), 4)


def test_sticky_user_data_is_read_as_v1_then_as_v0() -> None:
    assert decode_sticky_user_data(bytes.fromhex(f"{OWNED_HEX} 00000005")) == StickyUserData(OWNED, 5)
    assert decode_sticky_user_data(bytes.fromhex(OWNED_HEX)) == StickyUserData(OWNED, -1)
    assert isinstance(decode_sticky_user_data(b"noise"), Malformed)
    assert encode_sticky_user_data(StickyUserData(OWNED, 5), 0) == bytes.fromhex(OWNED_HEX)


def test_cooperative_sticky_user_data() -> None:
    assert encode_cooperative_user_data(CooperativeStickyUserData(5)) == bytes.fromhex("00000005")
    assert decode_cooperative_user_data(bytes.fromhex("00000005")) == CooperativeStickyUserData(5)
    assert isinstance(decode_cooperative_user_data(b""), Malformed)


@pytest.mark.parametrize(
    ("subscription", "generation"),
    [
        (ConsumerProtocolSubscription(generation_id=7, user_data=b"\x00\x00\x00\x05"), 7),
        (ConsumerProtocolSubscription(user_data=b"\x00\x00\x00\x05"), 5),
        (ConsumerProtocolSubscription(user_data=b"no"), -1),
        (ConsumerProtocolSubscription(), -1),
    ],
)
def test_generation_of_a_cooperative_member(subscription: ConsumerProtocolSubscription, generation: int) -> None:
    assert cooperative_generation(subscription.generation_id, subscription.user_data) == generation
