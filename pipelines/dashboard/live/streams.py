"""Open streams of events: fed by the thread that loads snapshots, read in the event loop of the server."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Iterable, Mapping

from pipelines.dashboard.live.batch_events import AgeEvent, BatchEvent, BatchEvents, SeenAge
from pipelines.query.snapshots.memory_snapshot import MemorySnapshot
from pipelines.runtime.errors import GrouplakeError
from pipelines.tables.data_age import DataAge


class TooManyStreams(GrouplakeError):
    """All streams that the server, or one user, may have are open."""


class Stream:
    """The events of one cluster for one reader. Belongs to the event loop that created it."""

    def __init__(self, events: BatchEvents, seen: int | None, user: str | None) -> None:
        self.user = user
        self._events = events
        self._seen = seen
        #: A page that opens a stream may have been drawn before the data became old.
        self._seen_age: SeenAge = None
        self._loop = asyncio.get_running_loop()
        self._wake = asyncio.Event()
        self._is_closed = False

    async def __aiter__(self) -> AsyncIterator[BatchEvent | AgeEvent]:
        while not self._is_closed:
            self._wake.clear()
            age_key = self._events.age_key
            event = self._events.since(self._seen) or self._events.age_since(self._seen_age)
            if event is None:
                await self._wake.wait()
            else:
                # a reader loads the page again after any event, so it has seen both
                self._seen, self._seen_age = event.batch_id, age_key
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
    """Streams of all clusters: at most `max_streams` at a time, and `max_user_streams` of one user."""

    def __init__(self, clusters: Iterable[str], max_streams: int, max_user_streams: int) -> None:
        self._events = {name: BatchEvents() for name in clusters}
        self._max_streams = max_streams
        self._max_user_streams = max_user_streams
        self._lock = threading.Lock()
        self._open: set[Stream] = set()
        self._is_closed = False

    def publish(self, snapshots: Mapping[str, MemorySnapshot]) -> None:
        """Add the events of new batches. Called by one thread at a time."""
        if any([self._events[name].add(snapshot) for name, snapshot in snapshots.items()]):
            self._wake()

    def publish_ages(self, ages: Mapping[str, DataAge]) -> None:
        """Replace the ages of the newest batches. Called by one thread at a time, as `publish`."""
        for name, age in ages.items():
            self._events[name].set_age(age)
        self._wake()

    def _wake(self) -> None:
        with self._lock:
            streams = tuple(self._open)
        for stream in streams:
            stream.wake()

    def open(self, cluster: str, seen: int | None, user: str | None = None) -> Stream:
        """A stream for a reader that has seen a batch; None: that begins with the next batch.

        `user` is the name of its user; None without authentication, where only the limit of all streams counts.

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
            if user is not None and sum(each.user == user for each in self._open) >= self._max_user_streams:
                raise TooManyStreams(
                    f"{self._max_user_streams} streams of events of this user are open (dashboard.max_user_streams): close a page"
                )
            stream = Stream(events, events.newest if seen is None else seen, user)
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
