"""The routes of the pages: each is HTML, and JSON under the same path + `.json`, with an entity tag of its batch."""

import hashlib
import json
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any
from urllib.parse import unquote

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from starlette.routing import BaseRoute

from pipelines.dashboard.formatting.times import iso
from pipelines.dashboard.pages.all_pages import PAGES
from pipelines.dashboard.pages.clusters.clusters import clusters_page
from pipelines.dashboard.pages.parts.page import Page
from pipelines.dashboard.pages.parts.time_travel import no_marks
from pipelines.dashboard.path_names import FILES
from pipelines.dashboard.responses import READ
from pipelines.dashboard.security.viewer import viewer_of
from pipelines.dashboard.server.page_cache import PageCache, RenderedPage
from pipelines.dashboard.server.page_frame import PageFrame, PageRequest
from pipelines.dashboard.server.table_csv import table_csv
from pipelines.dashboard.state.moment import Moment
from pipelines.metrics.http_answer import accepts_gzip
from pipelines.runtime.errors import GrouplakeError

#: Headers of a response that belong to its body.
_KEPT_HEADERS = ("content-type", "content-disposition")
_JSON, _CSV = FILES


class PageRoutes:
    """All pages of all clusters."""

    def __init__(self, frame: PageFrame, kept_bytes: int) -> None:
        """`kept_bytes` limits the memory for rendered pages."""
        self._frame, self._moments = frame, frame.moments
        self._kept = PageCache(kept_bytes)

    def router(self) -> APIRouter:
        """The routes. Their functions block while they read, so they run in threads."""
        router = APIRouter()
        router.add_api_route(f"/index{_JSON}", self._clusters_json, methods=READ, summary="All clusters", tags=["pages"])
        router.add_api_route("/", self._clusters, methods=READ, include_in_schema=False)
        for page in PAGES:
            path = f"/c/{{cluster:name}}/{page.path}"
            file = f"{path}index" if path.endswith("/") else path
            files = [(_JSON, self._json, page.summary)]
            files += [(_CSV, self._csv, f"{page.summary}, as CSV")] if page.csv else []
            for suffix, make, summary in files:
                router.add_api_route(f"{file}{suffix}", self._answer(page, make), methods=READ, summary=summary, tags=["pages"])
            router.add_api_route(path, _redirecting(self._answer(page, self._html)), methods=READ, include_in_schema=False)
        return router

    def _clusters(self, request: Request) -> Response:
        """The overview of the only cluster, or of all."""
        model = clusters_page(self._moments, viewer_of(request))
        if len(model["clusters"]) == 1:
            return RedirectResponse(model["clusters"][0]["url"])
        context = {"title": "Clusters", "model": model, "moment": None, "links": None, "clusters": self._moments.clusters()}
        text = self._frame.templates.render("clusters/clusters.html", context)
        return HTMLResponse(text, headers={"Cache-Control": "no-store"})

    def _clusters_json(self, request: Request) -> Response:
        return Response(page_json(clusters_page(self._moments, viewer_of(request))), media_type="application/json")

    def _answer(self, page: Page, make: Callable[[Page, PageRequest], Response]) -> Callable[[Request], Response]:
        """A route of a page: 304 for a known entity tag, otherwise what `make` returns."""

        def answer(request: Request) -> Response:
            try:
                event_url = self._frame.event_url(request)
                if event_url is not None:
                    return RedirectResponse(event_url, headers={"Cache-Control": "no-store"})
                page_request = self._frame.page_request(request)
                if page.is_of_batch:
                    tag = _entity_tag(page_request)
                    return _tagged(request, tag, lambda: self._kept.page(tag, lambda: _kept(make(page, page_request))))
                found = _kept(make(page, page_request))
                return _tagged(request, f'"{hashlib.sha256(found.body).hexdigest()[:32]}"', lambda: found)
            except GrouplakeError as error:
                return self._frame.error(request, error)

        return answer

    def _json(self, page: Page, page_request: PageRequest) -> Response:
        request, moment, _ = page_request
        model = {**_position(moment), **page.model(moment, request.path_params, request.query_params)}
        return Response(page_json(model), media_type="application/json")

    def _csv(self, page: Page, page_request: PageRequest) -> Response:
        request, moment, _ = page_request
        assert page.csv is not None, "the route exists only for pages with CSV"
        text = table_csv(page.csv(moment, request.path_params, request.query_params))
        return Response(text, media_type="text/csv; charset=utf-8", headers={"Content-Disposition": "attachment"})

    def _html(self, page: Page, page_request: PageRequest) -> Response:
        request, moment, newest = page_request
        model = page.model(moment, request.path_params, request.query_params)
        drawn = page.view(model, moment) if page.view else {}
        context = {"model": model, **drawn, "title": page.title(model), "active": page.name}
        marks = no_marks if page.marks is None else partial(page.marks, model, newest)
        return HTMLResponse(self._frame.page(page.template, page_request, context, marks=marks))


def _redirecting(answer: Callable[[Request], Response]) -> Callable[[Request], Response]:
    """A route that redirects links in which names are encoded in another way, as in those of earlier versions."""

    def redirected(request: Request) -> Response:
        route: BaseRoute = request.scope["route"]
        path = route.url_path_for(redirected.__name__, **request.path_params)
        # a proxy that encodes `~` must not send a browser round in circles
        if unquote(request.url.path) == path:
            return answer(request)
        query = f"?{request.url.query}" if request.url.query else ""
        return RedirectResponse(f"{path}{query}", 308)

    return redirected


def _kept(response: Response) -> RenderedPage:
    return RenderedPage(
        bytes(response.body), {name: response.headers[name] for name in _KEPT_HEADERS if name in response.headers}
    )


def _tagged(request: Request, tag: str, page: Callable[[], RenderedPage]) -> Response:
    """The page, or 304 for a request that names its tag, for which `page` is not called."""
    caching = {"ETag": tag, "Cache-Control": "private, no-cache", "Vary": "Accept-Encoding"}
    if tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=caching)
    found = page()
    headers = {**found.headers, **caching}
    if accepts_gzip(request.headers.get("accept-encoding", "")):
        return Response(found.compressed, headers={**headers, "Content-Encoding": "gzip"})
    return Response(found.body, headers=headers)


def _position(moment: Moment) -> dict[str, object]:
    return {
        "cluster": moment.cluster,
        "batch_id": moment.batch.batch_id,
        "at": moment.at,
        "sampled_at": moment.sampled_at,
        "commits_read_until": moment.commits_read_until,
        "age": None if moment.age is None else moment.age.as_json(),
    }


def _entity_tag(page_request: PageRequest) -> str:
    """Of the batch and the newest one, its age, the request and the groups that its viewer may see, and of this version.

    A page follows from them.
    """
    request, moment, newest = page_request
    groups = viewer_of(request).groups
    seen = None if groups is None else groups.pattern
    age = None if moment.age is None else moment.age.key
    key = repr((request.app.version, moment.at, newest.batch.batch_id, age, request.url.path, request.url.query, seen))
    return f'"{moment.batch.batch_id}-{hashlib.sha256(key.encode(errors="surrogatepass")).hexdigest()[:32]}"'


def page_json(model: Any) -> str:
    """The text of a model."""
    return json.dumps(model, ensure_ascii=False, allow_nan=False, default=_plain)


def _plain(value: object) -> str:
    if isinstance(value, datetime):
        return iso(value)
    raise TypeError(f"no JSON for {type(value).__name__}")
