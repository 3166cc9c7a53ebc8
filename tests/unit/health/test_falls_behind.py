"""The finding of a group that falls behind: text, severity, and the partition that it names."""

from typing import Any

import pytest

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.health import DEFAULT_SETTINGS, GroupEvidence, PartitionEvidence, PartitionLag, PartitionOwner, evaluate
from coordinator_core.health.durations import duration

HOUR = 3_600
#: 2026-11-23 17:30 UTC.
NOW = 1_795_455_000_000
SINCE = NOW - 18 * 60_000


def lag(slope: float = 9.9, margin: float | None = None, **values: Any) -> PartitionLag:
    return PartitionLag(
        lag_slope_per_second=slope,
        produce_rate=100.0,
        retention_margin_seconds=margin,
        **{"falls_behind_since_ms": SINCE, "lag_reason": "first_sample", **values},
    )


def found(*lags: PartitionLag, owner: PartitionOwner | None = None) -> list[tuple[str, str, TopicPartition | None]]:
    partitions = tuple(PartitionEvidence(TopicPartition("orders", n), each, None, owner=owner) for n, each in enumerate(lags))
    status = evaluate(GroupEvidence("billing", NOW, DEFAULT_SETTINGS, partitions))
    return [(str(each.status), each.detail, each.partition) for each in status.findings]


def test_by_how_much_and_since_when() -> None:
    assert found(lag()) == [
        ("WARN", "The group falls behind by 9.9 records/s in orders-0 since 17:12 UTC.", TopicPartition("orders", 0))
    ]


def test_a_start_that_may_be_earlier() -> None:
    """Of one partition is enough: the group may have fallen behind on it first."""
    latest = lag(falls_behind_since_is_latest=True, falls_behind_since_ms=SINCE + 60_000)
    ((_, one, _),) = found(latest)
    assert one == "The group falls behind by 9.9 records/s in orders-0 since 17:13 UTC at the latest."
    ((_, two, _),) = found(latest, lag())
    assert two == "The group falls behind by 19.8 records/s in orders since 17:12 UTC at the latest on 2 partitions."


@pytest.mark.parametrize(
    ("margin", "status", "text"),
    [
        # a tenth of the traffic remains unread, so twelve hours of retention last for five days
        (12.2 * HOUR, "WARN", "5 d 3 h"),
        (0.5 * HOUR, "ERR", "5 h 3 min"),
        (0, "ERR", "0 s"),
    ],
)
def test_the_time_until_deletion_decides(margin: float, status: str, text: str) -> None:
    ((severity, detail, _),) = found(lag(margin=margin))
    assert (severity, detail) == (
        status,
        f"The group falls behind by 9.9 records/s in orders-0 since 17:12 UTC; unread data is deleted in {text} at this rate.",
    )


def test_partitions_of_a_topic_are_one_finding() -> None:
    assert found(lag(2, 40 * HOUR), lag(30, 90 * HOUR), lag(4, falls_behind_since_ms=None)) == [
        (
            "WARN",
            "The group falls behind by 32.0 records/s in orders since 17:12 UTC on 2 partitions; "
            "unread data is deleted in 12 d 12 h at this rate.",
            TopicPartition("orders", 1),
        )
    ]


def test_the_owner_is_named() -> None:
    owner = PartitionOwner("billing-1", "/10.0.0.7")
    ((_, one, _),) = found(lag(), owner=owner)
    assert one == "The group falls behind by 9.9 records/s in orders-0 since 17:12 UTC; billing-1 on 10.0.0.7 owns it."
    ((_, two, _),) = found(lag(2), lag(30), owner=owner)
    assert two.endswith(" on 2 partitions; billing-1 on 10.0.0.7 owns orders-1, which falls behind most.")
    ((_, deleted, _),) = found(lag(30, 80 * HOUR), lag(2, 2 * HOUR), owner=owner)
    assert "; billing-1 on 10.0.0.7 owns orders-1, whose data is deleted first; " in deleted


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0 s"), (59.9, "59 s"), (60, "1 min"), (3_661, "1 h 1 min"), (86_400 * 5 + 59, "5 d")]
)
def test_durations_have_two_units(seconds: float, text: str) -> None:
    assert duration(seconds) == text
