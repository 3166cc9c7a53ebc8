"""Polls of all groups of a broker, beside requests about one group each.

`python -m benchmarks.bench_group_polls [--shapes 65k:1,10k:50]`. A shape is a number of groups without members, and of the
partitions in which each of them has an offset. `grouplake run --source kafka-groups://` polls once, into new tables and again
without a difference; "answers" is its phase `read`, "command" all of it, with the sample of log ends. The admin client of
librdkafka asks for the offsets of one group in each request, with at most 500 of them in flight, and prints nothing.
"""

import argparse
import itertools
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
from confluent_kafka import ConsumerGroupTopicPartitions
from confluent_kafka.admin import AdminClient
from deltalake import DeltaTable

from benchmarks.arguments import count, short
from benchmarks.brokers import JVM, STILL_LOG
from benchmarks.report import print_machine, print_table
from benchmarks.runs import grouplake_run
from coordinator_core.group_polls.bounded_requests import send_pieces
from coordinator_core.sources.kafka_connection import RequestFor, borrowed_connection, close_idle_connections
from coordinator_core.wire import library
from pipelines.examples.private.kafka.broker import PrivateBroker
from pipelines.examples.private.kafka.clients import Clients

VERSION = "4.3.0"
_TOPIC = "orders"
#: OffsetCommit 10 has topic ids instead of names.
_BY_NAME = 9
_IN_FLIGHT = 500
_LIMIT_SECONDS = 600


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--shapes", default="65k:1,10k:50", help="groups:partitions of each case (default 65k:1,10k:50)")
    options = parser.parse_args(arguments)
    print_machine("confluent-kafka")
    shapes = [tuple(count(part) for part in shape.split(":")) for shape in options.shapes.split(",")]
    head = ("groups", "offsets of each", "program", "poll", "answers, s", "command, s", "peak memory, MiB")
    print_table(head, itertools.chain.from_iterable(case(groups, partitions) for groups, partitions in shapes))


def case(groups: int, partitions: int) -> Iterator[Sequence[object]]:
    """The rows of one shape."""
    with (
        PrivateBroker(VERSION, offsets_partitions=50, properties=STILL_LOG, jvm_arguments=JVM) as broker,
        tempfile.TemporaryDirectory() as scratch,
    ):
        tables = Path(scratch) / "tables"
        _make_groups(broker.bootstrap, groups, partitions)
        before = 0
        for poll in ("first", "without differences"):
            run = grouplake_run(f"kafka-groups://{broker.bootstrap}", tables, sample_memory=True)
            lags = DeltaTable(tables / "lag").to_pyarrow_table(columns=["lag"])["lag"]
            read = pc.sum(pc.equal(lags, 0)).as_py()
            assert read == groups * partitions, (
                f"{read} of {len(lags)} offsets are at the log end, {groups * partitions} should be"
            )
            answers = dict(run.batches[before]["phase_ms"])["read"] / 1000
            before = len(run.batches)
            peak = max(each.mib for each in run.peaks.values())
            yield short(groups), partitions, "grouplake run", poll, f"{answers:.1f}", f"{run.seconds:.1f}", f"{peak:.0f}"
        yield short(groups), partitions, "librdkafka", "each", f"{_one_by_one(broker.bootstrap, groups, partitions):.1f}", "", ""


def _make_groups(bootstrap: str, groups: int, partitions: int) -> None:
    with Clients(bootstrap) as clients:
        clients.create_topics([_TOPIC], partitions)
        # all groups have read their partitions to the end: one record each
        clients.produce(_TOPIC, partitions, partitions)
        # the broker creates the topic of offsets for its first commit
        first = clients.consumer("first")
        clients.commit(first, [(_TOPIC, 0, 1)])
        clients.leave(first)
        clients.admin.delete_consumer_groups(["first"])["first"].result(_LIMIT_SECONDS)
    names = [[f"group-{number}"] for number in range(groups)]
    with borrowed_connection([bootstrap], {}) as connection:
        (broker,) = connection.metadata(None).brokers
        send_pieces(connection, {broker.node_id: names}, lambda some: _commit(some[0], partitions), _expect_committed, {})
    close_idle_connections()


def _commit(group: str, partitions: int) -> RequestFor:
    of_topic = library.OffsetCommitRequest.OffsetCommitRequestTopic
    offsets = [
        of_topic.OffsetCommitRequestPartition(
            partition_index=number, committed_offset=1, committed_leader_epoch=-1, committed_metadata=""
        )
        for number in range(partitions)
    ]
    topics = [of_topic(name=_TOPIC, partitions=offsets)]
    return lambda _versions: library.OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=-1,
        member_id="",
        group_instance_id=None,
        topics=topics,
        max_version=_BY_NAME,
    )


def _expect_committed(_node: int, answer: Any, groups: Sequence[str]) -> None:
    if isinstance(answer, Exception):
        raise answer
    failed = [part.error_code for topic in answer.topics for part in topic.partitions if part.error_code]
    assert not failed, f"the commit of {groups[0]} failed with the errors {failed}"


def _one_by_one(bootstrap: str, groups: int, partitions: int) -> float:
    """Seconds until librdkafka's admin client has the offsets of all groups."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    started = time.monotonic()
    names = [group.group_id for group in admin.list_consumer_groups().result(_LIMIT_SECONDS).valid]
    assert len(names) == groups, f"{len(names)} of {groups} groups are listed"
    waiting: deque[Any] = deque()
    found = 0
    for name in [*names, *[None] * _IN_FLIGHT]:
        if len(waiting) == _IN_FLIGHT or name is None:
            found += len(waiting.popleft().result(_LIMIT_SECONDS).topic_partitions) if waiting else 0
        if name is not None:
            waiting.append(admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(name)])[name])
    assert found == groups * partitions, f"{found} of {groups * partitions} offsets are answered"
    return time.monotonic() - started


if __name__ == "__main__":
    main(sys.argv[1:])
