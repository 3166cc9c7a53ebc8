"""A streaming query from its start to its end: signals, workers that are too slow, and errors told in one line."""

import logging
import re
import signal
import threading
from collections.abc import Callable
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException

from coordinator_core.log.errors import LogError
from pipelines.errors import GrouplakeError, TablesError
from pipelines.progress import Progress

_SIGNAL_CHECK_SECONDS = 1

#: What Spark says of a Python process that the machine was too busy to start, and how often the stream is started all the same.
_SLOW_WORKER = "Python worker failed to connect back"
_STARTS = 3


def follow(start: Callable[[], Any], progress: Progress) -> bool:
    """Starts a query and waits for its end; SIGTERM and SIGINT end it after the batch that is being applied.

    Where a Python worker was too slow for Spark the query is started again: it goes on where it was.

    Returns:
        whether it ended by itself.

    Raises:
        GrouplakeError: it ended with an error.
    """
    for _ in range(_STARTS - 1):
        try:
            return _await(_started(start), progress)
        except TablesError as error:
            if _SLOW_WORKER not in str(error):
                raise
            progress("a Python worker took longer to start than Spark waits (10 s): going on with another")
    return _await(_started(start), progress)


def _started(start: Callable[[], Any]) -> Any:
    try:
        return start()
    except PySparkException as error:
        raise told(error) from error


def _await(query: Any, progress: Progress) -> bool:
    stopping = threading.Event()

    def stop(_signal: int, _frame: object) -> None:
        stopping.set()
        expect_the_end_of_the_jvm()

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        while not query.awaitTermination(_SIGNAL_CHECK_SECONDS):
            if stopping.is_set():
                progress("stopping")
                query.stop()
    except (PySparkException, Py4JError, OSError) as error:
        # what was cut short is completed by the next run
        if not stopping.is_set():
            raise told(error) from error
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return not stopping.is_set()


def told_briefly(apply: Callable[[Any, int], None]) -> Callable[[Any, int], None]:
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
