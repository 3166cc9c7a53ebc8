"""Any group that Redpanda writes decodes to its members, and no record of Kafka is taken for one of Redpanda."""

from hypothesis import given
from hypothesis import strategies as st
from record_strategies import records, texts, tombstones
from redpanda_records import GroupMember, group_metadata_key, group_metadata_value, offset_metadata_key, wrapped

from coordinator_core.codec import Malformed, Record, decode, encode
from coordinator_core.codec.messages.classic import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from coordinator_core.codec.wrapped_keys import unwrapped_key
from coordinator_core.log.partition_count import REDPANDA, KeyPlace, count_in_force, misplaced
from coordinator_core.log.redpanda_partitioner import redpanda_partition_for

TIMEOUTS = st.integers(-(2**31), 2**31 - 1)
NAMES = st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=12)
BYTES = st.binary(max_size=300)
#: `group::generate_member_id`: the instance id, else the client id, and a UUID.
MEMBERS = st.builds(
    lambda client, uuid, instance, host, rebalance, session, subscription, assignment: GroupMember(
        f"{client if instance is None else instance}-{uuid}",
        instance,
        client,
        host,
        rebalance,
        session,
        subscription,
        assignment,
    ),
    *(NAMES, st.uuids(), st.none() | NAMES, NAMES, TIMEOUTS, TIMEOUTS, BYTES, BYTES),
)
GROUPS = st.lists(MEMBERS, max_size=5).map(tuple)


@given(texts, GROUPS, st.integers(-(2**31), 2**31 - 1), st.none() | texts, st.none() | texts, st.integers(-1, 2**63 - 1))
def test_every_group_of_redpanda_is_read(
    group: str,
    members: tuple[GroupMember, ...],
    generation: int,
    protocol: str | None,
    leader: str | None,
    timestamp: int,
) -> None:
    value = group_metadata_value(members, generation=generation, protocol=protocol, leader=leader, state_timestamp=timestamp)
    read = tuple(MemberMetadata(*member[:-1]) for member in members)
    expected = GroupMetadataValue("consumer", generation, protocol, leader, timestamp, read)
    assert decode(group_metadata_key(group), value) == Record(2, GroupMetadataKey(group), expected, 3)


@given(GROUPS.filter(bool), st.data())
def test_a_damaged_group_is_malformed_or_whole(members: tuple[GroupMember, ...], data: st.DataObject) -> None:
    value = group_metadata_value(members)
    cut = value[: data.draw(st.integers(0, len(value) - 1))]
    assert isinstance(decode(group_metadata_key("g"), cut), Malformed)


@given(records() | tombstones())
def test_no_key_and_no_value_of_kafka_is_one_of_redpanda(record: Record) -> None:
    key, value = encode(record)
    assert unwrapped_key(key) == key
    assert decode(key, value) == record


@given(texts, texts, st.integers(0, 2**31 - 1))
def test_wrapped_keys_are_those_inside(group: str, topic: str, partition: int) -> None:
    for key in (group_metadata_key(group), offset_metadata_key(group, topic, partition)):
        assert unwrapped_key(wrapped(key)) == key
        assert unwrapped_key(key) == key


@given(st.sets(st.text(max_size=12), min_size=1, max_size=12), st.integers(1, 100))
def test_groups_are_where_redpanda_puts_them(keys: set[str], count: int) -> None:
    places = {KeyPlace(key, redpanda_partition_for(key, count)) for key in keys}
    assert all(0 <= place.partition < count for place in places)
    assert count_in_force(None, count, places, REDPANDA) in (count, None)
    assert count_in_force(count, count, places, REDPANDA) == count
    assert misplaced(places, count, REDPANDA) == set()
