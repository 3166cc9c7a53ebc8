"""Open streams of events: fed by the thread that loads snapshots, read in the event loop of the server."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Iterable, Mapping

from pipelines.dashboard.live.batch_events import BatchEvent, BatchEvents
from pipelines.errors import GrouplakeError
from pipelines.snapshots.memory_snapshot import MemorySnapshot


class TooManyStreams(GrouplakeError):
    """All streams that the server may have are open."""


class Stream:
    """The events of one cluster for one reader. Belongs to the event loop that created it."""

    def __init__(self, events: BatchEvents, seen: int | None) -> None:
        self._events = events
        self._seen = seen
        self._loop = asyncio.get_running_loop()
        self._wake = asyncio.Event()
        self._is_closed = False

    async def __aiter__(self) -> AsyncIterator[BatchEvent]:
        while not self._is_closed:
            self._wake.clear()
            event = self._events.since(self._seen)
            if event is None:
                await self._wake.wait()
            else:
                self._seen = event.batch_id
                yield event

    def wake(self) -> None:
        """Look for new events. Any thread may call it."""
        # a loop that has ended has no readers
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._wake.set)

    def close(self) -> None:
        """End the iteration after the event that is being read."""
        self._is_closed = True
        self.wake()


class Streams:
    """Streams of all clusters, at most `max_streams` at a time."""

    def __init__(self, clusters: Iterable[str], max_streams: int) -> None:
        self._events = {name: BatchEvents() for name in clusters}
        self._max_streams = max_streams
        self._lock = threading.Lock()
        self._open: set[Stream] = set()
        self._is_closed = False

    def publish(self, snapshots: Mapping[str, MemorySnapshot]) -> None:
        """Add the events of new batches. Called by one thread."""
        if any([self._events[name].add(snapshot) for name, snapshot in snapshots.items()]):
            with self._lock:
                streams = tuple(self._open)
            for stream in streams:
                stream.wake()

    def open(self, cluster: str, seen: int | None) -> Stream:
        """A stream for a reader that has seen a batch; None: that begins with the next batch.

        Raises:
            KeyError: no such cluster.
            TooManyStreams: no stream is free, or the server ends.
        """
        events = self._events[cluster]
        with self._lock:
            if self._is_closed:
                raise TooManyStreams("the server is shutting down")
            if len(self._open) >= self._max_streams:
                raise TooManyStreams(f"{self._max_streams} streams of events are open (dashboard.max_streams): try again later")
            stream = Stream(events, events.newest if seen is None else seen)
            self._open.add(stream)
            return stream

    def release(self, stream: Stream) -> None:
        """Forget a stream whose reader has gone."""
        with self._lock:
            self._open.discard(stream)

    def close(self) -> None:
        """End all streams, and open no more."""
        with self._lock:
            self._is_closed = True
            streams = tuple(self._open)
        for stream in streams:
            stream.close()

    def __len__(self) -> int:
        return len(self._open)
