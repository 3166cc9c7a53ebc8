"""Client side: encode requests, decode the responses of a broker."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from coordinator_core.protocol.api import AnyApi
from coordinator_core.protocol.apis import API_VERSIONS
from coordinator_core.wire.api_codec import BadField, ClientCodec
from coordinator_core.wire.client_codecs import CLIENT_CODECS
from coordinator_core.wire.errors import MalformedMessage, Unwritable
from coordinator_core.wire.header_codec import correlation_id_of, response_body
from coordinator_core.wire.library import message_codec
from coordinator_core.wire.parts import NO_TOPIC_NAMES, Part, WireResponse

_NO_ERROR = bytes(2)


def write_request(
    api: AnyApi,
    version: int,
    parts: Sequence[Part],
    correlation_id: int,
    client_id: str | None = None,
    codecs: Mapping[AnyApi, ClientCodec] = CLIENT_CODECS,
) -> bytes:
    """Encode a request as a frame without its length prefix; `parts` as in WireRequest. Raises Unwritable."""
    if version not in api.versions.all:
        raise Unwritable(f"{api.name} v{version} is not in {api.versions.lowest}–{api.versions.highest}")
    codec = codecs.get(api)
    if codec is None:
        raise Unwritable(f"{api.name} has no codec of clients: the codecs are of {', '.join(each.name for each in codecs)}")
    body = codec.write_request(parts, version)
    return message_codec(codec.request, version).encode_request(body, correlation_id, client_id)


def read_response(
    api: AnyApi,
    version: int,
    frame: bytes,
    topic_names: Mapping[UUID, str] = NO_TOPIC_NAMES,
    codecs: Mapping[AnyApi, ClientCodec] = CLIENT_CODECS,
) -> WireResponse:
    """Decode the response to a request of this API and version. For any bytes, it raises only MalformedMessage.

    An ApiVersions response with an error is read as v0, the version that brokers use after an unsupported one.
    """
    correlation_id = correlation_id_of(frame)
    codec = codecs[api]
    if api is API_VERSIONS and frame[4:6] != _NO_ERROR:
        version = 0
    # the header of ApiVersions never has tagged fields, so that clients of every version can read it
    body_at = response_body(frame, api is not API_VERSIONS and api.versions.is_flexible(version))
    body = message_codec(codec.response, version).decode(frame, body_at)
    try:
        return WireResponse(correlation_id, codec.read_response(body, version, topic_names))
    except BadField as error:
        raise MalformedMessage(f"{api.name} v{version}: {error}", len(frame)) from None
