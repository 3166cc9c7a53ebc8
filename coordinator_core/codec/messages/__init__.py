"""The records of `__consumer_offsets` and `__transaction_state` as frozen dataclasses.

Class and field names are Kafka's (fields in snake case); `schemas/records/*.json` has their wire layouts.
Fields that the version of a value lacks have Kafka's default.

`unknown_tags` has the unknown tagged fields of flexible versions, as (tag, bytes) in wire order, so that decoding and encoding
loses nothing (KIP-482).
"""
