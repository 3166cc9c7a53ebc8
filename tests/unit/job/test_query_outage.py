"""Outages of the brokers of Spark's Kafka source: a line at the start and the end, restarts, the limit of `available-now`."""

import math
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.errors import PySparkException

from pipelines.job.spark.query_outage import QueryOutage
from pipelines.job.spark.streaming_query import follow
from pipelines.runtime.errors import GrouplakeError, TablesError

GETTING, PROCESSING, WAITING = "Getting offsets from KafkaV2[Assign[t-0]]", "Processing new data", "Waiting for next trigger"
NO_POSITION = "org.apache.kafka.common.errors.TimeoutException: Timeout of 30000ms expired before the position for partition t-0"
NO_NODE = (
    "Caused by: org.apache.kafka.common.errors.TimeoutException: Timed out waiting for a node assignment. Call: describeTopics"
)


class Query:
    """A query with one state a second, that then ends by itself or with an error."""

    def __init__(self, now: list[float], *states: tuple[str, object], error: str | None = None) -> None:
        self._now = now
        self._left = list(states)
        self._error = error
        self.status = {"message": "Initializing sources"}
        self.lastProgress: object = None
        self.is_stopped = False

    def awaitTermination(self, _seconds: int) -> bool:  # noqa: N802 - Spark's name
        self._now[0] += 1
        if self._left:
            self.status["message"], self.lastProgress = self._left.pop(0)
            return False
        if self._error is not None:
            raise PySparkException(self._error)
        return True

    def stop(self) -> None:
        self.is_stopped = True


class Run:
    """Queries that are started in turn."""

    def __init__(self, *queries: Query | str, limit_seconds: float = math.inf, now: list[float]) -> None:
        self.lines: list[str] = []
        self._left: Iterator[Query | str] = iter(queries)
        self.stop_limits = 0
        self.outage = QueryOutage(self.lines.append, limit_seconds, lambda: now[0], self._limit_stop)

    def _limit_stop(self) -> None:
        self.stop_limits += 1

    def start(self) -> Any:
        query = next(self._left)
        if isinstance(query, str):
            raise PySparkException(query)
        return query

    def follow(self) -> bool:
        return follow(self.start, self.lines.append, outage=self.outage)


@pytest.fixture
def now() -> list[float]:
    return [0.0]


def test_a_long_wait_for_offsets(now: list[float]) -> None:
    run = Run(Query(now, (WAITING, 1), *[(GETTING, 1)] * 31, (PROCESSING, 1), (PROCESSING, 1), (WAITING, 2)), now=now)
    assert run.follow()
    assert run.lines == [
        "waiting for the brokers: Spark's Kafka source has got no offsets for 10 s",
        "the brokers answer again, after 34 s",
    ]


def test_long_batches_and_short_waits_are_no_outage(now: list[float]) -> None:
    batch = [*[(GETTING, 1)] * 9, *[(PROCESSING, 1)] * 100]
    run = Run(Query(now, *batch, *batch, (WAITING, 1)), now=now)
    assert run.follow()
    assert run.lines == []


def test_a_failed_read_starts_the_query_again(now: list[float]) -> None:
    reading = Query(now, (WAITING, 1), (PROCESSING, 1), error=NO_POSITION)
    replayed = Query(now, *[(PROCESSING, None)] * 30, error=NO_POSITION)
    run = Run(reading, NO_NODE, replayed, Query(now, (PROCESSING, None), (PROCESSING, 2)), now=now)
    assert run.follow()
    assert [line.split(":")[0] for line in run.lines] == ["waiting for the brokers", "the brokers answer again, after 34 s"]
    assert run.lines[0] == "waiting for the brokers: Timeout of 30000ms expired before the position for partition t-0"


@pytest.mark.parametrize(
    "queries", [[NO_NODE], ["java.io.IOException: no space left"]], ids=["nothing answered at the start", "another error"]
)
def test_other_failures_end_the_run(queries: list[str], now: list[float]) -> None:
    run = Run(*queries, now=now)
    with pytest.raises(TablesError, match=r"no space left|node assignment"):
        run.follow()
    assert run.lines == []


def test_the_limit_while_waiting_for_offsets(now: list[float]) -> None:
    query = Query(now, (WAITING, 1), *[(GETTING, 1)] * 100)
    run = Run(query, limit_seconds=60, now=now)
    with pytest.raises(GrouplakeError, match=r"^no broker answers: .* got no offsets for 10 s \(waited for 60 s\)$"):
        run.follow()
    assert query.is_stopped
    assert run.stop_limits == 1, "Spark would wait for such a query without an end"
    assert now == [61]
    assert run.lines == ["waiting for the brokers, up to 60 s: Spark's Kafka source has got no offsets for 10 s"]


def test_the_limit_of_failed_reads(now: list[float]) -> None:
    queries = [Query(now, *[(PROCESSING, None)] * 30, error=NO_POSITION) for _ in range(4)]
    with pytest.raises(GrouplakeError, match=r"^no broker answers: Timeout of .* \(waited for 60 s\)$"):
        Run(*queries, limit_seconds=60, now=now).follow()
