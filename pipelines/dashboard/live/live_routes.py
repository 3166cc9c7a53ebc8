"""The route of server-sent events."""

from collections.abc import AsyncIterator
from typing import Annotated
from urllib.parse import unquote

from fastapi import APIRouter, Depends, Header, HTTPException, Query, Request
from fastapi.sse import EventSourceResponse, ServerSentEvent

from pipelines.dashboard.live.streams import Stream, Streams, TooManyStreams
from pipelines.dashboard.security.viewer import viewer_of

#: Time after which a browser connects again.
_RETRY_MS = 2_000


def live_router(streams: Streams) -> APIRouter:
    """`/c/{cluster}/events`: an event per new batch, with its id. FastAPI sends a comment after 15 s without an event."""
    router = APIRouter(tags=["pages"])

    async def open_stream(
        cluster: str,
        after: Annotated[int | None, Query(description="batch that the page shows")] = None,
        last_event_id: Annotated[str | None, Header(description="batch that the page has seen")] = None,
    ) -> AsyncIterator[Stream]:
        seen = int(last_event_id) if last_event_id and last_event_id.isascii() and last_event_id.isdigit() else after
        try:
            stream = streams.open(unquote(cluster), seen)
        except KeyError as error:
            raise HTTPException(404, "cluster not found") from error
        except TooManyStreams as error:
            raise HTTPException(503, str(error), {"Retry-After": "10"}) from error
        try:
            yield stream
        finally:
            streams.release(stream)

    @router.get("/c/{cluster}/events", response_class=EventSourceResponse)
    async def events(request: Request, stream: Annotated[Stream, Depends(open_stream)]) -> AsyncIterator[ServerSentEvent]:
        """One event per new batch: its id, the time that its lag is of, and the groups that changed, null if they are many."""
        viewer = viewer_of(request)
        yield ServerSentEvent(retry=_RETRY_MS)
        async for event in stream:
            yield ServerSentEvent(data=event.data(viewer.may_see), event="batch", id=str(event.batch_id))

    return router
