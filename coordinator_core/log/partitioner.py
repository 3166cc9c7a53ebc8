"""Partition of `__consumer_offsets` that holds a group, and of `__transaction_state` that holds a transactional id."""

from functools import lru_cache

#: Longest cached group id; bounds the memory of the cache.
_LONGEST_CACHED = 256


def partition_for(group_id: str, partitions: int) -> int:
    """The partition of a group id or transactional id among `partitions` (`partitionFor`; `Utils.abs(MIN_VALUE)` is 0)."""
    return _cached(group_id, partitions) if len(group_id) <= _LONGEST_CACHED else _computed(group_id, partitions)


@lru_cache(maxsize=1 << 14)
def _cached(group_id: str, partitions: int) -> int:
    return _computed(group_id, partitions)


def _computed(group_id: str, partitions: int) -> int:
    code = java_string_hash(group_id)
    return 0 if code == -(1 << 31) else abs(code) % partitions


def java_string_hash(text: str) -> int:
    """`String.hashCode` of Java: over UTF-16 code units, 32 bits, signed."""
    code = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for high, low in zip(units[::2], units[1::2], strict=True):
        code = (31 * code + (high << 8 | low)) & 0xFFFFFFFF
    return code - ((code >> 31) << 32)
