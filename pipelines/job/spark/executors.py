"""Checks of a cluster before a stream starts: its master answers, executors start, and each has what the tasks need.

Without these checks Spark retries: a task whose Python has no `grouplake` fails after minutes with a stack trace, and an executor
that cannot start is started again and again. The probe of an executor is a program that its JVM starts with `RDD.pipe`, not a
Python function: Spark could not run one there, because the daemon of its Python workers is a module of ours.
"""

import json
import os
import re
import shutil
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark import SparkContext

from pipelines.job.spark import executor_probe
from pipelines.job.spark.executor_findings import DriverEnvironment, ExecutorReport, first_problem, parse_report
from pipelines.job.spark.executor_log import ExecutorLog
from pipelines.runtime.errors import GrouplakeError, UsageError
from pipelines.runtime.progress import Progress

PYTHON = "PYSPARK_PYTHON"

_CONNECT_SECONDS = 5.0
_POLL_SECONDS = 0.2
#: Time without a further executor after which all of them have started, if the log does not announce them.
_SETTLED_SECONDS = 2.0
#: Compilation of the functions that read logs is part of the first probe of a machine.
_PROBE_SECONDS = 300
#: A master that runs starts another executor within seconds.
_LOST_SECONDS = 30

#: $1 is the Python, $2 the program, $3 its argument. Like Spark's workers it finds Spark's Python packages below SPARK_HOME.
_SHELL = r"""
cat > /dev/null
report() { printf '\n%s{"host": "%s", "error": "%s"}\n' "$MARK" "$(uname -n)" "$1"; }
command -v "$1" > /dev/null 2>&1 || { report "$1 does not exist"; exit 0; }
for archive in "$SPARK_HOME"/python/lib/*.zip; do PYTHONPATH="$archive:$PYTHONPATH"; done
export PYTHONPATH
"$1" -c "$2" "$3" || report "$1 failed with exit code $?"
"""


def is_cluster(master: str) -> bool:
    """True unless the tasks run in the driver's JVM."""
    return re.match(r"local(\[|$)", master) is None


def expect_master(master: str) -> None:
    """Check that a standalone master answers: Spark would try for a minute. Other masters are not checked.

    Raises:
        UsageError: no master of the list answers.
    """
    if not master.startswith("spark://"):
        return
    reasons = []
    for address in master.removeprefix("spark://").split(","):
        host, _, port = address.rpartition(":")
        try:
            socket.create_connection((host, int(port)), _CONNECT_SECONDS).close()
            return
        except (OSError, ValueError) as error:
            reasons.append(f"{address}: {error}")
    raise UsageError(f"no Spark master answers at {master} ({'; '.join(reasons)}): check [spark] master")


def choose_python() -> str:
    """Set the Python of the executors to this one, unless PYSPARK_PYTHON names another; return it.

    Raises:
        UsageError: the driver cannot start this Python. Spark plans reads with it in the driver too.
    """
    python = os.environ.setdefault(PYTHON, sys.executable)
    if shutil.which(python) is None:
        link = f"ln -s {sys.prefix} {Path(python).parts[0]}" if not os.path.isabs(python) and "/" in python else "install it"
        raise UsageError(
            f"{PYTHON}={python} does not exist in {os.getcwd()}: Spark starts it in the driver as well as in the executors; "
            f"unpack the archive of the executors there too, or: {link}"
        )
    return python


def expect_usable_executors(
    context: SparkContext, files: Mapping[str, bool], wait_seconds: int, progress: Progress, log: ExecutorLog
) -> None:
    """Wait for executors, and check that each of them has this environment and the `files`.

    Args:
        files: local paths, and whether the executors write to them.
        wait_seconds: limit for the first executor.

    Raises:
        UsageError: an executor lacks something.
        GrouplakeError: no executor started, or all of them were lost.
    """
    progress("waiting for executors")
    command = ("sh", "-c", f"MARK='{executor_probe.MARK}'{_SHELL}", "grouplake-probe", os.environ[PYTHON])
    probe = (*command, Path(executor_probe.__file__).read_text(encoding="utf-8"), json.dumps(dict(files)))
    # without a job a cluster with dynamic allocation starts no executor
    demand = context._jsc.parallelize(_java_list(context, ("",)), 1).pipe("true").collectAsync()
    _wait_for_executors(context, wait_seconds, log)
    executors = _executors(context)
    progress(f"checking {len(executors)} executors")
    _result(context, demand, log)
    lines = _result(context, _started_on_each(context, executors, probe), log)
    reports = [parse_report(line) or ExecutorReport("unknown host", error="no report") for line in lines]
    problem = first_problem(reports, DriverEnvironment.current())
    if problem is not None:
        raise UsageError(problem)


