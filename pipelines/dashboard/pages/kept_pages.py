"""Rendered pages, kept by their entity tag: a page of one batch is drawn once for all viewers of the same groups."""

import gzip
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pipelines.dashboard.shared_loads import SharedLoads

#: A higher level takes more time than the bytes take on a network.
GZIP_LEVEL = 4


@dataclass(frozen=True)
class KeptPage:
    """A body, also compressed, and the headers of its response."""

    body: bytes
    headers: Mapping[str, str]
    compressed: bytes = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "compressed", gzip.compress(self.body, GZIP_LEVEL, mtime=0))

    @property
    def nbytes(self) -> int:
        """Bytes of both bodies."""
        return len(self.body) + len(self.compressed)


class KeptPages:
    """For any number of threads, up to a number of bytes: the least recently used pages are removed first."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, KeptPage] = OrderedDict()
        self._bytes = 0
        self._loads: SharedLoads[str, KeptPage] = SharedLoads()

    def page(self, tag: str, make: Callable[[], KeptPage]) -> KeptPage:
        """The page with an entity tag. Raises the errors of `make`, which is called once for concurrent requests."""
        return self._used(tag) or self._loads.load(tag, lambda: self._used(tag) or self._made(tag, make))

    def _used(self, tag: str) -> KeptPage | None:
        with self._lock:
            if tag in self._kept:
                self._kept.move_to_end(tag)
            return self._kept.get(tag)

    def _made(self, tag: str, make: Callable[[], KeptPage]) -> KeptPage:
        page = make()
        with self._lock:
            self._kept[tag] = page
            self._bytes += page.nbytes
            while self._bytes > self._max_bytes:
                _, removed = self._kept.popitem(last=False)
                self._bytes -= removed.nbytes
        return page
