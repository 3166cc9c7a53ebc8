"""The routes of the server."""

from urllib.parse import unquote

from fastapi import FastAPI, Request, Response
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from pipelines.dashboard.burrow.burrow_routes import BurrowApi
from pipelines.dashboard.live.live_routes import live_router
from pipelines.dashboard.live.streams import Streams
from pipelines.dashboard.options import DashboardOptions
from pipelines.dashboard.pages.parts.error_page import error_page, is_for_browsers
from pipelines.dashboard.pages.parts.error_texts import IN_THE_LOG
from pipelines.dashboard.path_names import MCP_PATH
from pipelines.dashboard.responses import READ, error_response, json_response, metrics_response
from pipelines.dashboard.security.viewer import viewer_of
from pipelines.dashboard.server.page_cache import GZIP_LEVEL
from pipelines.dashboard.server.page_frame import JobLines, PageFrame, no_job_lines
from pipelines.dashboard.server.page_routes import PageRoutes
from pipelines.dashboard.server.sql_page import SqlPage
from pipelines.dashboard.sql.routes import SqlApi
from pipelines.dashboard.state.moment_store import MomentStore
from pipelines.dashboard.state.teams import Teams
from pipelines.metrics.site import Site
from pipelines.runtime.version import version_text

#: Words for a viewer with a limited role at `/metrics`.
_ONLY_UNLIMITED = "metrics have all groups, and your role is limited to some: use a role without a limit"

#: Share of the memory for rendered pages.
_PAGES_SHARE = 8


def make_app(site: Site, options: DashboardOptions, streams: Streams, job_lines: JobLines = no_job_lines) -> FastAPI:
    """The application. `site` has to be started by the caller, and `streams` to be closed before the server ends."""
    app = FastAPI(title="Grouplake", version=version_text(), docs_url=None, redoc_url=None)
    app.include_router(BurrowApi(site, options.sample_seconds).router())
    app.include_router(live_router(streams))
    moments = MomentStore(site, options.memory_bytes, Teams(options.owners))
    frame = PageFrame(moments, job_lines, has_sql=options.sql.is_on)
    app.include_router(SqlPage(frame, SqlApi(options.roots, options.sql, site.age)).router())
    app.include_router(PageRoutes(frame, options.memory_bytes // _PAGES_SHARE).router())
    if options.has_mcp:
        # the extra `mcp` is loaded only where it is used
        from pipelines.dashboard.agents.agent_server import AgentServer
        from pipelines.dashboard.agents.streamable_http import StreamableHttp

        agents = AgentServer(site, moments, options.sql, options.mcp_seconds)
        app.router.routes.append(Route(MCP_PATH, StreamableHttp(agents.protocol), include_in_schema=False))
    app.mount("/static", StaticFiles(packages=[("pipelines.dashboard", "static")]))

    @app.api_route("/health", methods=READ)
    async def health(request: Request) -> Response:
        return json_response(request, "ok")

    @app.api_route("/ready", methods=READ)
    async def ready(request: Request) -> Response:
        reason = site.unready
        code = 200 if reason is None else 503
        clusters = site.description()
        if viewer_of(request).is_limited:
            clusters = {name: {**each, "error": each["error"] and IN_THE_LOG} for name, each in clusters.items()}
        return json_response(request, reason or "ready", code, is_error=reason is not None, clusters=clusters)

    @app.api_route("/ready/loaded", methods=READ)
    async def loaded(request: Request) -> Response:
        # also with old data, whose pages say so: a supervisor must not take them away
        is_loaded = site.is_ready
        return json_response(request, "loaded" if is_loaded else "loading", 200 if is_loaded else 503, is_error=not is_loaded)

    @app.api_route("/metrics", methods=READ)
    async def metrics(request: Request) -> Response:
        if viewer_of(request).is_limited:
            return error_response(request, 403, _ONLY_UNLIMITED)
        return metrics_response(site.metrics(), request)

    @app.exception_handler(HTTPException)
    async def http_error(request: Request, error: HTTPException) -> Response:
        if is_for_browsers(request):
            words = f"no page {unquote(request.url.path)!r}" if error.status_code == 404 else str(error.detail)
            response: Response = error_page(frame.templates, moments.clusters(), error.status_code, words, None)
        else:
            response = error_response(request, error.status_code, str(error.detail))
        response.headers.update(error.headers or {})
        return response

    @app.exception_handler(Exception)
    async def unexpected(request: Request, error: Exception) -> Response:
        # its text may have names that the viewer may not see; uvicorn logs it
        words = f"unexpected {type(error).__name__}: see the log of the server"
        if is_for_browsers(request):
            return error_page(frame.templates, moments.clusters(), 500, words, request.url.path)
        return error_response(request, 500, words)

    app.add_middleware(RawNames)
    app.add_middleware(CompressedPages)
    return app


class RawNames:
    """Leaves names in paths of Burrow's API and of pages percent-encoded, so that a group id may contain a slash."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"].startswith(("/v3/", "/c/")) and scope.get("raw_path"):
            scope = {**scope, "path": scope["raw_path"].decode("latin-1")}
        await self._app(scope, receive, send)


class CompressedPages:
    """Compresses responses, apart from streams of events, and from /metrics, whose body is compressed once per batch."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._compressing = GZipMiddleware(app, minimum_size=1_000, compresslevel=GZIP_LEVEL)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_metrics = scope["type"] == "http" and scope["path"] == "/metrics"
        await (self._app if is_metrics else self._compressing)(scope, receive, send)
