"""A streaming query from start to end: signals, restarts after slow Python workers, one-line errors."""

import logging
import re
import subprocess
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark import SparkContext
from pyspark.errors import PySparkException

from coordinator_core.log.errors import LogError
from pipelines.batch.partition_notices import OTHER_PARTITIONS
from pipelines.job.spark.executor_findings import ENVIRONMENT_REMEDY
from pipelines.job.spark.query_outage import QueryOutage
from pipelines.runtime.errors import GrouplakeError, TablesError
from pipelines.runtime.progress import Progress
from pipelines.runtime.stop_request import StopRequest, stop_on_signals
from pipelines.tables.object_stores import reason_of

_STOP_CHECK_SECONDS = 1
#: A killed JVM is gone by then. One that lives has another reason for a lost connection, or for another error.
_JVM_END_SECONDS = 5
_ERROR_SECONDS = 1

#: Spark's exit code after an OutOfMemoryError in a task (SparkExitCode.OOM).
_OUT_OF_MEMORY = 52

#: Spark's message when a Python process takes longer than 10 s for its imports. The limit has no setting
#: (PythonWorkerFactory.createSimpleWorker), but each attempt leaves more of the files in the page cache for the next one.
_SLOW_WORKER = "Python worker failed to connect back"
_STARTS = 12

#: Message of py4j in the root logger.
_PY4J_LOST_CONNECTION = "Exception while sending command."

_MISSING_PACKAGE = re.compile(r"No module named '(?:pipelines|coordinator_core)[\w.]*'")


def follow(
    start: Callable[[], Any],
    progress: Progress,
    stop_request: StopRequest | None = None,
    on_ready: Callable[[], None] | None = None,
    every_second: Callable[[], None] = lambda: None,
    outage: QueryOutage | None = None,
) -> bool:
    """Start a query and wait for its end. After a stop request it ends with the current batch.

    If a Python worker was too slow for Spark, in an outage, or if the topic has more partitions than the query reads, the query
    is restarted and continues at its last batch.

    Args:
        stop_request: the source of stop requests; None for SIGTERM and SIGINT.
        on_ready: called once, when the query has read the end of the log for the first time. Everything is started then, and the
            next trigger reads records that are appended later.
        every_second: called about once a second while the query runs, between checks for a stop request.
        outage: notices outages of the brokers, for a source that does not outlast them itself.

    Returns:
        whether it ended without a stop request.

    Raises:
        GrouplakeError: the query failed.
    """
    with nullcontext(stop_request) if stop_request is not None else stop_on_signals() as stop:
        stop.on_request(expect_the_end_of_the_jvm)
        _silence_accumulators()
        _silence_lost_connections()
        readiness = _Readiness(on_ready)
        attempt = 1
        while True:
            try:
                return _run(start, progress, stop, readiness, every_second, outage)
            except TablesError as error:
                if outage is not None and outage.explains(error):
                    continue
                if OTHER_PARTITIONS.search(str(error)):
                    progress(f"restarting the query: {error}")
                    continue
                attempt += 1
                if _SLOW_WORKER not in str(error) or attempt > _STARTS:
                    raise
                slow = "a Python worker took longer than 10 s, Spark's limit, to start"
                progress(f"{slow}: restarting the query (attempt {attempt} of {_STARTS})")


class _Readiness:
    """Calls `on_ready` once, when the query is ready."""

    def __init__(self, on_ready: Callable[[], None] | None) -> None:
        self._on_ready = on_ready

    def look(self, query: Any) -> None:
        """Call `on_ready` if the query has finished a batch, or waits for data or its next trigger."""
        if self._on_ready is not None and (query.lastProgress is not None or query.status["message"].startswith("Waiting for ")):
            on_ready, self._on_ready = self._on_ready, None
            on_ready()


def _run(
    start: Callable[[], Any],
    progress: Progress,
    stop: StopRequest,
    readiness: _Readiness,
    every_second: Callable[[], None],
    outage: QueryOutage | None,
) -> bool:
    if stop.is_requested:
        return False
    end = outage.stop if outage is not None else _stop
    try:
        query = start()
        while not query.awaitTermination(_STOP_CHECK_SECONDS):
            if stop.is_requested:
                progress("stopping")
                end(query)
                break
            readiness.look(query)
            try:
                if outage is not None:
                    outage.look(query)
                every_second()
            except GrouplakeError:
                end(query)
                raise
    except (PySparkException, Py4JError, OSError) as error:
        # the next run completes an interrupted batch
        if not stop.is_requested:
            ended = _end_of_jvm(error)
            if ended is None or not stop.explains_the_end_of_a_child():
                raise ended or short_error(error) from error
    return not stop.is_requested


