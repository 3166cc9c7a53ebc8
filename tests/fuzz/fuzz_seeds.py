"""Inputs to mutate: genuine records and batches of `tests/data`, and generated ones of every type, format and compression."""

import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import genuine
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from message_sets import write_message_set
from record_strategies import TYPES_AND_VERSIONS, messages, records, tombstones, transaction_records

from coordinator_core.codec import (
    encode,
    encode_assignment,
    encode_cooperative_user_data,
    encode_sticky_user_data,
    encode_subscription,
    encode_transaction,
)
from coordinator_core.log.compression import Compression
from coordinator_core.log.entries import ControlType
from coordinator_core.log.reader import frames
from coordinator_core.log.record_batch import BatchRecord, end_transaction_marker, write_batch

Pair = tuple[bytes | None, bytes | None]

#: A longer frame adds little, and every input is parsed twice.
LONGEST_FRAME = 4096
#: Generated records per type and value version.
_OF_EACH = 6


def drawn(strategy: st.SearchStrategy[Any], count: int) -> list[Any]:
    """Examples of a strategy, the same ones every time."""
    found: list[Any] = []

    @settings(
        max_examples=count, derandomize=True, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
    )
    @given(strategy)
    def collect(example: Any) -> None:
        found.append(example)

    collect()
    return found


@cache
def record_pairs() -> tuple[Pair, ...]:
    """Keys and values: genuine ones, and generated ones of every type and version."""
    found = {(record.key, record.value) for version in genuine.VERSIONS for record in genuine.records(version)}
    made = [record for chosen in TYPES_AND_VERSIONS for record in drawn(records(*chosen), _OF_EACH)] + drawn(tombstones(), 60)
    return tuple(sorted(found | set(map(encode, made)), key=str))


@cache
def offset_commit_pairs() -> tuple[Pair, ...]:
    """Keys and values of types 0 and 1, which the compiled codec reads."""
    return tuple(pair for pair in record_pairs() if pair[0] is not None and pair[0][:2] in (b"\x00\x00", b"\x00\x01"))


@cache
def transaction_pairs() -> tuple[Pair, ...]:
    """Keys and values of `__transaction_state`."""
    return tuple(map(encode_transaction, drawn(transaction_records(), 80)))


@cache
def protocol_messages() -> tuple[bytes, ...]:
    """Subscriptions, assignments and user data of assignors, of every version."""
    made: list[bytes] = []
    for version in range(4):
        made += [encode_subscription(each, version) for each in drawn(messages("ConsumerProtocolSubscription", version), 30)]
        made += [encode_assignment(each, version) for each in drawn(messages("ConsumerProtocolAssignment", version), 30)]
    for version in range(2):
        made += [encode_sticky_user_data(each, version) for each in drawn(messages("StickyUserData", version), 20)]
    made += [encode_cooperative_user_data(each) for each in drawn(messages("CooperativeStickyUserData", 0), 5)]
    return tuple(dict.fromkeys(made))


@cache
def log_frames() -> tuple[bytes, ...]:
    """Batches and messages: genuine ones, and generated ones of every format and compression."""
    return tuple(dict.fromkeys((*_genuine_frames(), *_made_frames())))


def _genuine_frames() -> list[bytes]:
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for version in genuine.SEGMENT_VERSIONS:
            for path in sorted(genuine.segments_dir(version, Path(folder)).glob("__consumer_offsets-*/*.log")):
                data = path.read_bytes()
                found += [data[frame.position : frame.end] for frame in frames(memoryview(data))]
    return [frame for frame in found if len(frame) <= LONGEST_FRAME]


def _made_frames() -> list[bytes]:
    pairs = record_pairs()
    made: list[bytes] = []
    writers: list[Callable[[list[BatchRecord]], bytes]] = [
        *(lambda each, codec=codec: write_batch(each, compression=codec) for codec in Compression),
        lambda each: write_batch(each, producer_id=4, producer_epoch=0, transactional=True, log_append_time=5),
        *(
            lambda each, magic=magic, codec=codec: write_message_set(each, magic=magic, compression=codec)
            for magic in (0, 1)
            for codec in (Compression.NONE, Compression.GZIP, Compression.SNAPPY, Compression.LZ4)
        ),
    ]
    for number, write in enumerate(writers):
        for size in (1, 2, 5):
            chosen = [pairs[(31 * number + 7 * size + i) % len(pairs)] for i in range(size)]
            made.append(write([BatchRecord(100 + 2 * i, 1_700_000_000_000 + i, *pair) for i, pair in enumerate(chosen)]))
    for kind in ControlType:
        made.append(end_transaction_marker(7, kind, producer_id=4, producer_epoch=0, timestamp=5))
    made.append(write_batch([], base_offset=3, last_offset=9, producer_id=4, producer_epoch=0))
    # records without content: the most rows per byte, and the most bytes per compressed byte
    dense = [BatchRecord(i, 0, b"", b"") for i in range(500)]
    made += [write_batch(dense, compression=codec) for codec in Compression]
    made += [write_batch([BatchRecord(0, 0, b"", bytes(1 << 20))], compression=Compression.ZSTD)]
    return [frame for frame in made if len(frame) <= LONGEST_FRAME]
