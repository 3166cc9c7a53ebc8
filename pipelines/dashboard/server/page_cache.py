"""Rendered pages, kept by their entity tag: a page of one batch is drawn once for all viewers of the same groups."""

import gzip
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from cachetools import LRUCache

from pipelines.dashboard.state.single_flight import SingleFlight

#: A higher level takes more time than the bytes take on a network.
GZIP_LEVEL = 4


@dataclass(frozen=True)
class RenderedPage:
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


class PageCache:
    """For any number of threads, up to a number of bytes: the least recently used pages are removed first."""

    def __init__(self, max_bytes: int) -> None:
        self._lock = threading.Lock()
        self._pages: LRUCache[str, RenderedPage] = LRUCache(max_bytes, lambda page: page.nbytes)
        self._loads: SingleFlight[str, RenderedPage] = SingleFlight()

    def page(self, tag: str, make: Callable[[], RenderedPage]) -> RenderedPage:
        """The page with an entity tag. Raises the errors of `make`, which is called once for concurrent requests."""
        return self._used(tag) or self._loads.load(tag, lambda: self._used(tag) or self._made(tag, make))

    def _used(self, tag: str) -> RenderedPage | None:
        with self._lock:
            return self._pages.get(tag)

    def _made(self, tag: str, make: Callable[[], RenderedPage]) -> RenderedPage:
        page = make()
        with self._lock:
            if page.nbytes <= self._pages.maxsize:
                self._pages[tag] = page
        return page
