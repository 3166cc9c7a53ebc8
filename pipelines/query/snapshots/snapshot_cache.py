"""The newest batch of each cluster in memory, replaced by one background thread when a batch is complete."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from pipelines.query.snapshots.loading import SnapshotLoader
from pipelines.query.snapshots.memory_snapshot import MemorySnapshot
from pipelines.runtime.errors import GrouplakeError
from pipelines.runtime.progress import Progress
from pipelines.tables.store import Batch

T = TypeVar("T")


@dataclass(frozen=True)
class ClusterState(Generic[T]):
    """A value made from the newest snapshot that was loaded, and the reason why there is no newer one."""

    #: None before the first snapshot.
    value: T | None = None
    error: str | None = None


class SnapshotCache(Generic[T]):
    """Keeps a value per cluster, made from the snapshot of its newest batch.

    Readers take one reference with `state` and use it for the whole request: a newer batch replaces the reference and never
    changes what it refers to.
    """

    def __init__(
        self,
        loaders: Mapping[str, SnapshotLoader],
        make: Callable[[MemorySnapshot], T],
        poll_seconds: float,
        progress: Progress,
        on_change: Callable[[Mapping[str, ClusterState[T]]], object] = lambda _: None,
        on_look: Callable[[], object] = lambda: None,
    ) -> None:
        """The background thread calls `on_change` after the states changed, and `on_look` after each look for a batch."""
        self._loaders = dict(loaders)
        self._make = make
        self._poll_seconds = poll_seconds
        self._progress = progress
        self._on_change = on_change
        self._on_look = on_look
        self._batches: dict[str, Batch] = {}
        self._states: dict[str, ClusterState[T]] = {name: ClusterState() for name in loaders}
        self._refreshing = threading.Lock()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="snapshots", daemon=True)

    @property
    def clusters(self) -> Sequence[str]:
        """Names of the clusters."""
        return tuple(self._loaders)

    def state(self, cluster: str) -> ClusterState[T]:
        """The state of a cluster. Raises KeyError for an unknown one."""
        return self._states[cluster]

    def states(self) -> Mapping[str, ClusterState[T]]:
        """The states of all clusters at one moment."""
        return self._states

    def start(self) -> None:
        """Start the thread, which loads the first snapshots."""
        self._thread.start()

    def close(self) -> None:
        """Stop the thread, after the load that it is in."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join()

    def refresh(self) -> None:
        """Load what is new, in the calling thread, one at a time. An error keeps the earlier snapshot and is reported once."""
        with self._refreshing:
            self._refresh()

    def _refresh(self) -> None:
        states = {name: self._refreshed(name) for name in self._loaders}
        if any(states[name] is not self._states[name] for name in states):
            self._states = states
            try:
                self._on_change(states)
            except Exception as error:  # a thread that ends would leave snapshots that look current
                self._progress(f"after a new batch: {_one_line(error)}")
        try:
            self._on_look()
        except Exception as error:  # as above
            self._progress(f"after a look for a batch: {_one_line(error)}")

    def _run(self) -> None:
        while not self._stopped.is_set():
            self.refresh()
            self._stopped.wait(self._poll_seconds)

    def _refreshed(self, name: str) -> ClusterState[T]:
        old = self._states[name]
        try:
            batch = self._loaders[name].last_batch()
            if batch is None:
                raise GrouplakeError("no complete batch yet")
            is_known = batch == self._batches.get(name)
            if is_known and old.error is None:
                return old
            value = old.value if is_known else self._make(self._loaders[name].load(batch))
        except Exception as error:  # of delta-rs and DataFusion; a thread that ends would leave a snapshot that looks current
            message = " ".join(str(error).split()) or type(error).__name__
            if message == old.error:
                return old
            self._progress(f"cluster {name}: {message}")
            return ClusterState(old.value, message)
        self._batches[name] = batch
        if old.error is not None:
            self._progress(f"cluster {name}: batch {batch.batch_id} is loaded")
        return ClusterState(value)


def _one_line(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"
