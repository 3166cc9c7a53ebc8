"""Reads of one page that run at the same time.

DataFusion plans and runs a query without Python's lock, and most of the time of a page is the planning of its queries.
"""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")

#: Queries that run at a time: the memory of a query is not limited.
WORKERS = min(4, max(2, os.cpu_count() or 1))

_pool = ThreadPoolExecutor(WORKERS, thread_name_prefix="reads")


def start(read: Callable[[], T]) -> Future[T]:
    """Call the function in one of a few threads. It must not start others: it could wait for a thread that waits for it."""
    return _pool.submit(read)


def in_parallel(*reads: Callable[[], T]) -> Sequence[T]:
    """Start the functions, and return their results in the order of the functions. The first error in this order is raised."""
    started = [start(read) for read in reads]
    try:
        return [each.result() for each in started]
    finally:
        for each in started:
            # after an error, what has not begun is of no use
            each.cancel()
