"""The answer to a request for `/metrics`, for any HTTP server."""

from typing import NamedTuple

from pipelines.metrics.metrics_text import MetricsBody

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class HttpAnswer(NamedTuple):
    """Status code, headers and content."""

    code: int
    headers: dict[str, str]
    content: bytes


def metrics_answer(body: MetricsBody, if_none_match: str, accept_encoding: str) -> HttpAnswer:
    """The text, compressed for clients that accept it; 304 for a client that has it. The arguments are headers, or empty."""
    headers = {"ETag": body.etag, "Vary": "Accept-Encoding", "Cache-Control": "no-cache"}
    if body.etag in (tag.strip() for tag in if_none_match.split(",")):
        return HttpAnswer(304, headers, b"")
    headers["Content-Type"] = CONTENT_TYPE
    if accepts_gzip(accept_encoding):
        return HttpAnswer(200, {**headers, "Content-Encoding": "gzip"}, body.compressed)
    return HttpAnswer(200, headers, body.text)


def accepts_gzip(header: str) -> bool:
    """Whether a header Accept-Encoding allows gzip."""
    for part in header.lower().split(","):
        coding, _, parameters = part.strip().partition(";")
        if coding.strip() in ("gzip", "*"):
            weight = parameters.strip().removeprefix("q=")
            return not weight or weight.strip("0.") != ""
    return False
