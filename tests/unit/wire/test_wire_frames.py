"""MalformedMessage frames, and parts of the protocol that no round trip covers."""

import struct
from uuid import UUID

import pytest
from client_codecs import read_response, write_request
from expecting import expect
from wire_messages import IDS, NAMES

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.protocol import apis
from coordinator_core.protocol.apis import offered_versions
from coordinator_core.protocol.cluster import ApiVersionsRequest, ApiVersionsResponse
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.groups import DescribeGroupRequest
from coordinator_core.protocol.membership import HeartbeatRequest, HeartbeatResponse
from coordinator_core.protocol.offsets import (
    FetchedOffset,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetToCommit,
)
from coordinator_core.wire import (
    MalformedMessage,
    Peer,
    RequestHeader,
    UnknownApi,
    UnsupportedVersion,
    Unwritable,
    WireRequest,
    WireResponse,
    client_side,
    read_request,
    write_error_response,
    write_response,
)

HEARTBEAT = HeartbeatRequest("g", 3, "m")


def header(api: int, version: int, client_id: bytes = b"\x00\x01c") -> bytes:
    return struct.pack(">hhi", api, version, 7) + client_id


def test_every_cut_of_a_frame_is_malformed() -> None:
    frame = write_request(apis.HEARTBEAT, 4, (HEARTBEAT,), 7, "c")
    for end in range(len(frame)):
        with pytest.raises(MalformedMessage, match="byte"):
            read_request(frame[:end])
    assert read_request(frame + b"more").parts == (HEARTBEAT,)


@pytest.mark.parametrize("tags", [b"\x01\x63\x02ab", b"\x02\x63\x00\x64\x01a"])
def test_tagged_fields_are_passed_over(tags: bytes) -> None:
    frame = write_request(apis.HEARTBEAT, 4, (HEARTBEAT,), 7, "c")
    assert read_request(frame[:-1] + tags).parts == (HEARTBEAT,)
    start = len(header(0, 0))
    assert read_request(frame[:start] + tags + frame[start + 1 :]).parts == (HEARTBEAT,)


@pytest.mark.parametrize(
    "body",
    [
        b"\x7f\xff\xff\xff",
        b"\x00\x00\x00\x01\x7f\xff",
        b"\x00\x00\x00\x01\xff\xff",
        b"\xff\xff\xff\xff",
    ],
    ids=["more groups than bytes", "a name longer than the frame", "a null name", "null groups"],
)
def test_lying_bytes_are_malformed(body: bytes) -> None:
    with pytest.raises(MalformedMessage):
        read_request(header(apis.DESCRIBE_GROUPS.number, 0) + body)


@pytest.mark.parametrize("body", [b"\xff" * 100_000, b"\xff\xff\xff\xff\x0f", b"\x02\xff\xff\xff\xff\x0f" + b"a" * 20])
def test_varints_that_lie_are_malformed(body: bytes) -> None:
    with pytest.raises(MalformedMessage):
        read_request(header(apis.DESCRIBE_GROUPS.number, 5) + b"\x00" + body)


def test_unknown_apis_and_versions_keep_the_header() -> None:
    with pytest.raises(UnknownApi) as unknown:
        read_request(header(33, 9))
    assert unknown.value.header == RequestHeader(33, 9, 7, "c")
    with pytest.raises(UnsupportedVersion, match="API_VERSIONS v99 is not in 0–4") as unsupported:
        read_request(header(apis.API_VERSIONS.number, 99))
    assert unsupported.value.header == RequestHeader(18, 99, 7, "c")


def test_unknown_versions_of_api_versions_are_answered_as_v0() -> None:
    refused = write_error_response(RequestHeader(18, 99, 7, None), ErrorCode.UNSUPPORTED_VERSION)
    assert refused == struct.pack(">ihihhh", 7, 35, 1, 18, 0, 4)
    (part,) = read_response(apis.API_VERSIONS, 4, refused).parts
    assert expect(ApiVersionsResponse, part).error is ErrorCode.UNSUPPORTED_VERSION
    assert write_error_response(RequestHeader(12, 99, 7, None), ErrorCode.UNSUPPORTED_VERSION) is None


def test_an_era_narrows_what_is_read() -> None:
    old = offered_versions("0.10")
    assert apis.OFFSET_DELETE.number not in old
    assert list(old[apis.HEARTBEAT.number]) == [0]
    with pytest.raises(UnsupportedVersion):
        read_request(write_request(apis.HEARTBEAT, 4, (HEARTBEAT,), 7, "c"), offered=old)
    with pytest.raises(UnknownApi):
        read_request(header(apis.OFFSET_DELETE.number, 0), offered=old)


def test_software_names() -> None:
    assert ApiVersionsRequest().valid
    assert ApiVersionsRequest("apache-kafka-java", "4.1.1").valid
    assert not ApiVersionsRequest("-no", "1").valid
    assert not ApiVersionsRequest("", "1").valid


