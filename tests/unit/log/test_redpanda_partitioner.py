"""The partition of a group on Redpanda, by published values of both hashes."""

import pytest

from coordinator_core.log.redpanda_partitioner import jump_consistent_hash, redpanda_partition_for, xxh64


@pytest.mark.parametrize(
    ("data", "digest"),
    [
        (b"", 0xEF46DB3751D8E999),
        (b"a", 0xD24EC4F1A98C6E5B),
        (b"abc", 0x44BC2CF5AD770999),
        (b"Nobody inspects the spammish repetition", 0xFBCEA83C8A378BF1),
    ],
)
def test_xxh64(data: bytes, digest: int) -> None:
    """Values of the documentation of xxHash and of its bindings; the last text has a stripe of 32 bytes."""
    assert xxh64(data) == digest


@pytest.mark.parametrize(
    ("key", "buckets", "bucket"),
    [(1, 1, 0), (42, 57, 43), (0xDEAD10CC, 1, 0), (0xDEAD10CC, 666, 361), (256, 1024, 520)],
)
def test_jump_consistent_hash(key: int, buckets: int, bucket: int) -> None:
    """Values of the tests of Guava's and dgryski's implementations."""
    assert jump_consistent_hash(key, buckets) == bucket


def test_a_partition() -> None:
    assert {redpanda_partition_for(f"group-{number}", 16) for number in range(200)} == set(range(16))
    assert redpanda_partition_for("x" * 1000, 3) == redpanda_partition_for("x" * 1000, 3) < 3
