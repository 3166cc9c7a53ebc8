"""Past states, loaded once and kept up to a number of bytes: the least recently used ones are removed first."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from pipelines.dashboard.state.errors import NotLoaded
from pipelines.dashboard.state.single_flight import SingleFlight

#: Cluster and batch id.
Key = tuple[str, int]

#: Loads that may run at a time. Each takes up to a second of one core and reads the groups of a cluster.
MAX_LOADS = 4


class InMemory(Protocol):
    """A value of a known size."""

    @property
    def nbytes(self) -> int:
        """Bytes of its rows."""
        ...


State = TypeVar("State", bound=InMemory)


class StateCache(Generic[State]):
    """For any number of threads. Concurrent requests for one state share one load; an error is not kept."""

    def __init__(self, max_bytes: int, max_loads: int = MAX_LOADS) -> None:
        self._max_bytes = max_bytes
        self._max_loads = max_loads
        self._lock = threading.Lock()
        # the last used one last; no cache with a limit, because states grow after they were added
        self._states: OrderedDict[Key, State] = OrderedDict()
        self._loads: SingleFlight[Key, State] = SingleFlight()

    def state(self, key: Key, load: Callable[[], State]) -> State:
        """The state of a batch. Raises NotLoaded if too many others are being loaded, and the errors of `load`."""
        kept = self._used(key)
        return self._loads.load(key, lambda: self._loaded(key, load)) if kept is None else kept

    def _used(self, key: Key) -> State | None:
        with self._lock:
            found = self._states.get(key)
            if found is not None:
                self._states.move_to_end(key)
                # results of its queries may have grown
                self._remove_oldest()
            return found

    def _loaded(self, key: Key, load: Callable[[], State]) -> State:
        kept = self._used(key)
        if kept is not None:
            return kept
        if len(self._loads) > self._max_loads:
            raise NotLoaded(f"{self._max_loads} past states are being loaded: try again in a few seconds")
        state = load()
        with self._lock:
            self._states[key] = state
            self._remove_oldest()
        return state

    def _remove_oldest(self) -> None:
        """Remove states above the limit, never the last used one: a request needs it."""
        while len(self._states) > 1 and sum(state.nbytes for state in self._states.values()) > self._max_bytes:
            self._states.popitem(last=False)
