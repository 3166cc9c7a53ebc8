"""CPU time of the coordinator per frequent request, from frame to frame in one process: no sockets, no fsync.

It changes little when other programs run, so it compares two versions of the code on a busy machine.
"""

import asyncio
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any
from unittest.mock import patch
from uuid import UUID

from benchmarks.arguments import parser
from benchmarks.report import print_machine, print_table
from coordinator_core.codec.messages.offsets import ZERO_UUID
from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.log.record_batch import BatchRecord, write_batch
from coordinator_core.protocol import apis
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.offsets import OffsetCommitRequest, OffsetToCommit
from coordinator_core.service.net.addresses import ListenAddress
from coordinator_core.service.net.listener import Listener
from coordinator_core.service.net.request_dispatcher import RequestDispatcher
from coordinator_core.service.node import process
from coordinator_core.wire import Buffers, Peer, write_request
from coordinator_core.wire.header_codec import response_body
from coordinator_core.wire.library import (
    FetchRequest,
    FetchResponse,
    OffsetCommitResponse,
    ProduceRequest,
    ProduceResponse,
    message_codec,
)
from pipelines.job.coordinator_process import coordinator_options, run_coordinator
from pipelines.runtime.cache.kernels import compile_kernels
from pipelines.runtime.configuration import load_configuration

