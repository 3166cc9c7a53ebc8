"""Outages of the brokers in a query of Spark's own Kafka source.

The source prints nothing that a job shows. It waits for offsets of the log without an end, and a task that reads gives up after
the client's time-out, with which the query fails.
"""

import math
import re
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from coordinator_core.sources.kafka_topic import ANSWERING, WAITING
from pipelines.runtime.errors import GrouplakeError
from pipelines.runtime.progress import Progress

#: A wait for offsets that is longer is an outage.
_REPORT_AFTER_SECONDS = 10
_STOP_MS = "3000"
_GETTING_OFFSETS = "Getting offsets from "
#: Time-outs of Kafka's consumer, of its admin client, and of Spark while it waits for a record.
_TIMED_OUT = re.compile(r"Timeout of \d+ms expired before|Timed out waiting for a node|Cannot fetch record for offset")


def _limit_stop() -> None:
    SparkSession.active().conf.set("spark.sql.streaming.stopTimeout", _STOP_MS)


class QueryOutage:
    """Reports the start and the end of outages, and decides whether a failed query is started again.

    Args:
        limit_seconds: time without an answer after which the run ends; infinite for a job that follows the log.
        limit_stop: limits the time that Spark waits when it stops a query.
    """

    def __init__(
        self,
        progress: Progress,
        limit_seconds: float,
        clock: Callable[[], float] = time.monotonic,
        limit_stop: Callable[[], None] = _limit_stop,
    ) -> None:
        self._progress = progress
        self._limit = limit_seconds
        self._clock = clock
        self._limit_stop = limit_stop
        self._answered_at = clock()
        self._last_batch: object = None
        self._has_run = False
        self._is_reported = False

    def look(self, query: Any) -> None:
        """Look at a running query. Raises GrouplakeError when the limit is over."""
        self._has_run = True
        message, batch = query.status["message"], query.lastProgress
        if message.startswith("Waiting for ") or batch != self._last_batch:
            self._last_batch = batch
            self._answered()
        elif message.startswith(_GETTING_OFFSETS) and self._silence() >= _REPORT_AFTER_SECONDS:
            self._unanswered(f"Spark's Kafka source has got no offsets for {_REPORT_AFTER_SECONDS} s")
        elif not self._is_reported and not message.startswith(_GETTING_OFFSETS):
            # a batch, which may take long
            self._answered_at = self._clock()

    def explains(self, error: Exception) -> bool:
        """Whether a query failed because no broker answered any more. Raises GrouplakeError when the limit is over."""
        reason = _TIMED_OUT.search(str(error))
        if not self._has_run or reason is None:
            return False
        self._last_batch = None
        self._unanswered(reason.string[reason.start() :])
        return True

    def stop(self, query: Any) -> None:
        """Stop a query. One that waits for brokers cannot be interrupted: after some seconds it is left to the end of the JVM."""
        if self._is_reported or query.status["message"].startswith(_GETTING_OFFSETS):
            self._limit_stop()
            with suppress(PySparkException, Py4JError):
                query.stop()
        else:
            query.stop()

    def _silence(self) -> float:
        return self._clock() - self._answered_at

    def _answered(self) -> None:
        if self._is_reported:
            self._progress(f"{ANSWERING}, after {self._silence():.0f} s")
            self._is_reported = False
        self._answered_at = self._clock()

    def _unanswered(self, reason: str) -> None:
        if not self._is_reported:
            bound = "" if self._limit == math.inf else f", up to {self._limit:g} s"
            self._progress(f"{WAITING}{bound}: {reason}")
            self._is_reported = True
        if self._silence() >= self._limit:
            raise GrouplakeError(f"no broker answers: {reason} (waited for {self._limit:g} s)")
