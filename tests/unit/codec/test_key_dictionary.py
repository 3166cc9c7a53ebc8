from collections.abc import Sequence

import numpy as np
import pytest

from coordinator_core.codec import Record, encode
from coordinator_core.codec.columnar_kernels import hash_keys
from coordinator_core.codec.key_dictionary import KeyDictionary
from coordinator_core.codec.messages.offsets import OffsetCommitKey


def key(group: str, partition: int = 0, record_type: int = 1) -> bytes:
    return encode(Record(record_type, OffsetCommitKey(group, "orders", partition), None, None))[0]


def index(dictionary: KeyDictionary, keys: Sequence[bytes | None]) -> list[int]:
    lengths = np.array([-1 if k is None else len(k) for k in keys], np.int32)
    starts = np.cumsum([0, *(max(length, 0) for length in lengths.tolist())], dtype=np.int64)[:-1]
    buffer = np.frombuffer(b"".join(k or b"" for k in keys), np.uint8)
    numbers: list[int] = dictionary.index(buffer, starts, lengths).tolist()
    return numbers


def test_numbers_keys_in_order_of_appearance() -> None:
    dictionary = KeyDictionary()
    assert index(dictionary, [key("a"), key("b"), key("a"), key("b", 1)]) == [0, 1, 0, 2]
    groups, topics, partitions = dictionary.names()
    assert (groups.to_pylist(), topics.to_pylist(), partitions.tolist()) == (["a", "b", "b"], ["orders"] * 3, [0, 0, 1])


def test_types_0_and_1_and_bytes_after_the_key_make_no_difference() -> None:
    assert index(KeyDictionary(), [key("a"), key("a", record_type=0), key("a") + b"junk"]) == [0, 0, 0]


@pytest.mark.parametrize(
    "odd",
    [None, b"", b"\0", b"\0\1", key("a")[:-1], b"\0\2" + key("a")[2:], b"\0\1\xff\xff" + bytes(20), b"\0\1\x7f\xff" + bytes(20)],
)
def test_numbers_nothing_else(odd: bytes | None) -> None:
    dictionary = KeyDictionary()
    assert index(dictionary, [odd, key("a")]) == [-1, 0]
    assert len(dictionary) == 1


def test_names_that_are_no_utf8_are_no_keys() -> None:
    assert index(KeyDictionary(), [b"\0\1\0\1\xff\0\1t" + bytes(4)] * 2) == [-1, -1]


def test_numbers_are_kept_while_the_dictionary_grows() -> None:
    dictionary = KeyDictionary()
    keys = [key(f"group-{i}" * (1 + i % 40), i) for i in range(20_000)]
    numbers = [n for low in range(0, len(keys), 777) for n in index(dictionary, keys[low : low + 777])]
    assert numbers == list(range(20_000))
    assert index(dictionary, keys[::-1]) == numbers[::-1]
    assert len(dictionary) == 20_000
    groups, _, partitions = dictionary.names(np.array([19_999, 41]))
    assert (groups.to_pylist(), partitions.tolist()) == (["group-19999" * 40, "group-41" * 2], [19_999, 41])


def test_hashes_use_all_their_bits() -> None:
    """With clustered hashes, lookups would be correct and slow."""
    keys = [key("g", i) for i in range(4096)]
    lengths = np.array([len(k) for k in keys], np.int32)
    hashes = np.empty(len(keys), np.uint64)
    starts = np.cumsum(lengths, dtype=np.int64) - lengths
    hash_keys(np.frombuffer(b"".join(keys), np.uint8), starts, lengths, np.empty(len(keys), np.int32), hashes)
    for shift in (0, 20, 52):
        bits = (hashes >> np.uint64(shift)) & np.uint64(0xFFF)
        assert len(np.unique(bits)) == pytest.approx(4096 * (1 - np.exp(-1)), rel=0.05)
