"""`GET /c/{cluster}/sql?q=…`: the rows of a reading statement as JSON."""

from collections.abc import Callable, Mapping

from fastapi import APIRouter, Request, Response

from pipelines.dashboard.responses import READ, error_response, json_response
from pipelines.dashboard.security.viewer import viewer_of
from pipelines.dashboard.sql.query_process import QueryError, QueryProcesses
from pipelines.dashboard.sql.settings import LONGEST_QUERY, SqlSettings
from pipelines.tables.data_age import DataAge


class SqlApi:
    """The route of queries. It answers 403 unless queries are switched on."""

    def __init__(
        self, roots: Mapping[str, str], settings: SqlSettings, age: Callable[[str], DataAge | None] = lambda _: None
    ) -> None:
        """`age` is that of the newest batch of a cluster."""
        self._roots, self._settings, self._age = roots, settings, age
        self._processes = QueryProcesses(settings)

    def router(self) -> APIRouter:
        """The route."""
        router = APIRouter(tags=["sql"])
        router.add_api_route("/c/{cluster:name}/sql", self.query, methods=READ)
        return router

    async def query(self, request: Request, cluster: str, q: str = "", as_of: str | None = None) -> Response:
        """Rows of one reading statement over tables and views, at the newest batch or as of an id or time."""
        refusal = self._refusal(request, cluster, q)
        if refusal:
            return error_response(request, *refusal)
        try:
            found = await self._processes.run(self._roots[cluster], q, as_of or None)
        except QueryError as error:
            response = error_response(request, error.code, error.message)
            if error.code == 503:
                response.headers["Retry-After"] = "1"
            return response
        age = None if as_of else self._age(cluster)
        return json_response(request, "query answered", **found, old=None if age is None else age.text)

    def _refusal(self, request: Request, cluster: str, sql: str) -> tuple[int, str] | None:
        """Code and message of a request that is refused before a process starts."""
        if not self._settings.is_on:
            return 403, "queries are switched off: dashboard.sql = true switches them on"
        if viewer_of(request).is_limited:
            return 403, "queries read all groups, and your role is limited to some: use a role without a limit"
        # a link or an image on another site could otherwise start queries in the browser of a viewer
        if request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return 403, "queries from pages of other sites are refused"
        if cluster not in self._roots:
            return 404, "cluster not found"
        if not sql.strip():
            return 400, "the parameter q has no query, such as q=SELECT count(*) FROM groups"
        if len(sql) > LONGEST_QUERY:
            return 400, f"the query has {len(sql):,} characters: use {LONGEST_QUERY:,} or fewer"
        return None
