"""A streaming query from its start to its end: signals, workers that are too slow, and errors told in one line."""

import logging
import re
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException

from coordinator_core.log.errors import LogError
from pipelines.errors import GrouplakeError, TablesError
from pipelines.job.stopping import Stopping, requested_by_signals
from pipelines.progress import Progress

_STOP_CHECK_SECONDS = 1

#: What Spark reports of a Python process that took longer than 10 s to import what it needs. Spark has no setting for these 10 s
#: (PythonWorkerFactory.createSimpleWorker), but each attempt leaves more of the files in memory for the next one.
_SLOW_WORKER = "Python worker failed to connect back"
_STARTS = 12


def follow(
    start: Callable[[], Any], progress: Progress, stopping: Stopping | None = None, on_ready: Callable[[], None] | None = None
) -> bool:
    """Starts a query and waits for its end. When `stopping` is told it ends after the batch that is being applied; None: SIGTERM
    and SIGINT tell.

    Where a Python worker was too slow for Spark the query is started again: it goes on where it was.

    Args:
        on_ready: called once, as soon as the query has looked at the log: what is appended from then on it reads with the next
            trigger, and nothing is left to be started.

    Returns:
        whether it ended by itself.

    Raises:
        GrouplakeError: it ended with an error.
    """
    with nullcontext(stopping) if stopping is not None else requested_by_signals() as told_to_stop:
        told_to_stop.then(expect_the_end_of_the_jvm)
        readiness = _Readiness(on_ready)
        for attempt in range(2, _STARTS + 1):
            try:
                return _run(start, progress, told_to_stop, readiness)
            except TablesError as error:
                if _SLOW_WORKER not in str(error):
                    raise
                slow = "a Python worker took longer to start than Spark waits (10 s)"
                progress(f"{slow}: starting another (attempt {attempt} of {_STARTS})")
        return _run(start, progress, told_to_stop, readiness)


class _Readiness:
    """Calls a function once."""

    def __init__(self, on_ready: Callable[[], None] | None) -> None:
        self._on_ready = on_ready

    def look(self, query: Any) -> None:
        """Calls it if the query has finished a batch, or waits for data or for its next trigger."""
        if self._on_ready is not None and (query.lastProgress is not None or query.status["message"].startswith("Waiting for ")):
            on_ready, self._on_ready = self._on_ready, None
            on_ready()


def _run(start: Callable[[], Any], progress: Progress, stopping: Stopping, readiness: _Readiness) -> bool:
    if stopping.is_requested:
        return False
    try:
        query = start()
        while not query.awaitTermination(_STOP_CHECK_SECONDS):
            if stopping.is_requested:
                progress("stopping")
                query.stop()
            else:
                readiness.look(query)
    except (PySparkException, Py4JError, OSError) as error:
        # what was cut short is completed by the next run
        if not stopping.is_requested:
            raise told(error) from error
    return not stopping.is_requested


def with_short_errors(apply: Callable[[Any, int], None]) -> Callable[[Any, int], None]:
    """`apply`, whose errors leave the stack traces of Spark behind.

    Spark searches what `foreachBatch` raises with a pattern whose depth grows with the text: a stream that was stopped in the
    middle of a batch ended in a StackOverflowError of its own.
    """

    def apply_briefly(changed: Any, batch_id: int) -> None:
        try:
            apply(changed, batch_id)
        except (PySparkException, Py4JError) as error:
            raise told(error) from None

    return apply_briefly


def told(error: BaseException) -> GrouplakeError:
    """What a stream's exception says, without the stack traces that Spark wraps around it."""
    text = str(error)
    ours = re.findall(rf"^(?:\w+\.)*(?:{'|'.join(_error_names())}): (.+)$", text, re.MULTILINE)
    if ours:
        return TablesError(ours[0])
    causes = re.findall(r"^(?:\w+\.)*\w*(?:Error|Exception): (.+)$", text, re.MULTILINE)
    return TablesError(f"the stream ended: {causes[-1] if causes else text.strip().splitlines()[0]}")


def _error_names(*roots: type[Exception]) -> list[str]:
    """Names of the errors whose message says it all: what a worker raises comes back as text."""
    found = roots or (LogError, GrouplakeError)
    return [
        name for cls in found for name in (cls.__name__, *(_error_names(*cls.__subclasses__()) if cls.__subclasses__() else ()))
    ]


def expect_the_end_of_the_jvm() -> None:
    """A signal to the whole process group ends the JVM as well. Whoever in this process talks to it would report that."""
    logging.disable(logging.CRITICAL)
    accumulators = getattr(SparkContext._active_spark_context, "_accumulatorServer", None)
    if accumulators is not None:
        # socketserver prints the traceback of a handler whose peer is gone
        accumulators.handle_error = lambda *_: None
