"""The direct readers of frequent requests agree with the library, on valid requests and on any other bytes."""

import pytest
from client_codecs import write_request
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from wire_messages import CLIENT_ID, HOST, NAMES, request_parts

from coordinator_core.protocol import apis
from coordinator_core.protocol.api import AnyApi, RequestHeader
from coordinator_core.wire import MalformedMessage, Peer
from coordinator_core.wire.api_codec import BadField, Parts
from coordinator_core.wire.direct_requests import read_directly
from coordinator_core.wire.header_codec import read_header, skip_tags
from coordinator_core.wire.library import message_codec
from coordinator_core.wire.server_side import CODECS

PEER = Peer(HOST, NAMES)
_CORRELATION_ID = 7
#: In every run, and in slow ones.
_FEW, _MANY = 30, 90
DIRECT = [
    (api, version)
    for api in (apis.OFFSET_COMMIT, apis.PRODUCE, apis.FETCH)
    for version in api.versions.all
    if api.versions.is_flexible(version)
]
each_version = pytest.mark.parametrize(("api", "version"), DIRECT, ids=lambda each: getattr(each, "name", str(each)))
few_or_many = pytest.mark.parametrize("examples", [_FEW, pytest.param(_MANY, marks=pytest.mark.slow)])


def body_of(frame: bytes) -> tuple[RequestHeader, int]:
    header, position = read_header(frame)
    return header, skip_tags(frame, position, header)


def as_the_library_reads(api: AnyApi, frame: bytes, position: int, header: RequestHeader) -> Parts:
    codec = CODECS[api]
    return codec.read_request(message_codec(codec.request, header.version).decode(frame, position, header), header, PEER)


@st.composite
def damages(draw: st.DrawFn, frame: bytes, position: int, changes: int) -> bytes:
    """A frame with up to two other bytes at each of some places after `position`, where its body begins."""
    damaged = bytearray(frame)
    for _ in range(changes):
        if len(damaged) > position:
            at = draw(st.integers(position, len(damaged) - 1))
            damaged[at : at + draw(st.integers(0, 2))] = draw(st.binary(max_size=2))
    return bytes(damaged)


@few_or_many
@each_version
def test_requests(api: AnyApi, version: int, examples: int) -> None:
    """What is read directly is what the library reads, also of a damaged request; everything else is left to the library."""

    @settings(max_examples=examples, derandomize=True, phases=[Phase.generate])
    @given(st.data())
    def agree(data: st.DataObject) -> None:
        frame = write_request(api, version, data.draw(request_parts(api, version)), _CORRELATION_ID, CLIENT_ID)
        header, position = body_of(frame)
        assert read_directly(frame, position, header, PEER) == as_the_library_reads(api, frame, position, header)
        for changes in (1, 2, 3):
            damaged = data.draw(damages(frame, position, changes))
            found = read_directly(damaged, position, header, PEER)
            if found is not None:
                assert found == as_the_library_reads(api, damaged, position, header)

    agree()


@each_version
def test_requests_that_end_early(api: AnyApi, version: int) -> None:
    @settings(max_examples=5, derandomize=True, phases=[Phase.generate])
    @given(st.data())
    def agree(data: st.DataObject) -> None:
        frame = write_request(api, version, data.draw(request_parts(api, version)), _CORRELATION_ID, CLIENT_ID)
        header, position = body_of(frame)
        for end in range(position, len(frame)):
            assert read_directly(frame[:end], position, header, PEER) is None
            with pytest.raises((MalformedMessage, BadField)):
                as_the_library_reads(api, frame[:end], position, header)

    agree()


def test_other_requests_are_left_to_the_library() -> None:
    header = RequestHeader(apis.OFFSET_COMMIT.number, 7, _CORRELATION_ID, CLIENT_ID)
    assert read_directly(b"", 0, header, PEER) is None
    assert read_directly(b"", 0, header._replace(api_key=apis.HEARTBEAT.number, version=4), PEER) is None
