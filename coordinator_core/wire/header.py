"""Headers of requests and responses, versions 0–2 (`RequestHeader.json`, `ResponseHeader.json`)."""

from typing import NamedTuple


class RequestHeader(NamedTuple):
    """Header of a request; `api_key` and `version` may be unknown ones."""

    api_key: int
    version: int
    correlation_id: int
    client_id: str | None
