"""Commits of old clients and of clients with text that is not UTF-8, as bytes, and what brokers 1.1.1, 2.8.2 and 3.9.1 answer."""

from collections.abc import Mapping

from client_codecs import read_response
from eventually import eventually
from wire_connection import PLACE, Wire

from coordinator_core.protocol import apis
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.offsets import (
    FetchedOffset,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetToCommit,
)

REPLACED = "\N{REPLACEMENT CHARACTER}"
#: Bytes that are not UTF-8, as many as the text of a frame that they replace.
INVALID = {REPLACED: b"\xff\xfe\x80", "wire": b"\xff\xfe\x80\x80"}
RETENTIONS = (2**63 - 1, 2**62, -2, -(2**63), 0, 1)
_NOT_READY = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)
Answers = Mapping[str, object]


def answers_of_brokers(*, has_zookeeper: bool) -> Answers:
    """The answers to `ask_for_all`; brokers with KRaft refuse v0."""
    missing = FetchedOffset(error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    refused = ErrorCode.UNSUPPORTED_VERSION
    return {
        "v0": ErrorCode.NONE if has_zookeeper else refused,
        "v0 fetched": FetchedOffset(41) if has_zookeeper else FetchedOffset(error=refused),
        "v0 fetched of none": missing if has_zookeeper else FetchedOffset(error=refused),
        "v1": ErrorCode.NONE,
        "v1 fetched": FetchedOffset(42, metadata="m"),
        "metadata": ErrorCode.NONE,
        "metadata fetched": FetchedOffset(7, metadata=REPLACED * 3),
        "group id": ErrorCode.NONE,
        "group id fetched": FetchedOffset(8),
        "client id": ErrorCode.NONE,
        **{f"retention {each}": ErrorCode.NONE for each in RETENTIONS},
    }


def ask_for_all(wire: Wire) -> Answers:
    """Send every commit and fetch; PLACE must exist."""
    eventually("commits are taken", lambda: commit(wire, 2, OffsetCommitRequest("warm-up", {PLACE: OffsetToCommit(1)})) == 0)
    found: dict[str, object] = {
        "v0": commit(wire, 0, OffsetCommitRequest("v0", {PLACE: OffsetToCommit(41, metadata="m")}, in_zookeeper=True)),
        "v0 fetched": fetch(wire, "v0", 0),
        "v0 fetched of none": fetch(wire, "none", 0),
        "v1": commit(wire, 1, OffsetCommitRequest("v1", {PLACE: OffsetToCommit(42, metadata="m")})),
        "v1 fetched": fetch(wire, "v1"),
        "metadata": commit(wire, 2, OffsetCommitRequest("metadata", {PLACE: OffsetToCommit(7, metadata=REPLACED)}), REPLACED),
        "metadata fetched": fetch(wire, "metadata"),
        "group id": commit(wire, 2, OffsetCommitRequest(REPLACED, {PLACE: OffsetToCommit(8)}), REPLACED),
        "group id fetched": fetch(wire, REPLACED * 3),
        "client id": commit(wire, 2, OffsetCommitRequest("client", {PLACE: OffsetToCommit(9)}), "wire"),
    }
    for each in RETENTIONS:
        request = OffsetCommitRequest(f"retention {each}", {PLACE: OffsetToCommit(9)}, retention_ms=each)
        found[f"retention {each}"] = commit(wire, 2, request)
    return found


def commit(wire: Wire, version: int, request: OffsetCommitRequest, invalid: str | None = None) -> ErrorCode:
    """The error of PLACE, once the coordinator is ready; `invalid` is the text that is sent as bytes that are not UTF-8."""
    found: list[ErrorCode] = []

    def is_ready() -> bool:
        frame = wire.frame(apis.OFFSET_COMMIT, version, request)
        wire.socket.sendall(frame if invalid is None else frame.replace(invalid.encode(), INVALID[invalid]))
        data = wire.receive()
        assert data, "the connection was closed without a response"
        response = read_response(apis.OFFSET_COMMIT, version, data).parts[0]
        assert isinstance(response, OffsetCommitResponse)
        found.append(response.errors[PLACE])
        return found[-1] not in _NOT_READY

    eventually("the coordinator is ready", is_ready)
    return found[-1]


def fetch(wire: Wire, group: str, version: int = 1) -> FetchedOffset:
    """The offset of PLACE."""
    response = wire.ask(apis.OFFSET_FETCH, version, OffsetFetchRequest(group, (PLACE,), in_zookeeper=version == 0))
    fetched: FetchedOffset = response.offsets[PLACE]
    return fetched
