"""Server side: decode requests, encode responses. A frame is a message without its length prefix of four bytes."""

import struct
from collections.abc import Mapping, Sequence

from coordinator_core.protocol.api import AnyApi, RequestHeader, Response
from coordinator_core.protocol.apis import API_VERSIONS, APIS
from coordinator_core.protocol.cluster import ApiVersionRange, ApiVersionsResponse
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.wire import (
    cluster_codec,
    commit_codec,
    configs_codec,
    groups_codec,
    library,
    log_codec,
    membership_codec,
    offsets_codec,
    partitions_codec,
    produce_codec,
    topics_codec,
    transactions_codec,
)
from coordinator_core.wire.api_codec import BadField, ServerCodec
from coordinator_core.wire.direct_requests import read_directly
from coordinator_core.wire.errors import MalformedMessage, UnknownApi, UnsupportedVersion, Unwritable
from coordinator_core.wire.header_codec import read_header, skip_tags
from coordinator_core.wire.heartbeat_cache import cached_heartbeat
from coordinator_core.wire.library import message_codec
from coordinator_core.wire.parts import Buffers, Peer, WireRequest

CODECS: Mapping[AnyApi, ServerCodec] = {
    **membership_codec.CODECS,
    **commit_codec.CODECS,
    **offsets_codec.CODECS,
    **groups_codec.CODECS,
    **cluster_codec.CODECS,
    **configs_codec.CODECS,
    **log_codec.CODECS,
    **produce_codec.CODECS,
    **topics_codec.CODECS,
    **partitions_codec.CODECS,
    **transactions_codec.CODECS,
}

_NO_PEER = Peer()


def read_request(frame: bytes, peer: Peer = _NO_PEER, offered: Mapping[int, range] | None = None) -> WireRequest:
    """Decode a request.

    `offered` limits the APIs and versions to those of an era (`apis.offered_versions`). For any bytes, it raises only UnknownApi,
    UnsupportedVersion or MalformedMessage, and needs memory and time proportional to the frame's size.
    """
    header, position = read_header(frame)
    api = APIS.get(header.api_key)
    if api is None or (offered is not None and header.api_key not in offered):
        raise UnknownApi(f"API {header.api_key} is not served", header)
    allowed = api.versions.all if offered is None else offered[header.api_key]
    if header.version not in allowed:
        raise UnsupportedVersion(f"{api.name} v{header.version} is not in {allowed.start}–{allowed.stop - 1}", header)
    if api.versions.is_flexible(header.version):
        position = skip_tags(frame, position, header)
    kept = cached_heartbeat(header, frame, position)
    if kept is not None:
        return WireRequest(header, *kept)
    direct = read_directly(frame, position, header, peer)
    if direct is not None:
        return WireRequest(header, *direct)
    codec = CODECS[api]
    body = message_codec(codec.request, header.version).decode(frame, position, header)
    try:
        parts, unknown = codec.read_request(body, header, peer)
    except BadField as error:
        raise MalformedMessage(f"{api.name} v{header.version}: {error}", len(frame), header) from None
    return WireRequest(header, parts, unknown)


def write_response(request: WireRequest, responses: Sequence[Response]) -> Buffers:
    """Encode the responses to the parts of a request, in their order, as one frame. Raises Unwritable.

    Fetched records are a buffer of their own, and not copied.
    """
    header = request.header
    api = APIS[header.api_key]
    codec = CODECS[api]
    if codec.response is not None:
        body = codec.write_response(request, responses)
        return (message_codec(codec.response, header.version).encode_response(body, header.correlation_id),)
    try:
        frame: Buffers = codec.write_response(request, responses)
    except (struct.error, UnicodeEncodeError) as error:
        raise Unwritable(f"response of {api.name} v{header.version}: {error}") from None
    return frame


def write_error_response(header: RequestHeader, error: ErrorCode, offered: Mapping[int, range] | None = None) -> bytes | None:
    """Encode the error response to a request whose body was not read; None if the connection must be closed instead.

    Only ApiVersions has such a response: v0, with the supported versions of ApiVersions (KIP-511).
    """
    api = API_VERSIONS
    if header.api_key != api.number:
        return None
    supported = api.versions.all if offered is None else offered[api.number]
    response = ApiVersionsResponse(error, (ApiVersionRange(api.number, supported.start, supported.stop - 1),))
    body = cluster_codec.versions_body(response)
    return message_codec(library.ApiVersionsResponse, 0).encode_response(body, header.correlation_id)
