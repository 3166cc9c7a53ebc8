"""Record codec: bytes ↔ typed records, for every record type of `__consumer_offsets` and `__transaction_state`.

Layouts are data (`schemas/records`), `schema` reads them, `compiler` turns them into readers and writers over the primitives
of `wire`. Decoding is total: it returns a record or one of the outcomes.
"""

from coordinator_core.codec.classic_group_decoder import ClassicGroupDecoder
from coordinator_core.codec.consumer_protocol import (
    NoAssignment,
    cooperative_generation,
    decode_assignment,
    decode_cooperative_user_data,
    decode_sticky_user_data,
    decode_subscription,
    encode_assignment,
    encode_cooperative_user_data,
    encode_sticky_user_data,
    encode_subscription,
    refused_by_loaders,
    subscribed_topics,
)
from coordinator_core.codec.outcomes import Malformed, Undecodable, UnknownType, UnknownVersion
from coordinator_core.codec.records import Key, Record, Value, decode, encode
from coordinator_core.codec.transactions import TransactionRecord, decode_transaction, encode_transaction

__all__ = [
    "ClassicGroupDecoder",
    "Key",
    "Malformed",
    "NoAssignment",
    "Record",
    "TransactionRecord",
    "Undecodable",
    "UnknownType",
    "UnknownVersion",
    "Value",
    "cooperative_generation",
    "decode",
    "decode_assignment",
    "decode_cooperative_user_data",
    "decode_sticky_user_data",
    "decode_subscription",
    "decode_transaction",
    "encode",
    "encode_assignment",
    "encode_cooperative_user_data",
    "encode_sticky_user_data",
    "encode_subscription",
    "encode_transaction",
    "refused_by_loaders",
    "subscribed_topics",
]
