"""Messages in every version of every API survive writing and reading, here and by the library's own objects."""

from collections.abc import Mapping
from typing import Any

import pytest
from client_codecs import ALL_CODECS, read_response, write_request
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from wire_messages import CLIENT_ID, EVERY_VERSION, HOST, NAMES, request_parts, responses

from coordinator_core.protocol import apis
from coordinator_core.protocol.api import AnyApi
from coordinator_core.protocol.offsets import OffsetCommitResponse, OffsetFetchResponse
from coordinator_core.wire import Peer, RequestHeader, WireResponse, read_request, write_response
from coordinator_core.wire.server_side import CODECS

PEER = Peer(HOST, NAMES)
_CORRELATION_ID = 7
_EXAMPLES = 6
#: For responses that the library does not write: in every run, and in slow ones.
_MORE_EXAMPLES, _MANY_EXAMPLES = 20, 60
#: Values of fields that are the same in every response.
CONSTANT_FIELDS = {"throttle_time_ms": 0, "preferred_read_replica": -1, "record_errors": []}
BY_TOPIC_ID = ((apis.OFFSET_COMMIT, 10), (apis.OFFSET_FETCH, 10))

each_version = pytest.mark.parametrize(("api", "version"), EVERY_VERSION, ids=lambda each: getattr(each, "name", str(each)))


def of_asked_topics(response: Any, part: Any) -> Any:
    """Responses by topic id with the requested topics only: they cannot contain others."""
    if isinstance(response, OffsetCommitResponse):
        asked = {at.topic for at in part.offsets}
        return OffsetCommitResponse({at: error for at, error in response.errors.items() if at.topic in asked})
    offsets = {at: offset for at, offset in response.offsets.items() if at.topic in part.topic_ids}
    return OffsetFetchResponse(response.error, offsets)


def as_the_library_has_it(message: Any, version: int, frame: bytes) -> bytes:
    """The message after a round trip through the library's own objects."""
    return bytes(message[version].decode(frame, header=True).encode(header=True))


def assert_constant_fields(message: Mapping[str, Any]) -> None:
    for name, value in message.items():
        assert value == CONSTANT_FIELDS.get(name, value)
        for each in value if isinstance(value, list) else ():
            if isinstance(each, dict):
                assert_constant_fields(each)


@each_version
def test_round_trip(api: AnyApi, version: int) -> None:
    survive(api, version, _MORE_EXAMPLES if CODECS[api].response is None else _EXAMPLES)


@pytest.mark.slow
@pytest.mark.parametrize("api", [api for api in dict(EVERY_VERSION) if CODECS[api].response is None], ids=lambda api: api.name)
def test_many_round_trips(api: AnyApi) -> None:
    for version in api.versions.all:
        survive(api, version, _MANY_EXAMPLES)


def survive(api: AnyApi, version: int, examples: int) -> None:
    """Fail for a message that is another one after writing and reading."""

    @settings(max_examples=examples, derandomize=True, phases=[Phase.generate])
    @given(st.data())
    def round_trip(data: st.DataObject) -> None:
        parts = data.draw(request_parts(api, version))
        frame = write_request(api, version, parts, _CORRELATION_ID, CLIENT_ID)
        request = read_request(frame, PEER)
        assert request.header == RequestHeader(api.number, version, _CORRELATION_ID, CLIENT_ID)
        assert request.parts == parts
        assert request.unknown_topics == ()
        assert as_the_library_has_it(CODECS[api].request, version, frame) == frame
        answers = tuple(data.draw(responses(api, version)) for _ in parts)
        if (api, version) in BY_TOPIC_ID:
            answers = tuple(map(of_asked_topics, answers, parts))
        answer = b"".join(write_response(request, answers))
        response = ALL_CODECS[api].response
        assert as_the_library_has_it(response, version, answer) == answer
        assert_constant_fields(response[version].decode(answer, header=True).to_dict())
        assert read_response(api, version, answer, NAMES) == WireResponse(_CORRELATION_ID, answers)

    round_trip()
