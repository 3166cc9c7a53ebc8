"""Responses that all routes share: JSON errors in Burrow's shape, and bodies with an entity tag."""

import json
import socket
from typing import Any
from urllib.parse import unquote

from fastapi import Request, Response

from pipelines.metrics.http_answer import metrics_answer
from pipelines.metrics.metrics_text import MetricsBody

#: Methods of routes that read.
READ = ["GET", "HEAD"]

_HOST = socket.gethostname()


def json_response(request: Request, message: str, code: int = 200, *, is_error: bool = False, **payload: Any) -> Response:
    """A JSON object with `error`, `message` and `request` beside the payload.

    Burrow's `host` is empty unless the client is authenticated and its role is not limited.
    """
    viewer = getattr(request.state, "viewer", None)
    host = "" if viewer is None or viewer.is_limited else _HOST
    content = {"error": is_error, "message": message, **payload, "request": {"url": unquote(request.url.path), "host": host}}
    # the default of Python would be NaN, which JSON does not have
    body = json.dumps(content, ensure_ascii=False, allow_nan=False)
    return Response(body, code, media_type="application/json")


def error_response(request: Request, code: int, message: str) -> Response:
    """An error as JSON."""
    return json_response(request, message, code, is_error=True)


def metrics_response(body: MetricsBody, request: Request) -> Response:
    """The text of `/metrics`."""
    answer = metrics_answer(body, *(request.headers.get(name, "") for name in ("if-none-match", "accept-encoding", "accept")))
    return Response(answer.content, answer.code, answer.headers)