def _end_of_jvm(error: Exception) -> GrouplakeError | None:
    """The error whose reason is that the JVM has ended; None if it lives."""
    process = getattr(SparkContext._gateway, "proc", None)
    if process is None:
        return None
    try:
        code = process.wait(_JVM_END_SECONDS if isinstance(error, (Py4JNetworkError, OSError)) else _ERROR_SECONDS)
    except subprocess.TimeoutExpired:
        return None
    if code == _OUT_OF_MEMORY:
        return GrouplakeError(
            "Spark's JVM ran out of memory; the next run continues after the last batch. Raise spark.driver_memory, or lower "
            "job.bulk_rows or job.max_records_per_batch"
        )
    if code >= 0:
        return GrouplakeError(f"Spark's JVM ended with exit code {code}; the next run continues after the last batch")
    return GrouplakeError(
        f"Spark's JVM was killed by signal {-code}; the next run continues after the last batch. If the system was short of "
        "memory, lower spark.driver_memory, or give the job more memory"
    )


def _stop(query: Any) -> None:
    query.stop()


def with_short_errors(apply: Callable[[Any, int], None]) -> Callable[[Any, int], None]:
    """Wrap `apply` so that its errors have one line instead of Spark's stack traces.

    Spark matches the text of an error from `foreachBatch` with a regular expression whose recursion depth grows with the text:
    with a long text, as after a stop within a batch, the query ends with a StackOverflowError instead.
    """

    def apply_briefly(changed: Any, batch_id: int) -> None:
        try:
            apply(changed, batch_id)
        except (PySparkException, Py4JError) as error:
            raise short_error(error) from None
        except OSError as error:
            raise TablesError(f"cannot write the tables: {reason_of(error)}") from None
        except Exception:
            raise
        except BaseException as error:
            # such as a panic of delta-rs: py4j's thread would end without an answer, for which the query would wait without end
            raise TablesError(f"the batch failed: {type(error).__name__}: {error}") from error

    return apply_briefly


def short_error(error: BaseException) -> GrouplakeError:
    """The cause of a query's exception in one line, without Spark's stack traces."""
    text = str(error)
    if missing := _MISSING_PACKAGE.search(text):
        # all executors of the start were checked
        return TablesError(
            f"an executor that joined the cluster later has another environment ({missing[0]}): {ENVIRONMENT_REMEDY}"
        )
    ours = re.findall(rf"^(?:\w+\.)*(?:{'|'.join(_error_names())}): (.+)$", text, re.MULTILINE)
    if ours:
        return TablesError(ours[0])
    causes = re.findall(r"^(?:Caused by: |: )?(?:\w+\.)*\w*(?:Error|Exception): (.+)$", text, re.MULTILINE)
    return TablesError(f"the streaming query failed: {causes[-1] if causes else text.strip().splitlines()[0]}")


def _error_names(*roots: type[Exception]) -> list[str]:
    """Names of our errors, whose message is enough. An error of a Python worker arrives as text."""
    found = roots or (LogError, GrouplakeError)
    return [
        name for cls in found for name in (cls.__name__, *(_error_names(*cls.__subclasses__()) if cls.__subclasses__() else ()))
    ]


def expect_the_end_of_the_jvm() -> None:
    """Silence py4j and PySpark: a signal to the process group also ends the JVM, and they would report lost connections."""
    logging.disable(logging.CRITICAL)
    _silence_accumulators()


def _silence_lost_connections() -> None:
    """Print no tracebacks of py4j when the JVM has ended: the error of the query has the reason."""
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_is_no_lost_connection)


def _is_no_lost_connection(record: logging.LogRecord) -> bool:
    return record.msg != _PY4J_LOST_CONNECTION


def _silence_accumulators() -> None:
    """Print no traceback when the JVM, the peer of PySpark's server of accumulators, has closed its connection."""
    accumulators = getattr(SparkContext._active_spark_context, "_accumulatorServer", None)
    if accumulators is not None:
        accumulators.handle_error = lambda *_: None
