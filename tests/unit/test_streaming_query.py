"""Queries that Spark could not give a worker in time."""

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.errors import PySparkException

from pipelines.errors import TablesError
from pipelines.streaming_query import follow

SLOW = "org.apache.spark.SparkException: Python worker failed to connect back."


class Query:
    """A query that ends by an error, or by itself."""

    def __init__(self, error: str | None) -> None:
        self._error = error

    def awaitTermination(self, _seconds: int) -> bool:  # noqa: N802
        if self._error is not None:
            raise PySparkException(self._error)
        return True


def queries(*errors: str | None) -> Callable[..., Any]:
    left = [Query(error) for error in errors]
    return lambda: left.pop(0)


def test_a_query_whose_worker_was_too_slow_goes_on() -> None:
    said: list[str] = []
    assert follow(queries(SLOW, SLOW, None), said.append)
    assert len(said) == 2
    assert "longer to start than Spark waits" in said[0]


def test_a_machine_that_never_starts_a_worker_in_time_ends_the_run() -> None:
    with pytest.raises(TablesError, match="failed to connect back"):
        follow(queries(SLOW, SLOW, SLOW, None), lambda _line: None)


def test_other_errors_end_the_run_at_once() -> None:
    with pytest.raises(TablesError, match="the stream ended: no space left"):
        follow(queries("java.io.IOException: no space left", None), lambda _line: None)


def test_a_query_that_cannot_be_started_is_told_in_one_line() -> None:
    def start() -> None:
        raise PySparkException("java.lang.IllegalStateException: no such source\n\tat a.b.c")

    with pytest.raises(TablesError, match=r"^the stream ended: no such source$"):
        follow(start, lambda _line: None)
