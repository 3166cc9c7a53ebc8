"""The server of the Model Context Protocol: it registers tools, resources and prompts, and holds each call within its bounds."""

import logging
from collections.abc import Callable
from typing import Annotated, Any, Literal, TypeVar

import anyio
from anyio import to_thread
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ResourceNotFoundError, ToolError
from mcp_types import ToolAnnotations
from pydantic import Field

from pipelines.dashboard.agents import answers, cluster_tools, group_tools
from pipelines.dashboard.agents.asked_moment import AskedMoment, position_of
from pipelines.dashboard.agents.bounds import MOST_CALLS, MOST_ROWS, NAMES_ARE, ROWS, within_bytes
from pipelines.dashboard.agents.documents import rules_document, table_document, tables_document
from pipelines.dashboard.agents.incident_prompts import PROMPTS, IncidentPrompt, prompt_text
from pipelines.dashboard.pages.parts.error_texts import error_text
from pipelines.dashboard.security.viewer import LOCAL_VIEWER, Viewer, viewer_of
from pipelines.dashboard.sql.query_process import QueryError, QueryProcesses
from pipelines.dashboard.sql.settings import LONGEST_QUERY, SqlSettings
from pipelines.dashboard.state.moment_store import MomentStore
from pipelines.metrics.site import Site
from pipelines.runtime.errors import GrouplakeError
from pipelines.runtime.version import version_text

_INSTRUCTIONS = (
    "Kafka consumer groups: state, lag, causes and history, read from tables that a job writes. Nothing here changes a cluster, "
    "and nothing asks Kafka. Each answer says its time (`at`), the batch, and the age of the data. Begin with `groups`, go on "
    "with `group` and `timeline`. Every tool takes `at`: an ISO 8601 time or a batch id, and then answers as of that time. "
    f"Names are {NAMES_ARE}"
)
_READS = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)

Cluster = Annotated[str | None, Field(description="Name of the cluster; needed only if there are several")]
At = Annotated[str | None, Field(description="ISO 8601 time (UTC without zone) or batch id; without it: the newest batch")]
Limit = Annotated[int, Field(ge=1, le=MOST_ROWS, description="Rows of each list")]
GroupName = Annotated[str, Field(description="Exact name of the group")]
AnyGroup = Annotated[str | None, Field(description="Exact name of a group; without it: all groups")]
Span = Annotated[str, Field(description="Time before `at`, such as 90m, 6h or 7d")]
Order = Literal["status", "age", "lag", "group", "members", "last_commit", "last_rebalance", "slope", "loss"]

_T = TypeVar("_T")
Asked = Context[Any, Any]


