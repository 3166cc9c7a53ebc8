"""Start offsets of share groups by their coordinators: unknown ones, errors, coordinators that move, bounded requests."""

from typing import Any

from fake_coordinators import FakeCoordinators

from coordinator_core.group_polls.group_poll import ShareOffset
from coordinator_core.group_polls.share_offsets import read_share_offsets


def answered(brokers: FakeCoordinators, *groups: str) -> list[ShareOffset]:
    connection: Any = brokers
    return read_share_offsets(connection, groups, lambda: 1_000)


def failed(group: str, reason: str) -> ShareOffset:
    return ShareOffset(group, None, None, None, None, None, reason, 1_000)


def test_a_partition_that_the_group_has_not_read_has_no_start_offset() -> None:
    brokers = FakeCoordinators({"b": (2, {"orders": 24}), "a": (1, {"orders": 7, "new": -1})})
    assert answered(brokers, "b", "a") == [
        ShareOffset("a", "new", 0, None, None, 0, None, 1_000),
        ShareOffset("a", "orders", 0, 7, 5, 0, None, 1_000),
        ShareOffset("b", "orders", 0, 24, 5, 0, None, 1_000),
    ]


def test_an_error_about_a_partition_is_its_reason() -> None:
    brokers = FakeCoordinators({"a": (1, {"orders": 7, "secret": 3})})
    brokers.hidden = {"secret"}
    assert answered(brokers, "a")[1] == ShareOffset("a", "secret", 0, None, None, None, "topic_authorization_failed", 1_000)


def test_groups_of_a_silent_broker_have_a_reason() -> None:
    brokers = FakeCoordinators({"a": (1, {"orders": 7}), "b": (2, {"orders": 1})})
    brokers.silent = {2}
    assert answered(brokers, "a", "b")[1:] == [failed("b", "coordinator_not_available")]


def test_a_share_group_whose_coordinator_has_moved_is_looked_up_again() -> None:
    brokers = FakeCoordinators({"a": (2, {"orders": 7})})
    brokers.moved = {"a": 1}
    assert answered(brokers, "a") == [ShareOffset("a", "orders", 0, 7, 5, 0, None, 1_000)]
    assert [sent for sent, _ in brokers.sent].count("FindCoordinatorRequest") == 2


def test_a_group_that_is_gone_has_no_row() -> None:
    assert answered(FakeCoordinators({"a": (1, {})}), "a", "gone") == []


def test_a_broker_without_the_request_is_a_reason() -> None:
    """Kafka 4.0, which has an early version of share groups."""
    brokers = FakeCoordinators({"a": (1, {"orders": 7})}, nodes=(1,), releases={1: (4, 0)})
    assert answered(brokers, "a") == [failed("a", "unsupported_version")]


def test_requests_about_start_offsets_are_bounded_in_groups() -> None:
    names = [f"group-{number}" for number in range(650)]
    brokers = FakeCoordinators({name: (1, {"orders": 1}) for name in names}, nodes=(1,))
    assert len(answered(brokers, *names)) == 650
    most = {name: max(count for sent, count in brokers.sent if sent == name) for name, _ in brokers.sent}
    assert most == {"FindCoordinatorRequest": 500, "DescribeShareGroupOffsetsRequest": 100}
