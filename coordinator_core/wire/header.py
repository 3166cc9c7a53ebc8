"""Headers of requests and responses, versions 0–2 (`RequestHeader.json`, `ResponseHeader.json`)."""

from typing import NamedTuple


class RequestHeader(NamedTuple):
    """`api_key` and `version` as the client sent them, known or not."""

    api_key: int
    version: int
    correlation_id: int
    client_id: str | None
