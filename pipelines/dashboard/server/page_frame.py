"""What all pages of a cluster share: the moment of a request, the frame with navigation and time, errors."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from fastapi import Request, Response

from pipelines.dashboard.formatting.times import field_time
from pipelines.dashboard.pages.all_pages import NAVIGATION, SQL_ENTRY
from pipelines.dashboard.pages.parts.error_page import error_page, waiting_page
from pipelines.dashboard.pages.parts.error_texts import error_text
from pipelines.dashboard.pages.parts.job_note import job_note
from pipelines.dashboard.pages.parts.links import Links
from pipelines.dashboard.pages.parts.page import NoSuchPage
from pipelines.dashboard.pages.parts.rendering import Templates
from pipelines.dashboard.pages.parts.time_travel import Marks, no_marks, time_control
from pipelines.dashboard.path_names import FILES
from pipelines.dashboard.responses import error_response
from pipelines.dashboard.security.viewer import viewer_of
from pipelines.dashboard.state.errors import InvalidRequest, NoBatch, NotLoaded, UnknownCluster
from pipelines.dashboard.state.moment import Moment
from pipelines.dashboard.state.moment_store import MomentStore
from pipelines.dashboard.state.visible_state import visible_moment
from pipelines.runtime.errors import GrouplakeError, RemovedState, UsageError
from pipelines.tables.store import timestamp_literal

#: Errors of a request with their code; any other error is one of the server.
_CODES: tuple[tuple[type[GrouplakeError], int], ...] = (
    (UnknownCluster, 404),
    (NoSuchPage, 404),
    (NotLoaded, 503),
    (RemovedState, 410),
    (UsageError, 400),
)

#: The newest progress of the job in this process, oldest line first.
JobLines = Callable[[], Sequence[str]]


def no_job_lines() -> Sequence[str]:
    """No job is in this process."""
    return ()


#: The first batch that has the records until a time.
_SHOWING = "SELECT min(finished_at) AS at FROM batches WHERE COALESCE(log_read_until, finished_at) >= {at}"


class PageRequest(NamedTuple):
    """A request with its moment, and the newest moment of the cluster, to which the controls of a past one lead."""

    request: Request
    moment: Moment
    newest: Moment


class PageFrame:
    """The frame of the pages of all clusters. `has_sql`: the navigation has the page of queries."""

    def __init__(self, moments: MomentStore, job_lines: JobLines, *, has_sql: bool) -> None:
        self.moments = moments
        self.templates = Templates()
        self._job_lines, self._has_sql = job_lines, has_sql

    def page_request(self, request: Request) -> PageRequest:
        """The request with its moment, which has the groups that its viewer may see. Raises the errors of the moment."""
        cluster, as_of = request.path_params["cluster"], request.query_params.get("as_of") or None
        moment = self.moments.moment(cluster, as_of)
        newest = self.moments.moment(cluster) if as_of else moment
        return PageRequest(request, visible_moment(moment, viewer_of(request)), newest)

    def event_url(self, request: Request) -> str | None:
        """The page at the first batch that shows an event, for a request that names the time of one as `event`.

        A batch is complete after the time of its newest record, so `as_of` that time is the batch before it. Raises the errors of
        the moment.
        """
        event = request.query_params.get("event")
        if not event:
            return None
        cluster = request.path_params["cluster"]
        newest = self.moments.moment(cluster)
        try:
            at = datetime.fromisoformat(event)
        except ValueError as error:
            raise InvalidRequest(f"invalid event {event!r}: use the time of an event, such as 2026-03-01T12:00:05Z") from error
        at = at if at.tzinfo else at.replace(tzinfo=UTC)
        found: datetime | None = newest.query(_SHOWING.format(at=timestamp_literal(at)))["at"][0].as_py()
        is_newest = found is None or found >= newest.batch.finished_at
        links = Links(cluster, request.url.path, dict(request.query_params))
        return links.here(event=None, as_of=None if found is None or is_newest else field_time(found))

    def page(
        self,
        template: str,
        page_request: PageRequest,
        context: dict[str, object],
        *,
        is_live: bool = True,
        marks: Marks = no_marks,
    ) -> str:
        """The text of a page. `is_live`: a page of the newest moment follows new batches. `marks` are those of the slider."""
        request, moment, newest = page_request
        links = Links(moment.cluster, request.url.path, dict(request.query_params))
        has_sql = self._has_sql and not viewer_of(request).is_limited
        entries = (*NAVIGATION, SQL_ENTRY) if has_sql else NAVIGATION
        return self.templates.render(
            template,
            {
                **context,
                "moment": moment,
                "links": links,
                "note": job_note(moment),
                "clusters": self.moments.clusters(),
                "navigation": [(name, label, links.to(*path)) for name, label, path in entries],
                "time": time_control(moment, newest, links, marks),
                "events_url": links.to("events", as_of=None, span=None) if moment.is_newest and is_live else None,
            },
        )

    def error(self, request: Request, error: GrouplakeError) -> Response:
        """The answer for an error: JSON for a path of a file, otherwise a page with the way back."""
        code, message = _code(error), error_text(error, viewer_of(request))
        if request.url.path.endswith(FILES):
            return error_response(request, code, message)
        clusters = self.moments.clusters()
        if isinstance(error, NoBatch):
            # a line may name a folder or a host
            lines = () if viewer_of(request).is_limited else self._job_lines()
            return waiting_page(self.templates, clusters, message, request.url.path, lines)
        return error_page(self.templates, clusters, code, message, request.url.path)


def _code(error: GrouplakeError) -> int:
    return next((code for kind, code in _CODES if isinstance(error, kind)), 500)
