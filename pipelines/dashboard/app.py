"""The routes of the server."""

from html import escape

from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Receive, Scope, Send

from pipelines.dashboard.burrow_routes import BurrowApi
from pipelines.dashboard.options import DashboardOptions
from pipelines.dashboard.responses import READ, error_response, json_response, metrics_response
from pipelines.metrics.listen_address import is_loopback
from pipelines.metrics.site import Site
from pipelines.version import version_text

#: The page loads nothing and is not shown inside of other pages.
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
_LINKS = {
    "/metrics": "metrics for Prometheus",
    "/v3/kafka": "Burrow's HTTP API",
    "/health": "whether the server runs",
    "/ready": "whether every cluster is loaded, with batch and times",
    "/openapi.json": "description of the routes",
}


def make_app(site: Site, options: DashboardOptions) -> FastAPI:
    """The application. `site` has to be started by the caller."""
    app = FastAPI(title="Grouplake", version=version_text(), docs_url=None, redoc_url=None)
    app.include_router(BurrowApi(site, options.sample_seconds).router())

    @app.api_route("/", methods=READ, include_in_schema=False)
    async def index() -> Response:
        return HTMLResponse(_index(site), headers=_HEADERS)

    @app.api_route("/health", methods=READ)
    async def health(request: Request) -> Response:
        return json_response(request, "ok")

    @app.api_route("/ready", methods=READ)
    async def ready(request: Request) -> Response:
        is_ready = site.is_ready
        message = "ready" if is_ready else "a cluster is not loaded yet"
        return json_response(request, message, 200 if is_ready else 503, is_error=not is_ready, clusters=site.description())

    @app.api_route("/metrics", methods=READ)
    async def metrics(request: Request) -> Response:
        return metrics_response(site.metrics(), request)

    @app.exception_handler(HTTPException)
    async def http_error(request: Request, error: HTTPException) -> Response:
        response = error_response(request, error.status_code, str(error.detail))
        response.headers.update(error.headers or {})
        return response

    @app.exception_handler(Exception)
    async def unexpected(request: Request, error: Exception) -> Response:
        return error_response(request, 500, f"{type(error).__name__}: {' '.join(str(error).split())}")

    app.add_middleware(RawNames)
    if not options.allow_remote:
        app.add_middleware(LocalHosts)
    return app


class RawNames:
    """Leaves names in the paths of Burrow's API percent-encoded, so that a group id may contain a slash."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"].startswith("/v3/") and scope.get("raw_path"):
            scope = {**scope, "path": scope["raw_path"].decode("latin-1")}
        await self._app(scope, receive, send)


class LocalHosts:
    """Refuses requests to other host names: a page on the web could otherwise reach the server by a name of its own."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            request = Request(scope, receive)
            host = request.headers.get("host", "")
            name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
            if not is_loopback(name):
                response = error_response(
                    request, 421, f"host {name!r} is not a loopback name: set dashboard.allow_remote = true to serve it"
                )
                await response(scope, receive, send)
                return
        await self._app(scope, receive, send)


def _index(site: Site) -> str:
    clusters = "".join(
        f"<tr><td>{escape(name)}</td><td>{_cell(each['batch_id'])}</td><td>{_cell(each['finished_at'])}</td>"
        f"<td>{_cell(each['sampled_at'])}</td><td>{_cell(each['error'])}</td></tr>"
        for name, each in site.description().items()
    )
    links = "".join(f'<li><a href="{path}">{path}</a>: {escape(text)}</li>' for path, text in _LINKS.items())
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Grouplake</title></head><body><h1>Grouplake</h1>'
        "<table><caption>Clusters</caption><thead><tr><th>cluster</th><th>batch</th><th>complete at</th><th>sampled at</th>"
        f"<th>error</th></tr></thead><tbody>{clusters}</tbody></table><ul>{links}</ul></body></html>"
    )


def _cell(value: object) -> str:
    return "–" if value is None else escape(str(value))
