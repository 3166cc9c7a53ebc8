"""Periodic tasks beside the partition loops: the log flusher, the log cleaner, the check for idle connections.

A run that raises is an unexpected error. It is reported (log line, metrics, `/health`), and the task runs again, as in Kafka's
`KafkaScheduler` ("Uncaught exception in scheduled task"). Each failure in a row doubles the wait before the next run.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from coordinator_core.service.runtime.observer import Observer

#: Upper bound of the wait after failures, unless the interval itself is longer.
_LONGEST_BACKOFF_SECONDS = 60.0
_MOST_DOUBLINGS = 20


class BackgroundTasks:
    """The periodic tasks of one event loop, and the error of each task's last run."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self._errors: dict[str, str | None] = {}

    @property
    def errors(self) -> Mapping[str, str | None]:
        """Task name → error of the last run; None if it succeeded, and before the first run."""
        return self._errors

    def repeat(self, name: str, interval_seconds: float, run: Callable[[], Awaitable[None]]) -> asyncio.Task[None]:
        """Await `run` every `interval_seconds`, counted from the end of the previous run, until the task is cancelled."""
        self._errors[name] = None
        return asyncio.create_task(self._repeat(name, interval_seconds, run), name=name)

    async def _repeat(self, name: str, interval_seconds: float, run: Callable[[], Awaitable[None]]) -> None:
        failures = 0
        while True:
            await asyncio.sleep(backoff_seconds(interval_seconds, failures))
            try:
                await run()
            except Exception as error:
                failures += 1
                self._errors[name] = f"{type(error).__name__}: {error}"
                self._observer.bug(f"background task {name}", error)
            else:
                if failures:
                    self._observer.recovered(name, failures)
                failures = 0
                self._errors[name] = None


def backoff_seconds(interval_seconds: float, failures: int) -> float:
    """Return the wait before the next run after this number of failures in a row."""
    longest = max(interval_seconds, _LONGEST_BACKOFF_SECONDS)
    return min(interval_seconds * (1 << min(failures, _MOST_DOUBLINGS)), longest)
