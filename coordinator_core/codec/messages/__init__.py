"""The records of `__consumer_offsets` and `__transaction_state` as frozen dataclasses.

Class and field names are Kafka's (fields in snake case); `schemas/records/*.json` says how each one lies on the wire.
Fields of versions that a value was not written in hold Kafka's default for them.

`unknown_tags` keeps the tagged fields of flexible versions that this build does not know, as (tag, bytes) in wire order,
so that decoding and encoding again loses nothing (KIP-482).
"""
