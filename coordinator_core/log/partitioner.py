"""Which partition of `__consumer_offsets` holds a group."""


def partition_for(group_id: str, partitions: int) -> int:
    """The partition of `group_id` among `partitions` (`GroupMetadataManager.partitionFor`; `Utils.abs(MIN_VALUE)` is 0)."""
    code = java_string_hash(group_id)
    return 0 if code == -(1 << 31) else abs(code) % partitions


def java_string_hash(text: str) -> int:
    """`String.hashCode` of Java: over UTF-16 code units, 32 bits, signed."""
    code = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for high, low in zip(units[::2], units[1::2], strict=True):
        code = (31 * code + (high << 8 | low)) & 0xFFFFFFFF
    return code - ((code >> 31) << 32)
