"""Columnar codec = scalar codec, for any bytes."""

import numpy as np
from codec_agreement import Pair, columnar, scalar
from hypothesis import given
from hypothesis import strategies as st
from record_strategies import records
from redpanda_records import wrapped

from coordinator_core.codec import encode
from coordinator_core.codec.columnar import KeyDictionary, decode_offset_commits


def assert_equal(chunks: list[list[Pair]], junk: bytes = b"") -> None:
    keys = KeyDictionary()
    for pairs in chunks:
        assert columnar(pairs, keys, junk) == [scalar(pair) for pair in pairs]


commits = st.one_of(records(0), records(1)).map(encode)


@st.composite
def mutated(draw: st.DrawFn) -> Pair:
    """A genuine commit with bytes of key or value changed, cut off, inserted or appended; some keys are wrapped."""
    parts = [bytearray(part or b"") for part in draw(commits)]
    for _ in range(draw(st.integers(0, 3))):
        part = parts[draw(st.integers(0, 1))]
        at = draw(st.integers(0, len(part)))
        match draw(st.sampled_from(("change", "cut", "insert", "append"))):
            case "change":
                part[at : at + 1] = draw(st.binary(min_size=1, max_size=1))
            case "cut":
                del part[at:]
            case "insert":
                part[at:at] = draw(st.binary(min_size=1, max_size=6))
            case "append":
                part += draw(st.binary(max_size=6))
    key, value = map(bytes, parts)
    return draw(st.sampled_from([(key, value), (key, value), (key, None), (None, value), (wrapped(key), None)]))


#: v4 values up to their tags, and tag sections of all kinds: unknown, repeated, too long, with wrong sizes.
tag_sections = st.one_of(
    st.binary(max_size=24),
    st.lists(st.tuples(st.sampled_from([0, 0, 1, 5, 127, 128]), st.integers(-2, 2), st.binary(min_size=14, max_size=18))).map(
        lambda tags: bytes([len(tags)]) + b"".join(bytes([tag & 0x7F, max(len(data) + off, 0)]) + data for tag, off, data in tags)
    ),
    st.tuples(st.sampled_from([b"\x80\x80\x80\x80\x08", b"\xff\xff\xff\xff\x0f", b"\x80\x00", b"\x80\x80\x80\x80\x80\x00"])).map(
        b"".join
    ),
)
keys = st.just(b"\x00\x01\x00\x01g\x00\x01t\x00\x00\x00\x07")
flexible_values = st.tuples(
    st.just(b"\x00\x04" + bytes(12)), st.sampled_from([b"\x01", b"\x02m"]), st.just(bytes(8)), tag_sections
)


@given(st.lists(st.lists(mutated(), max_size=6), max_size=3), st.binary(max_size=4))
def test_equals_the_scalar_codec_on_mutated_commits(chunks: list[list[Pair]], junk: bytes) -> None:
    assert_equal(chunks, junk)


@given(st.lists(commits, max_size=8), st.lists(commits, max_size=8))
def test_equals_the_scalar_codec_on_genuine_commits(first: list[Pair], second: list[Pair]) -> None:
    assert_equal([first, second, first])


@given(st.lists(records().map(encode), max_size=8))
def test_leaves_other_records_alone(pairs: list[Pair]) -> None:
    assert_equal([pairs])


@given(st.lists(st.tuples(keys, flexible_values.map(b"".join)), max_size=8))
def test_equals_the_scalar_codec_on_any_tagged_fields(pairs: list[Pair]) -> None:
    assert_equal([pairs])


@given(st.lists(st.binary(max_size=12), max_size=12))
def test_equals_the_scalar_codec_on_any_text(texts: list[bytes]) -> None:
    values = [b"\x00\x02" + bytes(8) + len(text).to_bytes(2, "big") + text + bytes(8) for text in texts]
    keys = [b"\x00\x01" + len(text).to_bytes(2, "big") + text + b"\x00\x01t" + bytes(4) for text in texts]
    assert_equal([list(zip(keys, values, strict=True)), [(b"\x00\x01\x00\x01g\x00\x01t" + bytes(4), value) for value in values]])


@given(st.lists(st.tuples(st.none() | st.binary(max_size=40), st.none() | st.binary(max_size=40)), max_size=12))
def test_equals_the_scalar_codec_on_any_bytes(pairs: list[Pair]) -> None:
    typed = [(b"\x00\x01" + key if key else key, b"\x00" + value if value else value) for key, value in pairs]
    assert_equal([pairs, typed])


@given(
    st.binary(max_size=60),
    st.lists(
        st.tuples(*(st.integers(-(2**40), 2**40) | st.integers(-20, 80) for _ in range(2)), st.integers(-1, 2**31 - 1)),
        max_size=6,
    ),
)
def test_reads_no_slice_outside_of_the_buffer(buffer: bytes, slices: list[tuple[int, int, int]]) -> None:
    starts = np.array([key for key, _, _ in slices], np.int64)
    values = np.array([value for _, value, _ in slices], np.int64)
    lengths = np.array([length for _, _, length in slices], np.int32)
    columns = decode_offset_commits(np.frombuffer(buffer, np.uint8), starts, lengths, values, lengths, KeyDictionary())
    outside = (starts < 0) | (starts + lengths > len(buffer))
    assert not columns.status[outside].any()
