"""The codec on arbitrary bytes and on every record that its layouts can express."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from record_strategies import TYPES_AND_VERSIONS, messages, records, tombstones, transaction_records

from coordinator_core.codec import (
    Malformed,
    NoAssignment,
    Record,
    TransactionRecord,
    UnknownType,
    UnknownVersion,
    decode,
    decode_assignment,
    decode_cooperative_user_data,
    decode_sticky_user_data,
    decode_subscription,
    decode_transaction,
    encode,
    encode_assignment,
    encode_sticky_user_data,
    encode_subscription,
    encode_transaction,
    subscribed_topics,
)
from coordinator_core.codec.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription

OUTCOMES = (Record, UnknownType, UnknownVersion, Malformed)

#: Input of decoders: noise, and noise after an existing type or version.
noise = st.binary(max_size=64)
keys = noise | st.builds(lambda number, rest: number.to_bytes(2, "big") + rest, st.integers(0, 25), noise)
values = noise | st.builds(lambda version, rest: version.to_bytes(2, "big") + rest, st.integers(0, 5), noise)


@st.composite
def mutated(draw: st.DrawFn, original: bytes) -> bytes:
    """The bytes, cut, extended or with a few of them changed."""
    data = bytearray(original[: draw(st.integers(0, len(original)) | st.just(len(original)))])
    for _ in range(draw(st.integers(0, 3))):
        if data:
            data[draw(st.integers(0, len(data) - 1))] = draw(
                st.sampled_from([0x00, 0x01, 0x7F, 0x80, 0xFF]) | st.integers(0, 255)
            )
    return bytes(data) + draw(st.binary(max_size=3))


def check_position(outcome: object, key: bytes | None, value: bytes | None) -> None:
    if isinstance(outcome, Malformed):
        part = key if outcome.part == "key" else value
        assert 0 <= outcome.position <= len(part or b"")


@given(st.none() | keys, st.none() | values)
def test_decode_is_total_on_arbitrary_bytes(key: bytes | None, value: bytes | None) -> None:
    outcome = decode(key, value)

    assert isinstance(outcome, OUTCOMES)
    check_position(outcome, key, value)


@given(st.data(), records())
def test_decode_is_total_on_mutated_records(data: st.DataObject, record: Record) -> None:
    key, value = encode(record)
    assert value is not None
    key, value = data.draw(mutated(key)), data.draw(mutated(value))

    outcome = decode(key, value)

    assert isinstance(outcome, OUTCOMES)
    check_position(outcome, key, value)


@pytest.mark.parametrize(("record_type", "version"), TYPES_AND_VERSIONS)
@settings(max_examples=max((settings.default or settings()).max_examples // 6, 10))
@given(data=st.data())
def test_decoding_an_encoded_record_gives_it_back(record_type: int, version: int, data: st.DataObject) -> None:
    record = data.draw(records(record_type, version))

    assert decode(*encode(record)) == record


@given(records())
def test_encoding_a_decoded_record_gives_its_bytes_back(record: Record) -> None:
    key, value = encode(record)
    assert value is not None

    decoded = decode(key + b"trailing", value + b"\x00trailing")

    assert isinstance(decoded, Record)
    assert encode(decoded) == (key, value)


@given(tombstones())
def test_tombstones_survive_a_round_trip(record: Record) -> None:
    assert encode(record)[1] is None
    assert decode(*encode(record)) == record


@given(transaction_records())
def test_transactions_survive_a_round_trip(record: TransactionRecord) -> None:
    assert decode_transaction(*encode_transaction(record)) == record


@given(st.none() | keys, st.none() | values)
def test_decode_transaction_is_total(key: bytes | None, value: bytes | None) -> None:
    assert isinstance(decode_transaction(key, value), TransactionRecord | UnknownType | UnknownVersion | Malformed)


@given(data=st.data(), version=st.integers(0, 3))
def test_subscriptions_survive_a_round_trip(data: st.DataObject, version: int) -> None:
    subscription = data.draw(messages("ConsumerProtocolSubscription", version))

    encoded = encode_subscription(subscription, version)

    assert decode_subscription(encoded) == subscription
    assert subscribed_topics(encoded) == subscription.topics


@given(data=st.data(), version=st.integers(0, 3))
def test_assignments_survive_a_round_trip(data: st.DataObject, version: int) -> None:
    assignment = data.draw(messages("ConsumerProtocolAssignment", version))

    assert decode_assignment(encode_assignment(assignment, version)) == assignment


@given(data=st.data(), version=st.integers(0, 1))
def test_sticky_user_data_survives_a_round_trip(data: st.DataObject, version: int) -> None:
    user_data = data.draw(messages("StickyUserData", version))

    assert decode_sticky_user_data(encode_sticky_user_data(user_data, version)) == user_data


@given(values)
def test_embedded_decoders_are_total(data: bytes) -> None:
    assert isinstance(decode_subscription(data), ConsumerProtocolSubscription | Malformed)
    assert isinstance(decode_assignment(data), ConsumerProtocolAssignment | NoAssignment | Malformed)
    assert isinstance(subscribed_topics(data), tuple | Malformed)
    assert decode_sticky_user_data(data) is not None
    assert decode_cooperative_user_data(data) is not None
