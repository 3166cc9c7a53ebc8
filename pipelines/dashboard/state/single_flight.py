"""Values that are made once for all threads that ask for them at the same time."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class SingleFlight(Generic[Key, Value]):
    """Loads in progress. A value is not kept after its load, and neither is an error."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loading: dict[Key, Future[Value]] = {}

    def __len__(self) -> int:
        """Number of loads in progress."""
        return len(self._loading)

    def load(self, key: Key, load: Callable[[], Value]) -> Value:
        """Return or raise what `load` does, called by one of the threads that ask for `key` meanwhile."""
        with self._lock:
            shared = self._loading.get(key)
            if shared is None:
                own = self._loading[key] = Future()
        if shared is not None:
            return shared.result()
        try:
            own.set_result(load())
        except BaseException as error:
            own.set_exception(error)
            raise
        finally:
            with self._lock:
                del self._loading[key]
        return own.result()
