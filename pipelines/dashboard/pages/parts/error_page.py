"""Errors as a page with the way back, for browsers."""

from collections.abc import Sequence
from http import HTTPStatus

from fastapi import Request
from fastapi.responses import HTMLResponse

from pipelines.dashboard.pages.parts.rendering import Templates
from pipelines.dashboard.path_names import FILES


def is_for_browsers(request: Request) -> bool:
    """True if an error of a path that is no page is shown in a browser: only browsers request HTML by name."""
    return "text/html" in request.headers.get("accept", "") and not request.url.path.endswith(FILES)


def error_page(templates: Templates, clusters: Sequence[str], code: int, message: str, here: str | None) -> HTMLResponse:
    """The page of an error. `here` is the path of the page that has failed; None if there is none at the path."""
    context = {
        "title": HTTPStatus(code).phrase,
        "message": message,
        "code": code,
        "here": here,
        "links": None,
        "moment": None,
        "clusters": clusters,
    }
    return HTMLResponse(templates.render("parts/error.html", context), code, headers={"Cache-Control": "no-store"})
