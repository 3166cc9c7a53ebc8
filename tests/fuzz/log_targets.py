"""Logs: batches and messages through both readers, compression, segment files, JSON lines."""

import base64
import json
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import NamedTuple

from fuzz_mutations import mutated, mutated_frame
from fuzz_seeds import log_frames, record_pairs
from fuzz_target import Target
from log_agreement import check

from coordinator_core.log.columns import to_log_records
from coordinator_core.log.compression import COMPRESSIONS, BadPayload, compress, decompress
from coordinator_core.log.entries import LogRecord
from coordinator_core.log.errors import LogError
from coordinator_core.sources.jsonl import JsonlSource
from coordinator_core.sources.segments import SegmentSource

#: Limit for one decompressed payload.
_ROOM = 1 << 16


class Log(NamedTuple):
    """Bytes of a log, and the range to read from it."""

    data: bytes
    start: int
    end: int | None


def _make_bytes(rng: Random) -> bytes:
    """One to four frames, at least one of them mutated, now and then across their borders."""
    known = log_frames()
    chosen = [known[int(rng.random() * len(known))] for _ in range(1 + int(3 * rng.random() ** 3))]
    at = int(rng.random() * len(chosen))
    chosen[at] = mutated_frame(rng, chosen[at], known)
    data = b"".join(chosen)
    return mutated(rng, data, known) if rng.random() < 0.05 else data


def _make_log(rng: Random) -> Log:
    data = _make_bytes(rng)
    if rng.random() < 0.8:
        return Log(data, 0, None)
    start = int(rng.random() * 200)
    return Log(data, start, start + int(rng.random() * 50) if rng.random() < 0.7 else None)


def check_logs(logs: Sequence[Log]) -> None:
    """Columns and scalar reader agree, and every slice lies in its buffer."""
    for log in logs:
        check(*log)


class Payload(NamedTuple):
    """The compressed payload of a batch of this `magic`, claimed to be compressed with codec number `codec`."""

    codec: int
    magic: int
    data: bytes


@cache
def _payloads() -> tuple[Payload, ...]:
    plain = [part for pair in record_pairs()[::9] for part in pair if part] + [b"", bytes(50_000), bytes(200_000)]
    return tuple(
        Payload(codec, magic, compress(COMPRESSIONS[codec], data, magic=magic))
        for data in plain
        for codec in (1, 2, 3, 4)
        for magic in ((0, 1, 2) if codec == 3 else (2,))
    )


@cache
def _payload_bytes() -> tuple[bytes, ...]:
    return tuple(payload.data for payload in _payloads())


def _make_payload(rng: Random) -> Payload:
    known = _payloads()
    codec, magic, data = known[int(rng.random() * len(known))]
    return Payload(int(rng.random() * 5) if rng.random() < 0.05 else codec, magic, mutated(rng, data, _payload_bytes()))


def check_compression(payloads: Sequence[Payload]) -> None:
    """The output does not exceed the limit."""
    for codec, magic, data in payloads:
        plain = decompress(COMPRESSIONS[codec], data, magic=magic, limit=_ROOM)
        assert isinstance(plain, BadPayload) or len(plain) <= _ROOM


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """A folder of this process, deleted when the process ends."""
    return tempfile.TemporaryDirectory()


class Segments(NamedTuple):
    """Two segment files, read in pieces of `chunk_bytes`."""

    first: bytes
    second: bytes
    chunk_bytes: int


def _make_segments(rng: Random) -> Segments:
    return Segments(_make_bytes(rng), _make_bytes(rng), 1 + int(2000 * rng.random()))


def check_segments(given: Sequence[Segments]) -> None:
    """Require records in order, or an error of the log."""
    for first, second, chunk_bytes in given:
        folder = Path(_folder().name) / "__consumer_offsets-0"
        folder.mkdir(exist_ok=True)
        (folder / f"{0:020}.log").write_bytes(first)
        (folder / f"{150:020}.log").write_bytes(second)
        (folder / "partition.metadata").write_bytes(first)
        try:
            source = SegmentSource(folder.parent)
            ends, torn = source.end_offsets(), source.torn_ends()
            source.topic_ids()
            pieces = list(source.read_columns(0, 0, ends[0], chunk_bytes=chunk_bytes))
        except LogError as error:
            if not str(error):
                raise
            continue
        assert all(str(end) for end in torn)
        assert all(str(damage.reason) for columns in pieces for damage in columns.damages)
        assert all(isinstance(record, LogRecord) for columns in pieces for record in to_log_records(columns, 0))


@cache
def _lines() -> tuple[bytes, ...]:
    return tuple(
        json.dumps({"partition": 1, "offset": offset, "timestamp": 5, "key": _text(key), "value": _text(value), **more}).encode()
        for offset, (key, value) in enumerate(record_pairs()[::7])
        for more in ({}, {"producer_id": 3, "producer_epoch": 1, "is_transactional": True, "batch_offset": 2})
    )


def _text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


#: Values in place of a number or a text.
_ODD_JSON = (
    b"-1", b"1e400", b"1.5", b"true", b"null", b"{}", b"[]", b'""', b'"\\u0000"', b'"\\ud800"', b"NaN", b"9" * 30,
    b"-9223372036854775808", b"9223372036854775807", b"[" * 2000, b"9" * 5000,
)  # fmt: skip


def _make_line(rng: Random) -> bytes:
    known = _lines()
    line = known[int(rng.random() * len(known))]
    if rng.random() < 0.6:
        names = line.split(b": ")
        at = 1 + int(rng.random() * (len(names) - 1))
        names[at] = rng.choice(_ODD_JSON) + names[at][names[at].find(b",") :]
        line = b": ".join(names)
    return line if rng.random() < 0.3 else mutated(rng, line, known)


def check_jsonl(lines: Sequence[bytes]) -> None:
    """Require records that become columns, or `LogError` with the line."""
    for line in lines:
        path = Path(_folder().name) / "log.jsonl"
        path.write_bytes(_lines()[0] + b"\n" + line + b"\n")
        try:
            source = JsonlSource(path)
            ends = source.end_offsets()
            for partition in source.partitions():
                for columns in source.read_columns(partition, 0, ends[partition]):
                    list(to_log_records(columns, partition))
        except LogError as error:
            if path.name not in str(error):
                raise


TARGETS = (
    Target("logs", _make_log, check_logs, share=90, chunk=16, compiled=True),
    Target("compression", _make_payload, check_compression, share=80, chunk=64),
    Target("segments", _make_segments, check_segments, share=2, chunk=4, compiled=True),
    Target("jsonl", _make_line, check_jsonl, share=3, chunk=16),
)
