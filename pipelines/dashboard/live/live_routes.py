"""The route of server-sent events."""

import re
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Depends, Header, HTTPException, Query, Request
from fastapi.sse import EventSourceResponse, ServerSentEvent

from pipelines.dashboard.live.batch_events import AgeEvent
from pipelines.dashboard.live.streams import Stream, Streams, TooManyStreams
from pipelines.dashboard.security.viewer import LOCAL_VIEWER, viewer_of

#: Time after which a browser connects again.
_RETRY_MS = 2_000
_BATCH_ID = re.compile(r"[0-9]{1,18}")


def live_router(streams: Streams) -> APIRouter:
    """`/c/{cluster}/events`: an event per new batch, with its id. FastAPI sends a comment after 15 s without an event."""
    router = APIRouter(tags=["pages"])

    async def open_stream(
        request: Request,
        cluster: str,
        after: Annotated[str | None, Query(description="batch that the page shows")] = None,
        last_event_id: Annotated[str | None, Header(description="batch that the page has seen")] = None,
    ) -> AsyncIterator[Stream]:
        shown, seen = _batch_id("after", after), _batch_id("Last-Event-ID", last_event_id)
        viewer = viewer_of(request)
        user = None if viewer is LOCAL_VIEWER else viewer.name
        try:
            stream = streams.open(cluster, shown if seen is None else seen, user)
        except KeyError as error:
            raise HTTPException(404, "cluster not found") from error
        except TooManyStreams as error:
            raise HTTPException(503, str(error), {"Retry-After": "10"}) from error
        try:
            yield stream
        finally:
            streams.release(stream)

    @router.get("/c/{cluster:name}/events", response_class=EventSourceResponse)
    async def events(request: Request, stream: Annotated[Stream, Depends(open_stream)]) -> AsyncIterator[ServerSentEvent]:
        """Event `batch` per new batch: its id, the time of its lag, and the groups that changed, null if they are many.

        Event `age` when the newest batch becomes older than expected, and for each further minute.
        """
        viewer = viewer_of(request)
        yield ServerSentEvent(retry=_RETRY_MS)
        async for event in stream:
            name = "age" if isinstance(event, AgeEvent) else "batch"
            yield ServerSentEvent(data=event.data(viewer.may_see), event=name, id=str(event.batch_id))

    return router


def _batch_id(name: str, text: str | None) -> int | None:
    """The batch id in a value of a request; None without one. Raises HTTPException for another text."""
    if not text:
        return None
    if not _BATCH_ID.fullmatch(text):
        raise HTTPException(400, f"invalid {name} {text[:40]!r}: use a batch id of at most 18 digits")
    return int(text)
