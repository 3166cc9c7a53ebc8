"""`/c/{cluster}/sql` in a browser: a query with its result as a page; for programs the JSON of `sql.routes`."""

from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse
from starlette.concurrency import run_in_threadpool

from pipelines.dashboard.pages.parts.error_page import is_for_browsers
from pipelines.dashboard.pages.sql.query_result import query_view
from pipelines.dashboard.responses import READ
from pipelines.dashboard.server.page_frame import PageFrame
from pipelines.dashboard.sql.query_process import QueryError
from pipelines.dashboard.sql.routes import SqlApi, with_retry
from pipelines.runtime.errors import GrouplakeError


class SqlPage:
    """The routes of queries: one path for browsers and programs, and `.json` for both."""

    def __init__(self, frame: PageFrame, api: SqlApi) -> None:
        self._frame, self._api = frame, api

    def router(self) -> APIRouter:
        """The routes."""
        router = APIRouter(tags=["sql"])
        router.add_api_route("/c/{cluster:name}/sql", self.query, methods=READ)
        router.add_api_route("/c/{cluster:name}/sql.json", self._api.answer, methods=READ, include_in_schema=False)
        return router

    async def query(self, request: Request, cluster: str, q: str = "", as_of: str | None = None) -> Response:
        """Rows of one reading statement over tables and views, at the newest batch or as of an id or time."""
        response = await (self._page if is_for_browsers(request) else self._api.answer)(request, cluster, q, as_of)
        response.headers["Vary"] = "Accept"
        return response

    async def _page(self, request: Request, cluster: str, sql: str, as_of: str | None) -> Response:
        try:
            page_request = await run_in_threadpool(self._frame.page_request, request)
        except GrouplakeError as error:
            return self._frame.error(request, error)
        code, message = self._api.refusal(request, cluster) or (200, "")
        result: dict[str, Any] | None = None
        if sql.strip() and not message:
            try:
                result = await self._api.result(request, cluster, sql, as_of)
            except QueryError as error:
                code, message = error.code, error.message
        context = {"title": "SQL", "active": "sql", "sql": sql, "message": message, **query_view(result)}
        text = await run_in_threadpool(self._frame.page, "sql/sql.html", page_request, context, is_live=False)
        return with_retry(HTMLResponse(text, code, headers={"Cache-Control": "no-store"}))
