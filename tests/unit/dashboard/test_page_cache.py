"""Rendered pages: one drawing for many requests, a limit of memory, both bodies."""

import gzip
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from patience import PATIENCE_SECONDS

from pipelines.dashboard.server.page_cache import PageCache, RenderedPage

THREADS = 10
TYPE = {"content-type": "text/html"}


def page(text: str) -> RenderedPage:
    return RenderedPage(text.encode(), TYPE)


def never() -> RenderedPage:
    raise AssertionError("the page is kept")


def test_both_bodies_are_the_same_text() -> None:
    made = page("lag " * 1_000)
    assert gzip.decompress(made.compressed) == made.body
    assert made.nbytes == len(made.body) + len(made.compressed)
    assert len(made.compressed) < 100
    assert made.compressed == page("lag " * 1_000).compressed, "without the time"


def test_concurrent_requests_share_one_drawing() -> None:
    kept, drawn, release = PageCache(10_000), [], threading.Event()

    def draw() -> RenderedPage:
        drawn.append(1)
        assert release.wait(PATIENCE_SECONDS)
        return page("billing")

    with ThreadPoolExecutor(THREADS) as threads:
        requests = [threads.submit(kept.page, "7-a", draw) for _ in range(THREADS)]
        release.set()
        assert len({id(request.result()) for request in requests}) == 1
    assert drawn == [1]
    assert kept.page("7-a", never).body == b"billing"


def test_an_error_is_not_kept() -> None:
    kept = PageCache(10_000)
    with pytest.raises(AssertionError):
        kept.page("7-a", never)
    assert kept.page("7-a", lambda: page("billing")).body == b"billing"


def test_the_least_recently_used_pages_are_removed() -> None:
    size = page("0").nbytes
    kept = PageCache(2 * size)
    for tag in "01":
        kept.page(tag, partial(page, tag))
    kept.page("0", never)
    kept.page("2", lambda: page("2"))
    assert kept.page("0", never).body == b"0"
    with pytest.raises(AssertionError):
        kept.page("1", never)


def test_a_page_above_the_limit_is_not_kept() -> None:
    kept = PageCache(10)
    assert kept.page("7-a", lambda: page("billing")).body == b"billing"
    with pytest.raises(AssertionError):
        kept.page("7-a", never)
