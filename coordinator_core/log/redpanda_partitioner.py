"""Partition of `__consumer_offsets` that holds a group on Redpanda's brokers, which hash the group id in their own way.

`coordinator_ntp_mapper::ntp_for` (`src/v/kafka/server/coordinator_ntp_mapper.h`): XXH64 of the bytes of the id with seed 0
(`src/v/hashing/xx.h`), then the jump consistent hash of Lamping and Veach (`src/v/hashing/jump_consistent_hash.h`).
"""

from functools import lru_cache
from struct import iter_unpack, unpack_from

_MASK = 0xFFFFFFFFFFFFFFFF
_P1, _P2, _P3, _P4, _P5 = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)
_STRIPE = 32
_JUMP_MULTIPLIER = 2862933555777941757
_TWO_31 = float(1 << 31)

#: Longest cached group id; bounds the memory of the cache.
_LONGEST_CACHED = 256


def redpanda_partition_for(group_id: str, partitions: int) -> int:
    """The partition of a group id among `partitions`."""
    digest = _cached_digest(group_id) if len(group_id) <= _LONGEST_CACHED else _digest(group_id)
    return jump_consistent_hash(digest, partitions)


@lru_cache(maxsize=1 << 14)
def _cached_digest(group_id: str) -> int:
    return _digest(group_id)


def _digest(group_id: str) -> int:
    return xxh64(group_id.encode("utf-8", "surrogatepass"))


def jump_consistent_hash(key: int, buckets: int) -> int:
    """The bucket of a key of 64 bits among `buckets`."""
    bucket, following = -1, 0
    while following < buckets:
        bucket = following
        key = (key * _JUMP_MULTIPLIER + 1) & _MASK
        following = int((bucket + 1) * (_TWO_31 / float((key >> 33) + 1)))
    return bucket


def xxh64(data: bytes) -> int:
    """XXH64 of some bytes, with seed 0."""
    stripes = len(data) // _STRIPE * _STRIPE
    result = _of_stripes(data[:stripes]) if stripes else _P5
    result = (result + len(data)) & _MASK
    words = stripes + (len(data) - stripes) // 8 * 8
    for (word,) in iter_unpack("<Q", data[stripes:words]):
        result = (_rotated(result ^ _round(0, word), 27) * _P1 + _P4) & _MASK
    if len(data) - words >= 4:
        (half,) = unpack_from("<I", data, words)
        result = (_rotated(result ^ (half * _P1 & _MASK), 23) * _P2 + _P3) & _MASK
        words += 4
    for byte in data[words:]:
        result = _rotated(result ^ (byte * _P5 & _MASK), 11) * _P1 & _MASK
    result = (result ^ result >> 33) * _P2 & _MASK
    result = (result ^ result >> 29) * _P3 & _MASK
    return result ^ result >> 32


def _of_stripes(data: bytes) -> int:
    lanes = [(_P1 + _P2) & _MASK, _P2, 0, -_P1 & _MASK]
    for words in iter_unpack("<4Q", data):
        lanes = [_round(lane, word) for lane, word in zip(lanes, words, strict=True)]
    result = sum(_rotated(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True)) & _MASK
    for lane in lanes:
        result = ((result ^ _round(0, lane)) * _P1 + _P4) & _MASK
    return result


def _round(lane: int, word: int) -> int:
    return _rotated((lane + word * _P2) & _MASK, 31) * _P1 & _MASK


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> 64 - bits) & _MASK