def _started_on_each(context: SparkContext, executors: Sequence[tuple[str, str]], command: Sequence[str]) -> Any:
    """Start a command on each of these executors, given as (host, id); return the JVM's future of the lines of each."""
    jvm, java = context._jvm, context._jsc
    assert jvm is not None
    scala = jvm.scala.jdk.javaapi.CollectionConverters.asScala
    located = []
    for host, number in executors:
        # Spark's notation for a task that should run on one executor, as for cached partitions
        place = scala(_java_list(context, [f"executor_{host}_{number}"])).toSeq()
        located.append(jvm.scala.Tuple2(number, place))
    tag = jvm.scala.reflect.ClassTag.apply(jvm.java.lang.Class.forName("java.lang.String"))
    tasks = java.sc().makeRDD(scala(_java_list(context, located)).toSeq(), tag).toJavaRDD()
    return tasks.pipe(_java_list(context, command)).glom().collectAsync()


def _java_list(context: SparkContext, values: Sequence[Any]) -> Any:
    assert context._jvm is not None
    made = context._jvm.java.util.ArrayList()
    for value in values:
        made.add(value)
    return made


def _result(context: SparkContext, future: Any, log: ExecutorLog) -> Any:
    """The result of a future of the JVM.

    Raises:
        GrouplakeError: it failed, it takes too long, or the cluster is gone. Spark would wait for another executor without end.
    """
    assert context._jvm is not None
    begun = seen = time.monotonic()
    try:
        while not future.isDone():
            now = time.monotonic()
            _expect_running(context, log)
            seen = now if _executors(context) else seen
            if now - seen >= _LOST_SECONDS:
                raise GrouplakeError(
                    f"all executors were lost during their check, and none started within {_LOST_SECONDS} s: see whether the "
                    "master and the workers run, then restart the job"
                )
            if now - begun >= _PROBE_SECONDS:
                raise GrouplakeError(f"the check of the executors failed: no answer within {_PROBE_SECONDS} s; restart the job")
            time.sleep(_POLL_SECONDS)
        return future.get()
    except Py4JJavaError as error:
        raise GrouplakeError(f"the check of the executors failed: {error.java_exception.toString().splitlines()[0]}") from error
    except GrouplakeError:
        future.cancel(True)
        raise


def _expect_running(context: SparkContext, log: ExecutorLog) -> None:
    if context._jsc.sc().isStopped():
        raise GrouplakeError(f"the cluster ended the application: {log.last_failure or 'see the log of the master'}")


def _executors(context: SparkContext) -> list[tuple[str, str]]:
    """Host and id of every registered executor."""
    jvm = context._jvm
    assert jvm is not None
    known = context._jsc.sc().env().blockManager().master().getMemoryStatus()
    ids = jvm.scala.jdk.javaapi.CollectionConverters.asJava(known).keySet()
    return sorted((one.host(), one.executorId()) for one in ids if not one.isDriver())


def _wait_for_executors(context: SparkContext, wait_seconds: int, log: ExecutorLog) -> None:
    """Wait until all executors that the cluster has granted are registered, or until no further one registers."""
    started = changed = time.monotonic()
    count = 0
    while True:
        now = time.monotonic()
        _expect_running(context, log)
        found = len(_executors(context))
        if found != count:
            count, changed = found, now
        if count and (count == log.expected or (count > log.expected and now - changed >= _SETTLED_SECONDS)):
            return
        if log.is_failing and not count:
            raise GrouplakeError(
                f"executors cannot start: {log.last_failure}; the reason is in their logs on the workers (work/app-…/N/stderr); "
                "check spark.executor.memory, spark.executor.extraJavaOptions and the Java of the workers"
            )
        if now - started >= wait_seconds:
            if count:
                return
            raise GrouplakeError(
                f"no executor within {wait_seconds} s: the cluster has no free cores or no worker with enough memory "
                "(spark.cores.max, spark.executor.memory); a longer wait: [spark] executors_seconds"
            )
        time.sleep(_POLL_SECONDS)
