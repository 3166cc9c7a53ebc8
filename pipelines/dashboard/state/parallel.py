"""Reads of one page that run at the same time.

DataFusion plans and runs a query without Python's lock, and most of the time of a page is the planning of its queries.
"""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")

#: Queries that run at a time: the memory of a query is not limited.
WORKERS = min(4, max(2, os.cpu_count() or 1))

_pool = ThreadPoolExecutor(WORKERS, thread_name_prefix="reads")


def in_parallel(*reads: Callable[[], T]) -> Sequence[T]:
    """Call the functions in a few threads, and return their results in the order of the functions.

    The first error in this order is raised. A function must not call this one: it could wait for a thread that waits for it.
    """
    started = [_pool.submit(read) for read in reads]
    try:
        return [each.result() for each in started]
    finally:
        for each in started:
            # after an error, what has not begun is of no use
            each.cancel()
