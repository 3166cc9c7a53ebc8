"""Records: scalar codec, compiled codec, text forms, `__transaction_state`, and the consumer protocol inside of members."""

import json
from collections.abc import Callable, Sequence
from functools import cache
from random import Random
from typing import Any

from codec_agreement import Pair, columnar, scalar
from dump_forms import dump_form
from fuzz_mutations import mutated
from fuzz_seeds import offset_commit_pairs, protocol_messages, record_pairs, transaction_pairs
from fuzz_target import Target

from coordinator_core import codec
from coordinator_core.codec import Malformed, NoAssignment, Record, TransactionRecord, UnknownType, UnknownVersion
from coordinator_core.codec.columnar import KeyDictionary
from coordinator_core.codec.text import classic_line, json_form, transaction_json_form
from coordinator_core.state.era import ERAS

_UNDECODABLE = (UnknownType, UnknownVersion, Malformed)


def _mutated_pair(rng: Random, pairs: tuple[Pair, ...], parts: tuple[bytes, ...]) -> Pair:
    key, value = pairs[int(rng.random() * len(pairs))]
    kind = rng.random()
    if kind < 0.02:
        return (None, value) if kind < 0.01 else (key, None)
    if value is not None and kind < 0.75:
        return key, mutated(rng, value, parts)
    key = mutated(rng, key or b"", parts)
    return key, (mutated(rng, value, parts) if value is not None and kind > 0.95 else value)


@cache
def _parts(pairs: tuple[Pair, ...]) -> tuple[bytes, ...]:
    return tuple(dict.fromkeys(part for pair in pairs for part in pair if part))


def _maker(pairs: Callable[[], tuple[Pair, ...]]) -> Callable[[Random], Pair]:
    def make(rng: Random) -> Pair:
        chosen = pairs()
        return _mutated_pair(rng, chosen, _parts(chosen))

    return make


def check_records(pairs: Sequence[Pair]) -> None:
    """Require a record that is encoded and decoded without change, or a typed outcome with a reason."""
    for key, value in pairs:
        record = codec.decode(key, value)
        if isinstance(record, Record):
            assert codec.decode(*codec.encode(record)) == record
        else:
            assert isinstance(record, _UNDECODABLE)
            assert record.reason


def check_texts(pairs: Sequence[Pair]) -> None:
    """Every decodable record can be printed in every form."""
    for key, value in pairs:
        record = codec.decode(key, value)
        if isinstance(record, Record):
            dumped = dump_form(record)
            json.dumps([json_form(record), dumped.key, dumped.payload])
            for era in ERAS:
                classic_line(record, era)


def check_columnar(pairs: Sequence[Pair]) -> None:
    """The compiled codec agrees with the scalar one; it ignores the bytes between the records."""
    pairs = list(pairs)
    assert columnar(pairs, KeyDictionary(), junk=b"\xff") == [scalar(pair) for pair in pairs]


def check_transactions(pairs: Sequence[Pair]) -> None:
    """The same for `__transaction_state`, text form included."""
    for key, value in pairs:
        record = codec.decode_transaction(key, value)
        if isinstance(record, TransactionRecord):
            json.dumps(transaction_json_form(record))
            assert codec.decode_transaction(*codec.encode_transaction(record)) == record
        else:
            assert isinstance(record, _UNDECODABLE)


def check_protocol(messages: Sequence[bytes]) -> None:
    """Subscription, assignment and user data: a message or a typed outcome, and the coordinator's reading of it."""
    for data in messages:
        subscription = codec.decode_subscription(data)
        if not isinstance(subscription, Malformed):
            codec.cooperative_generation(subscription.generation_id, subscription.user_data)
            assert codec.decode_subscription(codec.encode_subscription(subscription)) == subscription
        topics = codec.subscribed_topics(data)
        assert isinstance(topics, tuple | Malformed)
        outcomes: list[Any] = [
            codec.decode_assignment(data),
            codec.decode_sticky_user_data(data),
            codec.decode_cooperative_user_data(data),
        ]
        assert all(isinstance(each, NoAssignment | Malformed) or each for each in outcomes)


def _make_message(rng: Random) -> bytes:
    messages = protocol_messages()
    return mutated(rng, messages[int(rng.random() * len(messages))], messages)


TARGETS = (
    Target("records", _maker(record_pairs), check_records, share=300, chunk=64),
    Target("columnar", _maker(offset_commit_pairs), check_columnar, share=300, chunk=256, compiled=True),
    Target("texts", _maker(record_pairs), check_texts, share=40, chunk=16),
    Target("transactions", _maker(transaction_pairs), check_transactions, share=60, chunk=64),
    Target("consumer-protocol", _make_message, check_protocol, share=120, chunk=64),
)
