"""Tables as a page finds them in its first hour, a cluster for each state of the job."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from aged_tables import aged
from lag_tables import SAMPLED_AT, group_row, lag_row, write_tables
from log_builder import member
from status_story import Story

from coordinator_core.codec import encode_assignment
from coordinator_core.codec.messages.classic import MemberMetadata
from coordinator_core.codec.messages.consumer_protocol import ConsumerProtocolAssignment, ProtocolTopicPartitions

#: Groups of the cluster `many`; of 1,000 of them the first has stopped and the second waits.
MANY = 10_000
_MINUTES = 12


def first_hour_tables(folder: Path, states: Iterable[str]) -> list[str]:
    """Write the tables of these states; returns the values of `--tables`."""
    for state in states:
        _WRITERS[state](str(folder / state))
    return [f"{state}={folder / state}" for state in states]


def _empty(root: str) -> None:
    """A batch of a log without groups."""
    aged(root, SAMPLED_AT, interval_seconds=0)


def _started(root: str, **job: Any) -> Story:
    """The first batch has read the log, and there is no sample of log ends yet."""
    story = Story(root, **job)
    story.log.group([_member(number) for number in (0, 1)], group="billing")
    for partition in range(6):
        story.end(1_000 + 40 * partition, partition).commit(1_000 + 10 * partition, partition)
    return story.at(8).batch()


def _member(number: int) -> MemberMetadata:
    """A member that owns three partitions of `orders`."""
    partitions = tuple(range(3 * number, 3 * number + 3))
    assignment = ConsumerProtocolAssignment((ProtocolTopicPartitions("orders", partitions),))
    return replace(member(f"m{number}", topics=("orders",)), assignment=encode_assignment(assignment, 0))


def _sampled(root: str) -> None:
    """A few seconds later: the first sample, without trend and with wide bounds."""
    _started(root).at(12).sample()


def _one(root: str, **job: Any) -> Story:
    """One group, some minutes later; the commits on one of its partitions are slow."""
    story = _started(root, **job)
    for minute in range(1, _MINUTES):
        story.at(60 * minute)
        for partition in range(6):
            story.end(1_000 + 500 * minute, partition).commit(1_000 + (100 if partition == 3 else 500) * minute - 7, partition)
        story.sample()
    return story


def _stopped(root: str) -> None:
    """The same, of a job that wrote a batch every 30 s and does no longer."""
    _one(root, interval_seconds=30)


def _catching_up(root: str) -> None:
    """The same, of a job that was away: it reads what was written meanwhile, and knows no lag until then."""
    story = _one(root)
    story.at(60 * 45).commit(40_000).batch()
    writer = story.writer()
    assert writer.last is not None
    prepared = story.sampling.prepare_unknown(root, writer.last)
    assert prepared is not None
    story.sampling.write(writer, prepared)
    # batches go on, still without log ends
    story.at(60 * 46).commit(40_100).batch()


def _many(root: str) -> None:
    """A cluster of many groups, as the newest sample finds them."""
    names = [f"{_TEAMS[number % len(_TEAMS)]}-{number:05}" for number in range(MANY)]
    write_tables(
        root,
        groups=[group_row(name, 3, state="Stable", protocol="range") for name in names],
        lag=[_lag_of(name, number) for number, name in enumerate(names)],
        group_status=[_status_of(name, number) for number, name in enumerate(names)],
    )


_TEAMS = ("billing", "search-index-of-the-catalogue", "mail", "connect-sink.page-views", "ledger")


def _lag_of(name: str, number: int) -> dict[str, Any]:
    lag = 68_358 if number % 1_000 < 2 else number % 90
    return lag_row(
        name, f"topic-{number % 700:03}", number % 12, 1_000_000, 1_000_000 + lag, lag_seconds=lag / 10, lag_seconds_low=lag / 20,
        lag_seconds_high=lag / 9, member_count=3,
    )  # fmt: skip


def _status_of(name: str, number: int) -> dict[str, Any]:
    status, rule = {0: ("STOP", "burrow_2"), 1: ("WARN", "burrow_5")}.get(number % 1_000, ("OK", None))
    finding = {
        "rule": rule, "status": status, "topic": f"topic-{number % 700:03}", "partition": number % 12,
        "detail": "lag 68358, 1 commits in 0 s", "since": SAMPLED_AT - timedelta(minutes=7), "amount": 68_358,
    }  # fmt: skip
    return {
        "group_id": name,
        "status": status,
        "rule": rule,
        "detail": finding["detail"] if rule else "all is well",
        "findings": [finding] if rule else [],
        "burrow_status": "ERR" if rule else "OK",
        "partitions": 1,
        "unknown_partitions": 0,
        "complete": 1.0,
        "total_lag": 68_358 if rule else number % 90,
        "evaluated_at": SAMPLED_AT,
    }


_WRITERS: dict[str, Callable[[str], object]] = {
    "empty": _empty,
    "started": _started,
    "sampled": _sampled,
    "one": _one,
    "stopped": _stopped,
    "catching_up": _catching_up,
    "many": _many,
}
#: All of them.
STATES = tuple(_WRITERS)