def test_commits_of_unknown_topic_ids() -> None:
    other = UUID(int=99)
    at, known = TopicPartition("t1", 0), OffsetToCommit(5, topic_id=IDS["t1"])
    sent = OffsetCommitRequest(
        "g", {at: known, TopicPartition("gone", 3): OffsetToCommit(6, topic_id=other)}, knows_missing_groups=True
    )
    request = read_request(write_request(apis.OFFSET_COMMIT, 10, (sent,), 7), Peer("", NAMES))
    assert expect(OffsetCommitRequest, request.parts[0]).offsets == {at: known}
    answer = b"".join(write_response(request, (OffsetCommitResponse({at: ErrorCode.NONE}),)))
    (part,) = read_response(apis.OFFSET_COMMIT, 10, answer, {**NAMES, other: "gone"}).parts
    assert expect(OffsetCommitResponse, part).errors == {
        at: ErrorCode.NONE,
        TopicPartition("gone", 3): ErrorCode.UNKNOWN_TOPIC_ID,
    }


def test_fetches_of_unknown_topic_ids() -> None:
    other = UUID(int=99)
    at, gone = TopicPartition("t1", 0), TopicPartition("gone", 3)
    sent = OffsetFetchRequest("g", (at, gone), False, {"t1": IDS["t1"], "gone": other})
    request = read_request(write_request(apis.OFFSET_FETCH, 10, (sent,), 7), Peer("", NAMES))
    assert request.parts == (OffsetFetchRequest("g", (at,), False, {"t1": IDS["t1"]}),)
    answer = b"".join(write_response(request, (OffsetFetchResponse(ErrorCode.NONE, {at: FetchedOffset(5)}),)))
    (part,) = read_response(apis.OFFSET_FETCH, 10, answer, {**NAMES, other: "gone"}).parts
    assert expect(OffsetFetchResponse, part).offsets == {
        at: FetchedOffset(5),
        gone: FetchedOffset(error=ErrorCode.UNKNOWN_TOPIC_ID),
    }


def test_oldest_fetch_tells_its_error_at_every_partition() -> None:
    at = TopicPartition("t", 1)
    request = read_request(write_request(apis.OFFSET_FETCH, 1, (OffsetFetchRequest("g", (at,)),), 7))
    answer = b"".join(write_response(request, (OffsetFetchResponse(ErrorCode.NOT_COORDINATOR, {}),)))
    (part,) = read_response(apis.OFFSET_FETCH, 1, answer).parts
    assert expect(OffsetFetchResponse, part).offsets == {at: FetchedOffset(error=ErrorCode.NOT_COORDINATOR)}


def test_what_a_version_has_no_room_for() -> None:
    with pytest.raises(Unwritable):
        write_request(apis.OFFSET_FETCH, 1, (OffsetFetchRequest("g"),), 7)
    with pytest.raises(Unwritable):
        write_request(apis.OFFSET_FETCH, 7, (OffsetFetchRequest("g"), OffsetFetchRequest("h")), 7)
    with pytest.raises(Unwritable):
        write_request(apis.DESCRIBE_GROUPS, 0, (DescribeGroupRequest("g" * 40_000),), 7)
    with pytest.raises(Unwritable):
        write_request(apis.HEARTBEAT, 5, (HEARTBEAT,), 7)


def test_an_api_that_members_do_not_use_has_no_client_codec() -> None:
    with pytest.raises(Unwritable, match=f"{apis.DESCRIBE_GROUPS.name} has no codec of clients"):
        client_side.write_request(apis.DESCRIBE_GROUPS, 0, (DescribeGroupRequest("g"),), 7)


@pytest.mark.parametrize("length", [0, 126, 127, 128, 16_383, 32_767])
@pytest.mark.parametrize("version", [7, 9])
def test_names_of_any_length(version: int, length: int) -> None:
    offsets = {TopicPartition("t" * length, number): OffsetToCommit(5) for number in range(2)}
    sent = OffsetCommitRequest("g", offsets, knows_missing_groups=version == 9)
    response = OffsetCommitResponse(dict.fromkeys(offsets, ErrorCode.NONE))
    for number in (1, 2):
        request = read_request(write_request(apis.OFFSET_COMMIT, version, (sent,), number))
        assert request.parts == (sent,)
        found = read_response(apis.OFFSET_COMMIT, version, b"".join(write_response(request, (response,))))
        assert found == WireResponse(number, (response,))


def test_responses_that_cannot_be_written() -> None:
    request = WireRequest(RequestHeader(apis.OFFSET_COMMIT.number, 7, 1, None), ())
    with pytest.raises(Unwritable, match="OFFSET_COMMIT v7"):
        write_response(request, (OffsetCommitResponse({TopicPartition("t" * 32_768, 0): ErrorCode.NONE}),))
    with pytest.raises(Unwritable, match="1 part, not 2"):
        write_response(request, (OffsetCommitResponse({}),) * 2)


def test_cached_heartbeats() -> None:
    """The second heartbeat is read from the cache, with the correlation id of its own frame."""
    for number in (1, 2):
        request = read_request(write_request(apis.HEARTBEAT, 4, (HEARTBEAT,), number, "c"))
        assert (request.parts, request.header.correlation_id) == ((HEARTBEAT,), number)
        answer = b"".join(write_response(request, (HeartbeatResponse(ErrorCode.REBALANCE_IN_PROGRESS),)))
        assert answer == struct.pack(">ibihb", number, 0, 0, 27, 0)
        with pytest.raises(MalformedMessage, match="HeartbeatRequest v4"):
            read_request(header(apis.HEARTBEAT.number, 4) + b"\x00\x02g")
