"""The routes of the pages: each is HTML, and JSON under the same path + `.json`, with an entity tag of its batch."""

import hashlib
from collections.abc import Callable
from http import HTTPStatus
from urllib.parse import unquote

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse

from pipelines.dashboard.moments.errors import NotLoaded, UnknownCluster
from pipelines.dashboard.moments.moment import Moment
from pipelines.dashboard.moments.moment_store import MomentStore
from pipelines.dashboard.pages.all_pages import NAVIGATION, PAGES
from pipelines.dashboard.pages.links import Links
from pipelines.dashboard.pages.page import NoSuchPage, Page
from pipelines.dashboard.pages.page_json import page_json
from pipelines.dashboard.pages.rendering import Templates
from pipelines.dashboard.pages.time_travel import time_control
from pipelines.dashboard.responses import READ, error_response
from pipelines.errors import GrouplakeError, RemovedState, UsageError
from pipelines.version import version_text

#: Errors of a request with their code; any other error is one of the server.
_CODES: tuple[tuple[type[GrouplakeError], int], ...] = (
    (UnknownCluster, 404),
    (NoSuchPage, 404),
    (NotLoaded, 503),
    (RemovedState, 410),
    (UsageError, 400),
)
_JSON = ".json"


class PageRoutes:
    """All pages of all clusters."""

    def __init__(self, moments: MomentStore) -> None:
        self._moments = moments
        self._templates = Templates()

    def router(self) -> APIRouter:
        """The routes. Their functions block while they read, so they run in threads."""
        router = APIRouter()
        for page in PAGES:
            path = f"/c/{{cluster}}/{page.path}"
            file = f"{path}index" if path.endswith("/") else path
            router.add_api_route(f"{file}{_JSON}", self._json(page), methods=READ, summary=page.summary, tags=["pages"])
            router.add_api_route(path, self._html(page), methods=READ, include_in_schema=False)
        return router

    def _json(self, page: Page) -> Callable[[Request], Response]:
        def answer(request: Request) -> Response:
            try:
                moment = self._moment(request)
                tag = _entity_tag(moment, request)
                if tag in request.headers.get("if-none-match", ""):
                    return Response(status_code=304, headers=_caching(tag))
                model = {**_position(moment), **page.model(moment, _names(request), request.query_params)}
                return Response(page_json(model), media_type="application/json", headers=_caching(tag))
            except GrouplakeError as error:
                return error_response(request, _code(error), str(error))

        return answer

    def _html(self, page: Page) -> Callable[[Request], Response]:
        def answer(request: Request) -> Response:
            try:
                moment = self._moment(request)
                tag = _entity_tag(moment, request)
                if tag in request.headers.get("if-none-match", ""):
                    return Response(status_code=304, headers=_caching(tag))
                model = page.model(moment, _names(request), request.query_params)
                drawn = page.view(model, moment) if page.view else {}
                context = {"model": model, **drawn, "title": page.title(model), "active": page.name}
                return HTMLResponse(self._page(page.template, request, moment, context), headers=_caching(tag))
            except GrouplakeError as error:
                return self._error(request, error)

        return answer

    def _page(self, template: str, request: Request, moment: Moment, context: dict[str, object]) -> str:
        links = Links(moment.cluster, request.url.path, dict(request.query_params))
        newest = self._moments.moment(moment.cluster)
        return self._templates.render(
            template,
            {
                **context,
                "moment": moment,
                "links": links,
                "clusters": self._moments.clusters(),
                "navigation": [(name, label, links.to(*path)) for name, label, path in NAVIGATION],
                "time": time_control(moment, newest, links),
                "events_url": links.to("events", as_of=None, span=None) if moment.is_newest else None,
            },
        )

    def _moment(self, request: Request) -> Moment:
        return self._moments.moment(unquote(request.path_params["cluster"]), request.query_params.get("as_of") or None)

    def _error(self, request: Request, error: GrouplakeError) -> Response:
        code = _code(error)
        context = {
            "title": HTTPStatus(code).phrase,
            "message": str(error),
            "code": code,
            "here": request.url.path,
            "links": None,
            "moment": None,
            "clusters": self._moments.clusters(),
        }
        return HTMLResponse(self._templates.render("error.html", context), code, headers={"Cache-Control": "no-store"})


def _names(request: Request) -> dict[str, str]:
    return {name: unquote(value) for name, value in request.path_params.items()}


def _position(moment: Moment) -> dict[str, object]:
    return {
        "cluster": moment.cluster,
        "batch_id": moment.batch.batch_id,
        "at": moment.at,
        "sampled_at": moment.sampled_at,
        "commits_read_until": moment.batch.finished_at,
    }


def _entity_tag(moment: Moment, request: Request) -> str:
    """Of the batch and the request: a page is a function of them and of this version."""
    asked = f"{version_text()} {moment.at} {moment.is_newest} {request.url.path}?{request.url.query}"
    return f'"{moment.batch.batch_id}-{hashlib.sha256(asked.encode(errors="surrogatepass")).hexdigest()[:16]}"'


def _caching(tag: str) -> dict[str, str]:
    return {"ETag": tag, "Cache-Control": "private, no-cache"}


def _code(error: GrouplakeError) -> int:
    return next((code for kind, code in _CODES if isinstance(error, kind)), 500)
