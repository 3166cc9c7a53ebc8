"""A decoder that remembers what it read gives the same results as one without memory."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from log_builder import member

from coordinator_core.codec import ClassicGroupDecoder, Record, decode, encode
from coordinator_core.codec.messages.classic import GroupMetadataKey, GroupMetadataValue

_members = st.sampled_from([(), (member(),), (member("m2"), member()), (member(instance_id="i"),)])
_values = st.builds(
    GroupMetadataValue,
    st.sampled_from(["consumer", "connect"]),
    st.integers(0, 3),
    st.sampled_from([None, "range"]),
    st.sampled_from([None, "m1"]),
    st.sampled_from([-1, 5]),
    _members,
)


@st.composite
def _records(draw: st.DrawFn) -> tuple[bytes, bytes | None]:
    """A record of one of two groups, some truncated, some with trailing bytes, some with a byte changed."""
    group = GroupMetadataKey(draw(st.sampled_from(["a", "b"])))
    if draw(st.integers(0, 9)) == 0:
        return encode(Record(2, group, None, None))
    key, value = encode(Record(2, group, draw(_values), draw(st.integers(0, 4))))
    assert value is not None
    match draw(st.integers(0, 5)):
        case 0:
            return key, value[: draw(st.integers(0, len(value)))]
        case 1:
            return key, value + draw(st.binary(max_size=3))
        case 2:
            at = draw(st.integers(0, len(value) - 1))
            return key, value[:at] + draw(st.binary(min_size=1, max_size=1)) + value[at + 1 :]
    return key, value


_strangers = st.tuples(st.one_of(st.none(), st.binary(max_size=6)), st.one_of(st.none(), st.binary(max_size=6)))


@given(st.lists(st.one_of(_records(), _records(), _records(), _strangers), max_size=12))
def test_a_memory_changes_no_answer(records: Sequence[tuple[bytes | None, bytes | None]]) -> None:
    decoder = ClassicGroupDecoder()
    assert [decoder.decode(*record) for record in records] == [decode(*record) for record in records]


def test_members_that_repeat_are_the_same_objects() -> None:
    decoder = ClassicGroupDecoder()
    found = []
    for generation in range(3):
        value = GroupMetadataValue("consumer", generation, "range", "m1", 5, (member(), member("m2")))
        record = decoder.decode(*encode(Record(2, GroupMetadataKey("a"), value, 3)))
        assert isinstance(record, Record)
        assert isinstance(record.value, GroupMetadataValue)
        assert record.value == value
        found.append(record.value.members)
    assert found[0] is found[1] is found[2]
