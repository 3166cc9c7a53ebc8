"""Errors as a page with the way back, for browsers; and the page before there is one."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus

from fastapi import Request
from fastapi.responses import HTMLResponse

from pipelines.dashboard.pages.parts.rendering import Templates
from pipelines.dashboard.path_names import FILES

_RETRY_SECONDS = 2


def is_for_browsers(request: Request) -> bool:
    """True if an error of a path that is no page is shown in a browser: only browsers request HTML by name."""
    return "text/html" in request.headers.get("accept", "") and not request.url.path.endswith(FILES)


def error_page(templates: Templates, clusters: Sequence[str], code: int, message: str, here: str | None) -> HTMLResponse:
    """The page of an error. `here` is the path of the page that has failed; None if there is none at the path."""
    context = {"title": HTTPStatus(code).phrase, "message": message, "code": code, "here": here}
    return _response(templates, "parts/error.html", clusters, code, context)


def waiting_page(
    templates: Templates, clusters: Sequence[str], message: str, here: str, job_lines: Sequence[str]
) -> HTMLResponse:
    """The page of a cluster without a batch: it shows what the job does, and turns into the page at its path by itself."""
    context = {"title": "Waiting for the first batch", "message": message, "here": here, "job_lines": job_lines}
    response = _response(templates, "parts/waiting.html", clusters, HTTPStatus.SERVICE_UNAVAILABLE, context)
    response.headers["Retry-After"] = str(_RETRY_SECONDS)
    return response


def _response(
    templates: Templates, template: str, clusters: Sequence[str], code: int, context: Mapping[str, object]
) -> HTMLResponse:
    rendered = templates.render(template, {**context, "links": None, "moment": None, "clusters": clusters})
    return HTMLResponse(rendered, code, headers={"Cache-Control": "no-store"})
