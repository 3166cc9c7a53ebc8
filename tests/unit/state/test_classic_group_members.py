"""A classic group reuses its unchanged members: the result equals reading them anew."""

from dataclasses import replace

import pytest

from coordinator_core.codec import Record, encode, encode_subscription
from coordinator_core.codec.messages.classic import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from coordinator_core.codec.messages.consumer_protocol import ConsumerProtocolSubscription
from coordinator_core.log.entries import LogRecord
from coordinator_core.state.era import Era
from coordinator_core.state.registry import GroupRegistry

_MEMBER = MemberMetadata(
    "m1",
    client_id="c",
    rebalance_timeout=7,
    session_timeout=9,
    subscription=encode_subscription(ConsumerProtocolSubscription(("a",))),
)
_FIRST = GroupMetadataValue("consumer", 1, "range", "m1", 5, (_MEMBER, replace(_MEMBER, member_id="m2")))


@pytest.mark.parametrize(
    ("second", "version"),
    [
        (replace(_FIRST, generation=2), 3),
        (replace(_FIRST, members=_FIRST.members[1:]), 3),
        (replace(_FIRST, leader=None, members=_FIRST.members[::-1]), 3),
        (replace(_FIRST, members=(replace(_MEMBER, client_host="/other"), _FIRST.members[1])), 3),
        (replace(_FIRST, members=(replace(_MEMBER, subscription=b"\x00"), _FIRST.members[1])), 3),
        (replace(_FIRST, members=(*_FIRST.members, replace(_MEMBER, member_id="m3"))), 3),
        (replace(_FIRST, protocol_type="connect"), 3),
        (_FIRST, 0),
    ],
)
def test_a_record_decodes_alike_after_another_and_alone(second: GroupMetadataValue, version: int) -> None:
    both, alone = GroupRegistry(Era.named("4")), GroupRegistry(Era.named("4"))
    _apply(both, _FIRST, 3, 0)
    both.groups["g"].view({})
    _apply(both, second, version, 1)
    _apply(alone, second, version, 1)
    assert both.groups["g"].view({}) == alone.groups["g"].view({})


def _apply(registry: GroupRegistry, value: GroupMetadataValue, version: int, offset: int) -> None:
    record = Record(2, GroupMetadataKey("g"), value, version)
    registry.apply(LogRecord(0, offset, 0, *encode(record)), record)