_CLIENTS = 50
_GROUPS = 5
_SHARE = 4
_RECORDS_PER_BATCH = 15
_VALUE = os.urandom(1024)
_PARTITIONS = 10
_LOADED_SECONDS = 60.0
_LOADING = {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
_CONFIGURATION = """[coordinator]
admin_listen = ""
fsync = "never"
log_level = "error"
[coordinator.topics]
assigned = 40
records = { partitions = 10, data = true }
"""
_PRODUCE, _FETCH = 12, 16
#: A request of every client, for round after round.
_Rounds = Iterator[list[bytes]]
#: The errors of the partitions in a response.
_Errors = Callable[[bytes], Iterable[int]]


def main(arguments: list[str] | None = None) -> None:
    parsing = parser(__doc__, records="2k", keys="0", rounds=5)
    options = parsing.parse_args(arguments)
    print_machine()
    compile_kernels()
    rows: list[list[str]] = []
    with tempfile.TemporaryDirectory(prefix="grouplake-benchmark-") as scratch:
        configuration = Path(scratch, "coordinator.toml")
        configuration.write_text(_CONFIGURATION)
        section = load_configuration(str(configuration)).coordinator
        kept: list[RequestDispatcher] = []

        class KeepingListener(Listener):
            async def serve(self, dispatcher: RequestDispatcher) -> None:
                kept.append(dispatcher)

        async def until(_address: ListenAddress, _admin: ListenAddress | None) -> str:
            rows.extend(await _measure_all(kept[0], options.records[0] // _CLIENTS, options.rounds))
            return "the benchmark has ended"

        with patch.object(process, "Listener", KeepingListener):
            run_coordinator(coordinator_options("127.0.0.1:0", str(Path(scratch, "log")), section), until)
    print_table(["request", "CPU, µs per request"], rows)


async def _measure_all(dispatcher: RequestDispatcher, per_round: int, rounds: int) -> list[list[str]]:
    peer = dispatcher.peer("/127.0.0.1")
    topic_ids = {name: topic_id for topic_id, name in peer.topic_names.items()}
    parts: list[tuple[str, _Errors, _Rounds]] = [
        (f"OffsetCommit v9, {_SHARE} partitions", _commit_errors(9), _commits(9)),
        (f"OffsetCommit v10, {_SHARE} partitions", _commit_errors(10), _commits(10, topic_ids["assigned"])),
        (f"Produce v{_PRODUCE}, {_RECORDS_PER_BATCH} records of 1 KiB", _produce_errors, _produced()),
        (f"Fetch v{_FETCH}, 16 KiB", _fetch_errors, _fetches(topic_ids["records"])),
    ]
    rows = []
    for name, errors_of, frames in parts:

        def errors(answers: Sequence[bytes], errors_of: _Errors = errors_of) -> set[int]:
            return {error for answer in answers for error in errors_of(answer)} - {ErrorCode.NONE}

        give_up = time.monotonic() + _LOADED_SECONDS
        while (found := errors((await _run(dispatcher, peer, list(islice(frames, 1))))[1])) == _LOADING:
            assert time.monotonic() < give_up, "the log is not loaded"
            await asyncio.sleep(0.1)
        assert not found, found
        measured = [await _run(dispatcher, peer, list(islice(frames, per_round))) for _ in range(rounds)]
        assert not any(errors(answers) for _, answers in measured)
        rows.append([name, f"{min(seconds for seconds, _ in measured) * 1e6:.0f}"])
    return rows


async def _run(dispatcher: RequestDispatcher, peer: Peer, rounds: Sequence[list[bytes]]) -> tuple[float, list[bytes]]:
    """Return the CPU seconds per request, and the answers of the last round.

    All clients send, and the next round begins when all are answered.
    """
    answers: list[bytes] = []

    def reply(answer: Buffers | None, problem: str | None) -> None:
        assert answer is not None, problem
        answers.append(b"".join(answer))

    started = time.process_time()
    for frames in rounds:
        answers.clear()
        for frame in frames:
            dispatcher.handle(frame, peer, reply)
        while len(answers) < len(frames):
            await asyncio.sleep(0)
    return (time.process_time() - started) / sum(map(len, rounds)), answers


def _body(kind: Any, version: int, frame: bytes) -> Any:
    return message_codec(kind, version).decode(frame, response_body(frame, True))


def _commit_errors(version: int) -> _Errors:
    def errors(frame: bytes) -> Iterable[int]:
        topics = _body(OffsetCommitResponse, version, frame).topics
        return (each.error_code for topic in topics for each in topic.partitions)

    return errors


def _produce_errors(frame: bytes) -> Iterable[int]:
    return (each.error_code for topic in _body(ProduceResponse, _PRODUCE, frame).responses for each in topic.partition_responses)


def _fetch_errors(frame: bytes) -> Iterable[int]:
    return (each.error_code for topic in _body(FetchResponse, _FETCH, frame).responses for each in topic.partitions)


def _rounds(frame_of: Callable[[int, int], bytes]) -> _Rounds:
    number = 0
    while True:
        yield [frame_of(client, number) for client in range(_CLIENTS)]
        number += 1


def _commits(version: int, topic_id: UUID = ZERO_UUID) -> _Rounds:
    def frame(client: int, number: int) -> bytes:
        first = client // _GROUPS * _SHARE
        offsets = {TopicPartition("assigned", first + at): OffsetToCommit(number, -1, "", topic_id) for at in range(_SHARE)}
        request = OffsetCommitRequest(f"group-{client % _GROUPS}", offsets, knows_missing_groups=True)
        return write_request(apis.OFFSET_COMMIT, version, (request,), number, "client")

    return _rounds(frame)


def _produced() -> _Rounds:
    """Batches of idempotent producers, whose sequence numbers go on from round to round."""
    now_ms = int(time.time() * 1000)
    records = [BatchRecord(offset, now_ms, None, _VALUE) for offset in range(_RECORDS_PER_BATCH)]

    def frame(client: int, number: int) -> bytes:
        sequence = number * _RECORDS_PER_BATCH
        batch = write_batch(records, producer_id=1_000_000 + client, producer_epoch=0, base_sequence=sequence)
        partition = ProduceRequest.TopicProduceData.PartitionProduceData(index=client % _PARTITIONS, records=batch)
        topic = ProduceRequest.TopicProduceData(name="records", partition_data=[partition])
        request = ProduceRequest(acks=-1, timeout_ms=1_000, topic_data=[topic])
        return message_codec(ProduceRequest, _PRODUCE).encode_request(request, number, "client")

    return _rounds(frame)


def _fetches(topic_id: UUID) -> _Rounds:
    def frame(client: int, number: int) -> bytes:
        offset = number % 2 * _RECORDS_PER_BATCH
        kind = FetchRequest.FetchTopic
        partition = kind.FetchPartition(partition=client % _PARTITIONS, fetch_offset=offset, partition_max_bytes=16 * 1024)
        topic = kind(topic_id=topic_id, partitions=[partition])
        request = FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=1 << 26, session_epoch=-1, topics=[topic])
        return message_codec(FetchRequest, _FETCH).encode_request(request, number, "client")

    return _rounds(frame)


if __name__ == "__main__":
    main()
