"""Text that is not UTF-8, in every string of every request: read as if it had U+FFFD in the place of the invalid bytes."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import pytest
from client_codecs import write_request
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from wire_messages import CLIENT_ID, EVERY_VERSION, HOST, IDS, NAMES, request_parts

from coordinator_core.protocol.api import AnyApi
from coordinator_core.wire import Peer, read_request

PEER = Peer(HOST, NAMES)
REPLACED = "\N{REPLACEMENT CHARACTER}"
#: An encoded surrogate: as long as U+FFFD, by which it is replaced.
INVALID = b"\xed\xa0\x80"
#: Text of requests that is not in their own bytes.
ELSEWHERE = {*IDS, CLIENT_ID, HOST}
_EXAMPLES = 6


def with_replacements(value: Any) -> Any:
    """The value with U+FFFD in all of its texts."""
    if isinstance(value, str):
        return value if value in ELSEWHERE else value + REPLACED
    if isinstance(value, Mapping):
        return {with_replacements(key): with_replacements(each) for key, each in value.items()}
    if isinstance(value, tuple):
        made = map(with_replacements, value)
        return type(value)(*made) if hasattr(value, "_fields") else tuple(made)
    if isinstance(value, frozenset):
        return frozenset(map(with_replacements, value))
    if is_dataclass(value) and not isinstance(value, type):
        return type(value)(**{field.name: with_replacements(getattr(value, field.name)) for field in fields(value)})
    return value


@pytest.mark.parametrize(("api", "version"), EVERY_VERSION, ids=lambda each: getattr(each, "name", str(each)))
def test_every_string(api: AnyApi, version: int) -> None:
    @settings(max_examples=_EXAMPLES, derandomize=True, phases=[Phase.generate])
    @given(st.data())
    def read_alike(data: st.DataObject) -> None:
        parts = with_replacements(data.draw(request_parts(api, version)))
        frame = write_request(api, version, parts, 7, CLIENT_ID + REPLACED)
        assert read_request(frame.replace(REPLACED.encode(), INVALID), PEER) == read_request(frame, PEER)

    read_alike()
