"""Queries for which Spark could not start a worker in time."""

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.errors import PySparkException

from pipelines.batch.partition_notices import expect_partitions
from pipelines.job.spark.streaming_query import follow, short_error
from pipelines.runtime.errors import TablesError

SLOW = "org.apache.spark.SparkException: Python worker failed to connect back."


class Query:
    """A query that ends with an error, or by itself."""

    def __init__(self, error: str | None) -> None:
        self._error = error

    def awaitTermination(self, _seconds: int) -> bool:  # noqa: N802
        if self._error is not None:
            raise PySparkException(self._error)
        return True


class FollowingQuery:
    """A query whose state changes with each look at it, and that ends by itself after the last state."""

    def __init__(self, *states: tuple[str, object]) -> None:
        self._left = list(states)
        self.status: dict[str, str] = {}
        self.lastProgress: object = None

    def awaitTermination(self, _seconds: int) -> bool:  # noqa: N802
        if not self._left:
            return True
        self.status["message"], self.lastProgress = self._left.pop(0)
        return False


def readiness(*queries_in_turn: "FollowingQuery | Query") -> list[int]:
    """The number of looks left each time that the query was reported as ready."""
    started: list[FollowingQuery | Query] = []
    left = list(queries_in_turn)

    def start() -> "FollowingQuery | Query":
        started.append(left.pop(0))
        return started[-1]

    reported: list[int] = []
    follow(start, lambda _line: None, on_ready=lambda: reported.append(len(started[-1]._left)))  # type: ignore[union-attr]  # the queries have it
    return reported


def queries(*errors: str | None) -> Callable[..., Any]:
    left = [Query(error) for error in errors]
    return lambda: left.pop(0)


def test_a_query_whose_worker_was_too_slow_continues() -> None:
    lines: list[str] = []
    assert follow(queries(SLOW, SLOW, None), lines.append)
    assert len(lines) == 2
    assert lines[0] == "a Python worker took longer than 10 s, Spark's limit, to start: restarting the query (attempt 2 of 12)"


def test_a_query_whose_topic_has_more_partitions_continues() -> None:
    lines: list[str] = []
    with pytest.raises(TablesError) as raised:
        expect_partitions("offsets", 3, 7)
    expect_partitions("offsets", 7, 7)
    assert follow(queries(f"pipelines.runtime.errors.TablesError: {raised.value}", None), lines.append)
    assert lines == ["restarting the query: offsets has 7 partitions now, and the stream reads 3"]


@pytest.mark.long
def test_a_machine_that_never_starts_a_worker_in_time_ends_the_run() -> None:
    lines: list[str] = []
    with pytest.raises(TablesError, match="failed to connect back"):
        follow(queries(*[SLOW] * 12, None), lines.append)
    assert lines[-1].endswith("restarting the query (attempt 12 of 12)")


def test_other_errors_end_the_run_at_once() -> None:
    with pytest.raises(TablesError, match="the streaming query failed: no space left"):
        follow(queries("java.io.IOException: no space left", None), lambda _line: None)


def test_a_query_that_cannot_be_started_is_reported_in_one_line() -> None:
    def start() -> None:
        raise PySparkException("java.lang.IllegalStateException: no such source\n\tat a.b.c")

    with pytest.raises(TablesError, match=r"^the streaming query failed: no such source$"):
        follow(start, lambda _line: None)


def test_a_query_is_ready_once_when_it_waits_for_data() -> None:
    starting = ("Initializing sources", None), ("Getting offsets from PythonMicroBatchStream", None)
    waiting = ("Waiting for data to arrive", None)
    assert readiness(FollowingQuery(*starting, waiting, ("Processing new data", None), waiting)) == [2]


def test_a_query_that_never_waits_is_ready_after_its_first_batch() -> None:
    assert readiness(FollowingQuery(("Processing new data", None), ("Processing new data", {"batchId": 0}))) == [0]


def test_a_query_that_is_started_again_is_ready_after_that() -> None:
    waiting = FollowingQuery(("Waiting for next trigger", None))
    assert readiness(Query(SLOW), waiting) == [0]


def test_a_query_that_ends_first_was_never_ready() -> None:
    assert readiness(FollowingQuery(("Initializing sources", None))) == []


def test_an_executor_without_our_packages_is_reported_with_the_remedy() -> None:
    text = (
        "org.apache.spark.SparkException: \nError from python worker:\n"
        "  /usr/bin/python3: Error while finding module specification for 'pipelines.source.worker_daemon' "
        "(ModuleNotFoundError: No module named 'pipelines')\nPYTHONPATH was:\n  /opt/spark"
    )
    error = short_error(PySparkException(text))
    assert str(error).startswith(
        "an executor that joined the cluster later has another environment (No module named 'pipelines'): "
    )
