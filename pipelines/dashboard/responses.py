"""Responses that all routes share: JSON errors in Burrow's shape, and bodies with an entity tag."""

import json
import socket
from typing import Any
from urllib.parse import unquote

from fastapi import Request, Response

from pipelines.metrics.metrics_text import CONTENT_TYPE, MetricsBody

#: Methods of routes that read.
READ = ["GET", "HEAD"]

_HOST = socket.gethostname()


def json_response(request: Request, message: str, code: int = 200, *, is_error: bool = False, **payload: Any) -> Response:
    """A JSON object with `error`, `message` and `request` beside the payload."""
    content = {"error": is_error, "message": message, **payload, "request": {"url": unquote(request.url.path), "host": _HOST}}
    # the default of Python would be NaN, which is no JSON
    body = json.dumps(content, ensure_ascii=False, allow_nan=False)
    return Response(body, code, media_type="application/json")


def error_response(request: Request, code: int, message: str) -> Response:
    """An error as JSON."""
    return json_response(request, message, code, is_error=True)


def metrics_response(body: MetricsBody, request: Request) -> Response:
    """The text of `/metrics`, compressed for clients that accept it; 304 if the client has it."""
    headers = {"ETag": body.etag, "Vary": "Accept-Encoding", "Cache-Control": "no-cache"}
    if body.etag in (tag.strip() for tag in request.headers.get("if-none-match", "").split(",")):
        return Response(status_code=304, headers=headers)
    if _accepts_gzip(request.headers.get("accept-encoding", "")):
        return Response(body.compressed, headers={**headers, "Content-Encoding": "gzip"}, media_type=CONTENT_TYPE)
    return Response(body.text, headers=headers, media_type=CONTENT_TYPE)


def _accepts_gzip(header: str) -> bool:
    for part in header.lower().split(","):
        coding, _, parameters = part.strip().partition(";")
        if coding.strip() in ("gzip", "*"):
            weight = parameters.strip().removeprefix("q=")
            return not weight or weight.strip("0.") != ""
    return False
