"""Past states, loaded once and kept up to a number of bytes: the least recently used ones are removed first."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, Protocol, TypeVar

from pipelines.dashboard.moments.errors import NotLoaded

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


class KeptStates(Generic[State]):
    """For any number of threads. Concurrent requests for one state share one load; an error is not kept."""

    def __init__(self, max_bytes: int, max_loads: int = MAX_LOADS) -> None:
        self._max_bytes = max_bytes
        self._max_loads = max_loads
        self._lock = threading.Lock()
        self._kept: OrderedDict[Key, State] = OrderedDict()
        self._loading: dict[Key, Future[State]] = {}

    def state(self, key: Key, load: Callable[[], State]) -> State:
        """The state of a batch. Raises NotLoaded if too many others are being loaded, and the errors of `load`."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                # results of its queries may have grown
                self._remove_oldest()
                return self._kept[key]
            shared = self._loading.get(key)
            if shared is None:
                if len(self._loading) >= self._max_loads:
                    raise NotLoaded(f"{self._max_loads} past states are being loaded: try again in a few seconds")
                own = self._loading[key] = Future()
        if shared is not None:
            return shared.result()
        return self._load(key, own, load)

    def _load(self, key: Key, future: Future[State], load: Callable[[], State]) -> State:
        try:
            state = load()
        except BaseException as error:
            with self._lock:
                del self._loading[key]
            future.set_exception(error)
            raise
        with self._lock:
            del self._loading[key]
            self._kept[key] = state
            self._remove_oldest()
        future.set_result(state)
        return state

    def _remove_oldest(self) -> None:
        """Remove states above the limit, never the last used one: a request needs it."""
        while len(self._kept) > 1 and sum(state.nbytes for state in self._kept.values()) > self._max_bytes:
            self._kept.popitem(last=False)