class AgentServer:
    """The tools over the snapshots of a site. `sql` is registered only if queries are switched on."""

    def __init__(self, site: Site, moments: MomentStore, sql: SqlSettings, most_seconds: float) -> None:
        self._site, self._moments, self._most_seconds = site, moments, most_seconds
        self._limiter = anyio.CapacityLimiter(MOST_CALLS)
        self._queries = QueryProcesses(sql)
        self.protocol = _protocol()
        tools: tuple[Callable[..., Any], ...] = (
            *(self.groups, self.group, self.changes, self.timeline, self.owners, self.expiring, self.transactions),
            *((self.sql,) if sql.is_on else ()),
        )
        for tool in tools:
            self.protocol.add_tool(tool, annotations=_READS, structured_output=True)
        self._add_documents()
        for prompt in PROMPTS:
            self._add_prompt(prompt)

    async def groups(
        self,
        asked: Asked,
        sort: Annotated[Order, Field(description="status: the worst first; slope: growth of lag; loss: nearest loss")] = "status",
        status: Annotated[str | None, Field(description="OK, WARN, ERR, STOP, STALL, REWIND, UNKNOWN")] = None,
        topic: str | None = None,
        search: Annotated[str | None, Field(description="Part of the name of the group")] = None,
        after: Annotated[str | None, Field(description="`next` of the answer before; not for slope and loss")] = None,
        limit: Limit = ROWS,
        at: At = None,
        cluster: Cluster = None,
    ) -> answers.GroupsAnswer:
        """Groups with state, status, cause, lag in records and seconds, slope, and time until records are lost."""
        filters = {name: value for name, value in (("status", status), ("topic", topic), ("q", search)) if value}
        return await self._answer(asked, cluster, at, lambda p: group_tools.groups(p, sort, filters, after, limit))

    async def group(
        self, asked: Asked, group: GroupName, limit: Limit = ROWS, at: At = None, cluster: Cluster = None
    ) -> answers.OneGroupAnswer:
        """One group: incidents with cause, since, owner and next step; members and what they own; lag of each partition."""
        return await self._answer(asked, cluster, at, lambda p: group_tools.group(p, group, limit))

    async def timeline(
        self, asked: Asked, group: GroupName, span: Span = "24h", limit: Limit = ROWS, at: At = None, cluster: Cluster = None
    ) -> answers.TimelineAnswer:
        """What happened to a group until `at`: rebalances with members and cost, resets, expiry, losses, alerts."""
        return await self._answer(asked, cluster, at, lambda p: group_tools.timeline(p, group, span, limit))

    async def changes(
        self,
        asked: Asked,
        since: Annotated[str | None, Field(description="Earlier time or batch id; without it: a day before `at`")] = None,
        group: AnyGroup = None,
        limit: Limit = ROWS,
        at: At = None,
        cluster: Cluster = None,
    ) -> answers.ChangesAnswer:
        """What changed between two times: groups that appeared or vanished, rebalances, resets, progress."""

        def changed(position: AskedMoment) -> answers.ChangesAnswer:
            earlier = position_of(self._moments, LOCAL_VIEWER, position.moment.cluster, since).moment.at if since else None
            return cluster_tools.changes(position, earlier, group, limit)

        return await self._answer(asked, cluster, at, changed)

    async def owners(
        self,
        asked: Asked,
        topic: str,
        partition: Annotated[int, Field(ge=0)],
        group: AnyGroup = None,
        span: Span = "6h",
        limit: Limit = ROWS,
        at: At = None,
        cluster: Cluster = None,
    ) -> answers.OwnersAnswer:
        """Which member owned a partition when, for each group that reads it."""
        return await self._answer(asked, cluster, at, lambda p: cluster_tools.owners(p, topic, partition, group, span, limit))

    async def expiring(
        self,
        asked: Asked,
        hours: Annotated[float, Field(gt=0, le=100_000, description="How far to look ahead of `at`")] = 24.0,
        group: AnyGroup = None,
        limit: Limit = ROWS,
        at: At = None,
        cluster: Cluster = None,
    ) -> answers.ExpiringAnswer:
        """Committed offsets that the broker removes next, if nothing changes."""
        return await self._answer(asked, cluster, at, lambda p: cluster_tools.expiring(p, hours, group, limit))

    async def transactions(
        self, asked: Asked, group: AnyGroup = None, limit: Limit = ROWS, at: At = None, cluster: Cluster = None
    ) -> answers.TransactionsAnswer:
        """Open transactions, and the groups and partitions that wait for them."""
        return await self._answer(asked, cluster, at, lambda p: cluster_tools.transactions(p, group, limit))

    async def sql(
        self,
        asked: Asked,
        query: Annotated[str, Field(max_length=LONGEST_QUERY, description="One SELECT; grouplake://tables has the tables")],
        limit: Limit = ROWS,
        at: At = None,
        cluster: Cluster = None,
    ) -> answers.SqlAnswer:
        """Rows of one reading statement over the tables and views, in a process with limits of time and memory."""
        if len(query.strip()) == 0:
            raise ToolError("the query is empty: use one such as SELECT count(*) FROM groups")
        if _viewer(asked).is_limited:
            raise ToolError("queries read all groups, and your role is limited to some: use a role without a limit")
        position = await self._answer(asked, cluster, at, lambda p: p)
        batch = str(position.moment.batch.batch_id) if at else None
        try:
            found = await self._queries.run(self._site.roots[position.moment.cluster], query, batch)
        except QueryError as error:
            raise ToolError(error.message) from error
        rows, note = found["rows"], found["note"]
        header = {**position.header(), "batch_id": found["batch_id"]}
        if len(rows) > limit:
            note = f"only {limit} rows of at least {len(rows)}: raise `limit` (at most {MOST_ROWS}) or aggregate"
        try:
            return within_bytes(answers.SqlAnswer(**header, columns=found["columns"], rows=rows[:limit], cut=note), "rows")
        except GrouplakeError as error:
            raise ToolError(str(error)) from error

    async def _answer(self, asked: Asked, cluster: str | None, at: str | None, read: Callable[[AskedMoment], _T]) -> _T:
        """What `read` makes of the position of a call, in a thread.

        Raises:
            ToolError: any error of ours, in the words that the viewer may read, or the call took too long.
        """
        viewer = _viewer(asked)

        def answered() -> _T:
            return read(position_of(self._moments, viewer, cluster, at))

        try:
            with anyio.fail_after(self._most_seconds):
                return await to_thread.run_sync(answered, abandon_on_cancel=True, limiter=self._limiter)
        except TimeoutError:
            raise ToolError(
                f"the answer took more than {self._most_seconds:g} s (dashboard.mcp_seconds): filter, or shorten the span"
            ) from None
        except GrouplakeError as error:
            raise ToolError(error_text(error, viewer)) from error

    def _add_documents(self) -> None:
        """Resources. They are of the product, the same for every viewer."""

        def table(name: str) -> str:
            try:
                return table_document(name)
            except GrouplakeError as error:
                raise ResourceNotFoundError(str(error)) from error

        self.protocol.resource("grouplake://tables", title="Tables and views")(tables_document)
        self.protocol.resource("grouplake://tables/{name}", title="Columns of a table, or the text of a view")(table)
        self.protocol.resource("grouplake://rules", title="Rules of statuses")(rules_document)

    def _add_prompt(self, prompt: IncidentPrompt) -> None:
        def text(group: str, at: str | None = None) -> str:
            return prompt_text(prompt, group, at)

        self.protocol.prompt(prompt.name, title=prompt.title, description=prompt.title)(text)


def _viewer(asked: Asked) -> Viewer:
    """Who asks: the viewer that the page's authentication has set, or the local one of a pipe."""
    request = asked.request_context.request
    return LOCAL_VIEWER if request is None else viewer_of(request)


def _protocol() -> MCPServer[Any]:
    """The library's server. It would give the root logger a handler, which is not its own, unless there is one."""
    root, there = logging.getLogger(), logging.NullHandler()
    root.addHandler(there)
    try:
        return MCPServer("grouplake", version=version_text(), instructions=_INSTRUCTIONS, subscriptions=False)
    finally:
        root.removeHandler(there)
