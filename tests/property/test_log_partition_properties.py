"""The count of log partitions that holds, and which partition speaks for a key."""

from hypothesis import given
from hypothesis import strategies as st

from coordinator_core.log.partition_count import KeyPlace, count_in_force, misplaced, speaking_partition
from coordinator_core.log.partitioner import partition_for

KEYS = st.sets(st.text(max_size=12), min_size=1, max_size=12)
#: The count before a growth, and the one after it.
GROWTHS = st.tuples(st.integers(1, 60), st.integers(1, 60)).map(lambda counts: (counts[0], counts[0] + counts[1]))


def places(keys: set[str], count: int) -> set[KeyPlace]:
    return {KeyPlace(key, partition_for(key, count)) for key in keys}


@given(keys=KEYS, count=st.integers(1, 100))
def test_records_of_one_count_are_never_misplaced(keys: set[str], count: int) -> None:
    """Known or not, the stated count or none holds: no state is ignored in a topic that never grew."""
    assert count_in_force(None, count, places(keys, count)) in (count, None)
    assert count_in_force(count, count, places(keys, count)) == count
    assert misplaced(places(keys, count), count) == set()


@given(keys=KEYS, growth=GROWTHS)
def test_the_old_count_holds_until_a_record_shows_the_new_one(keys: set[str], growth: tuple[int, int]) -> None:
    old, new = growth
    assert count_in_force(old, new, places(keys, old)) == old
    # without a memory of the old count, the new one does not hold either: the records are those of a smaller one
    assert count_in_force(None, new, places(keys, old)) is None


@given(keys=KEYS, written=KEYS, growth=GROWTHS)
def test_one_record_in_a_new_place_shows_the_new_count(keys: set[str], written: set[str], growth: tuple[int, int]) -> None:
    old, new = growth
    shows = any(partition_for(key, old) != partition_for(key, new) for key in written)
    assert count_in_force(old, new, places(keys, old) | places(written, new)) == (new if shows else old)


@given(keys=KEYS, growth=GROWTHS)
def test_a_key_in_two_partitions_rules_out_every_smaller_count(keys: set[str], growth: tuple[int, int]) -> None:
    old, new = growth
    both = places(keys, old) | places(keys, new)
    moved = len(both) > len(keys)
    found = count_in_force(None, new, both)
    assert found == new if moved else found in (new, None)
    if found is not None:
        assert misplaced(both, found) == both - places(keys, new)


@given(keys=KEYS, before=st.none() | st.integers(1, 100))
def test_a_source_that_does_not_know_the_count_changes_nothing(keys: set[str], before: int | None) -> None:
    assert count_in_force(before, None, places(keys, 7)) == before


@given(st.dictionaries(st.integers(0, 99), st.integers(-1, 5), min_size=1))
def test_without_a_count_the_newest_value_counts(written: dict[int, int]) -> None:
    found = speaking_partition(written)
    assert written[found] == max(written.values())
    assert all(partition <= found for partition, at_ms in written.items() if at_ms == written[found])


def test_the_ends_of_the_hash() -> None:
    """`Utils.abs(Integer.MIN_VALUE)` is 0; code units outside of the BMP and lone surrogates count as Java counts them."""
    lowest = "polygenelubricants"
    assert partition_for(lowest, 50) == 0
    for key in (lowest, "", "\U0001f600", "\ud800"):
        for count in (1, 7, 50):
            assert count_in_force(count, count, places({key}, count)) == count
            assert misplaced(places({key}, count), count) == set()
