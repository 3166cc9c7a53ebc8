"""`GET /c/{cluster}/sql?q=…`: the rows of a reading statement as JSON; the page is that of the server."""

from collections.abc import Callable, Mapping
from typing import Any

from fastapi import Request, Response

from pipelines.dashboard.responses import error_response, json_response
from pipelines.dashboard.security.viewer import viewer_of
from pipelines.dashboard.sql.query_process import QueryError, QueryProcesses
from pipelines.dashboard.sql.settings import LONGEST_QUERY, SqlSettings
from pipelines.tables.data_age import DataAge


class SqlApi:
    """Answers queries; 403 unless they are switched on."""

    def __init__(
        self, roots: Mapping[str, str], settings: SqlSettings, age: Callable[[str], DataAge | None] = lambda _: None
    ) -> None:
        """`age` is that of the newest batch of a cluster."""
        self._roots, self._settings, self._age = roots, settings, age
        self._processes = QueryProcesses(settings)

    async def answer(self, request: Request, cluster: str, q: str = "", as_of: str | None = None) -> Response:
        """Rows of one reading statement over tables and views, at the newest batch or as of an id or time."""
        try:
            found = await self.result(request, cluster, q, as_of)
        except QueryError as error:
            return with_retry(error_response(request, error.code, error.message))
        return json_response(request, "query answered", **found)

    async def result(self, request: Request, cluster: str, sql: str, as_of: str | None) -> dict[str, Any]:
        """Batch, columns, rows, note, and the age of old data. Raises QueryError."""
        refusal = self.refusal(request, cluster) or _refused_text(sql)
        if refusal:
            raise QueryError(*refusal)
        found = await self._processes.run(self._roots[cluster], sql, as_of or None)
        age = None if as_of else self._age(cluster)
        return {**found, "old": None if age is None else age.text}

    def refusal(self, request: Request, cluster: str) -> tuple[int, str] | None:
        """Code and message of a request that may not query; None if it may."""
        if not self._settings.is_on:
            return 403, "queries are switched off: dashboard.sql = true switches them on"
        if viewer_of(request).is_limited:
            return 403, "queries read all groups, and your role is limited to some: use a role without a limit"
        # a link or an image on another site could otherwise start queries in the browser of a viewer
        if request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return 403, "queries from pages of other sites are refused"
        if cluster not in self._roots:
            return 404, "cluster not found"
        return None


def _refused_text(sql: str) -> tuple[int, str] | None:
    """Code and message of a text that is refused before a process starts."""
    if not sql.strip():
        return 400, "the parameter q has no query, such as q=SELECT count(*) FROM groups"
    if len(sql) > LONGEST_QUERY:
        return 400, f"the query has {len(sql):,} characters: use {LONGEST_QUERY:,} or fewer"
    return None


def with_retry(response: Response) -> Response:
    """The response; of a server whose processes are all in use, with the time after which to try again."""
    if response.status_code == 503:
        response.headers["Retry-After"] = "1"
    return response
