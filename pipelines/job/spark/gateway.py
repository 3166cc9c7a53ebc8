"""Launch of the driver's JVM, with its output captured.

Java warns about "incubator modules" that Spark's launcher adds, and log4j about its own initialization; neither warning can be
turned off. The job reports its own progress and errors, so the JVM's output is read and dropped, with three exceptions: marked
lines of Python workers (`pipelines.source.worker_log`) are progress, lines about executors are counted
(`pipelines.job.spark.executor_log`), and if the JVM does not start, the error has the last lines.
With GROUPLAKE_TRACEBACK=1 the whole output is on standard error.
"""

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway

from pipelines.runtime.cache.spark_home import SPARK_HOME
from pipelines.runtime.errors import GrouplakeError
from pipelines.runtime.progress import Progress, print_progress
from pipelines.source.worker_log import MARK

_KEPT_LINES = 50
_STANDARD_ERROR = 2


class JvmError(GrouplakeError):
    """Spark's JVM did not start; the message has its output."""


def launch_jvm(
    settings: Mapping[str, Any],
    home: Path | None,
    inherited: int | None,
    note: Callable[[str], None],
    progress: Progress = print_progress,
) -> None:
    """Start the JVM for the Spark session of this process, from `home` in place of the installed Spark.

    It inherits the descriptor `inherited`. `note` gets lines of its log, `progress` those of Python workers.

    Raises JvmError if the JVM exits during its start.
    """
    conf = SparkConf()
    for name, value in settings.items():
        # as SparkSession.Builder.config writes it
        conf.set(name, str(value).lower() if isinstance(value, bool) else str(value))
    descriptors = () if inherited is None else (inherited,)
    with _spark_home(home):
        if os.environ.get("GROUPLAKE_TRACEBACK"):
            gateway = launch_gateway(conf, {"stdout": _STANDARD_ERROR, "pass_fds": descriptors})  # type: ignore[no-untyped-call]  # not annotated
        else:
            output = _Output(note, progress)
            try:
                gateway = launch_gateway(conf, {"stdout": output.end, "stderr": output.end, "pass_fds": descriptors})  # type: ignore[no-untyped-call]  # not annotated
            except PySparkRuntimeError as error:
                output.close()
                raise JvmError(
                    f"Spark's JVM exited during its start: {output.text() or 'no output'}; "
                    "check [spark] java_options and driver_memory, and that `java` is Java 17 or newer"
                ) from error
            output.close()
    SparkContext._ensure_initialized(gateway=gateway)


@contextmanager
def _spark_home(home: Path | None) -> Iterator[None]:
    """Let PySpark find `home`. Processes that this one starts later find their own Spark again."""
    if home is None:
        yield
        return
    os.environ[SPARK_HOME] = str(home)
    try:
        yield
    finally:
        del os.environ[SPARK_HOME]


class _Output:
    """The last lines written to the pipe `end`. A thread reads them: a full pipe would block the JVM."""

    def __init__(self, note: Callable[[str], None] = lambda _line: None, progress: Progress = print_progress) -> None:
        source, self.end = os.pipe()
        self._note, self._progress = note, progress
        self._lines: deque[str] = deque(maxlen=_KEPT_LINES)
        self._reader = threading.Thread(target=self._read, args=(source,), name="output of Spark's JVM", daemon=True)
        self._reader.start()

    def close(self) -> None:
        """Close this process's end of the pipe, so that the output ends when the JVM exits."""
        os.close(self.end)

    def text(self) -> str:
        """Wait for the exit of the JVM and return the lines, joined."""
        self._reader.join()
        return "; ".join(self._lines)

    def _read(self, source: int) -> None:
        with os.fdopen(source, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if line.startswith(MARK):
                    self._progress(line.removeprefix(MARK).rstrip())
                elif line.strip():
                    self._lines.append(line.strip())
                    self._note(line)
