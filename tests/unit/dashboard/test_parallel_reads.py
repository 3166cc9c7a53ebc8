"""Reads that run at the same time, and queries of which equal ones run once."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import cast

import pyarrow as pa
import pytest
from patience import PATIENCE_SECONDS

from pipelines.dashboard.state.parallel import in_parallel
from pipelines.dashboard.state.query_cache import QueryCache
from pipelines.query.engine import Snapshot


class SlowSnapshot:
    """A query returns its text once `parties` queries run at the same time."""

    def __init__(self, parties: int) -> None:
        self._barrier = threading.Barrier(parties, timeout=PATIENCE_SECONDS)
        self.asked: list[str] = []

    def query(self, sql: str) -> pa.Table:
        """The text as a row."""
        self.asked.append(sql)
        self._barrier.wait()
        return pa.table({"sql": [sql]})


def test_reads_run_at_the_same_time_and_return_in_their_order() -> None:
    barrier = threading.Barrier(2, timeout=PATIENCE_SECONDS)

    def read(number: int) -> Callable[[], int]:
        return lambda: number if number > 1 else number + 0 * barrier.wait()

    assert in_parallel(read(0), read(1), read(2)) == [0, 1, 2]
    assert in_parallel() == []


def test_the_first_error_is_raised() -> None:
    def fails(text: str) -> Callable[[], None]:
        def fail() -> None:
            raise ValueError(text)

        return fail

    with pytest.raises(ValueError, match="first"):
        in_parallel(lambda: None, fails("first"), fails("second"))


def test_different_queries_run_at_the_same_time() -> None:
    snapshot = SlowSnapshot(2)
    queries = QueryCache(cast(Snapshot, snapshot), 1_000)
    one, two = in_parallel(lambda: queries.query("one"), lambda: queries.query("two"))
    assert (one.to_pylist(), two.to_pylist()) == ([{"sql": "one"}], [{"sql": "two"}])


def test_equal_queries_run_once() -> None:
    snapshot = SlowSnapshot(1)
    queries = QueryCache(cast(Snapshot, snapshot), 1_000)
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(queries.query, ["one"] * 8))
    assert all(each is found[0] for each in found)
    assert snapshot.asked == ["one"]
