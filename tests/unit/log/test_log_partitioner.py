import pytest

from coordinator_core.log.partitioner import java_string_hash, partition_for


@pytest.mark.parametrize(
    ("text", "code"),
    [("", 0), ("a", 97), ("hello", 99162322), ("polygenelubricants", -(1 << 31)), ("ключ", 33309882), ("𝄞", 1772394)],
)
def test_hash_is_that_of_java(text: str, code: int) -> None:
    assert java_string_hash(text) == code


def test_group_without_positive_hash_lives_in_partition_0() -> None:
    assert partition_for("polygenelubricants", 50) == 0


def test_lone_surrogate_has_a_partition() -> None:
    assert 0 <= partition_for("\ud800", 50) < 50
