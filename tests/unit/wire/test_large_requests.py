"""Requests above the limit of decoding: only Produce, and only by its records."""

from collections.abc import Callable

import pytest
from client_codecs import write_request
from hypothesis import given, settings
from hypothesis import strategies as st
from wire_messages import CLIENT_ID, IDS, request_parts

from coordinator_core.codec.messages.offsets import ZERO_UUID
from coordinator_core.protocol import apis
from coordinator_core.protocol.cluster import ProducePartition, ProduceRequest
from coordinator_core.wire import is_decoded_within, large_requests, may_be_large

MIB = 1024 * 1024
VERSIONS = apis.PRODUCE.versions.all
each_version = pytest.mark.parametrize("version", VERSIONS)


def produce(version: int, *sizes: int) -> bytes:
    """A request with records of these sizes in one partition each."""
    topic_id = IDS["t1"] if version >= 13 else ZERO_UUID
    partitions = tuple(ProducePartition("t1", topic_id, number, bytes(size)) for number, size in enumerate(sizes))
    return write_request(apis.PRODUCE, version, (ProduceRequest(partitions),), 1, CLIENT_ID)


@each_version
def test_records_do_not_count(version: int) -> None:
    frame = produce(version, MIB, 3 * MIB)
    rest = len(frame) - 4 * MIB
    assert is_decoded_within(frame, rest)
    assert not is_decoded_within(frame, rest - 1)


@each_version
@settings(max_examples=30, derandomize=True)
@given(data=st.data())
def test_everything_else_counts(version: int, data: st.DataObject) -> None:
    parts = data.draw(request_parts(apis.PRODUCE, version))
    frame = write_request(apis.PRODUCE, version, parts, 1, CLIENT_ID)
    records = sum(len(each.records or b"") for each in parts[0].partitions)
    assert is_decoded_within(frame, len(frame) - records)
    assert not is_decoded_within(frame, len(frame) - records - 1)


@each_version
def test_requests_that_end_early_are_left_to_the_decoder(version: int) -> None:
    frame = produce(version, 10, 20)
    assert all(is_decoded_within(frame[:end], len(frame)) for end in range(len(frame)))


def start(version: int, arrays: bytes) -> bytes:
    """A header without client id, an absent transactional id, acks, timeout, and what follows."""
    if version < 9:
        return b"\x00\x00" + version.to_bytes(2) + bytes(4) + b"\xff\xff" + b"\xff\xff" + bytes(6) + arrays
    return b"\x00\x00" + version.to_bytes(2) + bytes(4) + b"\xff\xff" + b"\x00" + b"\x00" + bytes(6) + arrays


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda size: start(3, b"\x7f\xff\xff\xff" + bytes(size)), id="topics"),
        pytest.param(lambda size: start(3, b"\x00\x00\x00\x01\x00\x00\x7f\xff\xff\xff" + bytes(size)), id="partitions"),
        pytest.param(lambda size: start(9, b"\xff\xff\xff\xff\x07" + b"\x01\x01\x00" * (size // 3)), id="compact topics"),
        pytest.param(lambda size: start(9, b"\x02\x01\x01\xff\xff\xff\xff\x07" + bytes(size)), id="tagged fields"),
        pytest.param(lambda size: start(9, b"")[:10] + b"\xff\xff\xff\xff\x07" + bytes(size), id="tagged fields of the header"),
        pytest.param(lambda size: start(9, b"")[:11] + b"\xff\xff\xff\xff\x07" + bytes(size), id="a long transactional id"),
    ],
)
def test_hostile_requests_cost_the_steps_of_the_limit_only(make: Callable[[int], bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    class CountedCursor(large_requests._Cursor):
        def take(self, count: int) -> None:
            steps.append(count)
            super().take(count)

    monkeypatch.setattr(large_requests, "_Cursor", CountedCursor)
    steps: list[int] = []
    frame, limit = make(2 * MIB), MIB // 16
    assert not is_decoded_within(frame, limit)
    # a step takes a byte, but for strings without one
    assert 0 < len(steps) <= 2 * limit


def test_other_requests() -> None:
    assert may_be_large(b"\x00\x00")
    assert not may_be_large(b"\x00\x01")
    assert is_decoded_within(produce(3, 10)[:2] + b"\x00\x63" + bytes(99), 1)
