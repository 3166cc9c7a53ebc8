"""The Spark session of the job."""

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from pipelines.job.spark.executor_log import ExecutorLog
from pipelines.job.spark.executors import choose_python, expect_master, expect_usable_executors, is_cluster
from pipelines.job.spark.gateway import launch_jvm
from pipelines.job.spark.settings_file import SPARK, settings_file
from pipelines.runtime.cache.class_archive import ArchiveUse, ClassArchive, Recording
from pipelines.runtime.cache.jars import resolved_jars, spark_jars, without_spark_jars
from pipelines.runtime.cache.java import java_version
from pipelines.runtime.cache.kernels import compile_kernels, use_kernel_cache
from pipelines.runtime.cache.spark_home import shared_home
from pipelines.runtime.configuration import PROFILES
from pipelines.runtime.progress import Progress

DELTA = ("delta-spark-4.4.0", ("io.delta:delta-spark_4.2_2.13:4.4.0",))

_SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # the Delta logs are small: the default of 50 tasks to read one takes far longer than the reading
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.ui.showConsoleProgress": "false",
    "spark.python.daemon.module": "pipelines.source.worker_daemon",
    # between the JVM and its Python processes; on a busy machine the default of 15 s is too short
    "spark.python.authenticate.socketTimeout": "300s",
    # the default, extended by the names of secrets in settings of object stores and Kafka
    "spark.redaction.regex": "(?i)secret|password|passphrase|credential|token|jaas|access[.]?key|account[.]?key|[.]sas[.]",
}

_LOCAL_SETTINGS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
    # the default starts processes to write the two files of a micro-batch's progress: 0.1 s per batch (docs/adr/0012)
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
}

#: Limits for the JVM to write its archive: at the end of a job, and after a stop request.
_EXIT_LIMIT_SECONDS = 60
_STOP_LIMIT_SECONDS = 20


class Session:
    """A Spark session, whether its JVM was started for it, and the recording to finish at its end."""

    def __init__(self, spark: SparkSession, log: ExecutorLog, *, is_fresh: bool, recording: Recording | None = None) -> None:
        self.spark = spark
        self._log = log
        self.is_fresh = is_fresh
        self._recording = recording

    def expect_usable_executors(self, files: Mapping[str, bool], wait_seconds: int, progress: Progress) -> None:
        """Check the executors of a cluster, see `pipelines.job.spark.executors`; a local session has none."""
        context = self.spark.sparkContext
        if is_cluster(context.master or ""):
            expect_usable_executors(context, files, wait_seconds, progress, self._log)

    def finish(self, progress: Callable[[str], None], *, is_stopped: bool = False) -> None:
        """Stop the JVM if it records an archive, which it writes at its exit; otherwise do nothing.

        `is_stopped`: the job was stopped by a request, so the limit is shorter. A JVM beyond the limit is killed.
        """
        if self._recording is None:
            return
        assert SparkContext._gateway is not None
        process = SparkContext._gateway.proc
        progress("recording the classes that Spark has loaded, for faster starts (some seconds, once)")
        # a signal to the whole process group has also ended the JVM, which records all the same
        with suppress(Py4JError, OSError):
            self.spark.stop()
        process.stdin.close()
        try:
            code = process.wait(_STOP_LIMIT_SECONDS if is_stopped else _EXIT_LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            code = process.wait()
        # a later session of this process starts a JVM of its own
        SparkContext._gateway = SparkContext._jvm = None
        self._recording.end(code)


def start_session(
    settings: Mapping[str, Any], progress: Callable[[str], None], jars: tuple[str, ...] = (), *, records_classes: bool = False
) -> Session:
    """Start (or find) the session. `settings` is the section [spark] of the configuration, `jars` extends the class path.

    `records_classes`: a local session whose class path has no `ClassArchive` yet records one, see `Session.finish`.
    """
    is_fresh = SparkContext._gateway is None
    launches = is_fresh and "PYSPARK_GATEWAY_PORT" not in os.environ
    is_local = settings["master"].startswith("local")
    if not is_local:
        expect_master(settings["master"])
    if launches:
        # Spark's launcher would report a missing program or a class of an unknown version
        java_version()
    # the workers of a local session must find this environment, those of a cluster look for it
    python = choose_python()
    paths = _added_jars(settings, jars, progress)
    if is_local and is_fresh:
        compile_kernels(progress)
    progress("starting Spark")
    archive, home, log = ArchiveUse(), None, ExecutorLog()
    os.environ.setdefault("SPARK_SUBMIT_OPTS", f"-Dlog4j2.configurationFile={PROFILES / 'spark-log4j2.properties'}")
    if is_local:
        # otherwise Spark looks up the name of the machine, and does not start where the name has no address
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        if launches:
            # another Python may find Spark's packages in the installed Spark alone
            home = shared_home() if python == sys.executable and not is_cluster(settings["master"]) else None
            archive = _class_archive(settings, paths, home).use(records=records_classes)
        mode = _LOCAL_SETTINGS | {
            "spark.driver.memory": settings["driver_memory"],
            "spark.driver.extraJavaOptions": " ".join((settings["java_options"], *archive.options)),
            # not `spark.jars`: that copies each jar and loads it with another class loader, which the archive does not cover
            "spark.driver.extraClassPath": os.pathsep.join(map(str, paths)),
        }
    else:
        mode = _cluster_settings(settings, paths, python, launches=launches)
    master = {"spark.master": settings["master"]} if settings["master"] else {}
    given = settings["conf"]
    with settings_file(given) as hidden:
        all_settings = {"spark.app.name": "grouplake", **master, **_SETTINGS, **mode, **given}
        shown = {name: value for name, value in all_settings.items() if name not in hidden}
        if launches:
            launch_jvm(shown, home, archive.descriptor, log.note, progress)
        builder = SparkSession.builder
        for name, value in shown.items():
            builder = builder.config(name, value)
        spark = builder.getOrCreate()
    for name in hidden:
        if not name.startswith(SPARK):
            spark.conf.set(name, given[name])
    # the caller gets the error of a query as an exception; Spark's log would repeat it with a stack trace
    spark.sparkContext.setLogLevel("ERROR" if os.environ.get("GROUPLAKE_TRACEBACK") else "OFF")
    return Session(spark, log, is_fresh=is_fresh, recording=archive.recording)


def session_archive(settings: Mapping[str, Any], jars: Sequence[str], progress: Progress) -> ClassArchive:
    """The class archive of a local session of this Python, see `start_session`."""
    return _class_archive(settings, _added_jars(settings, jars, progress), shared_home())


def _class_archive(settings: Mapping[str, Any], added_jars: Sequence[Path], home: Path | None) -> ClassArchive:
    return ClassArchive.of("spark", (*added_jars, *spark_jars(home)), settings["java_options"])


def _added_jars(settings: Mapping[str, Any], jars: Sequence[str], progress: Progress) -> list[Path]:
    """The jars before those of Spark."""
    paths = [Path(jar) for jar in jars]
    if settings["delta_jars"] == "cache":
        paths += without_spark_jars(resolved_jars(*DELTA, progress=progress))
    return paths


def _cluster_settings(settings: Mapping[str, Any], jars: Sequence[Path], python: str, *, launches: bool) -> dict[str, Any]:
    """Settings of a session with executors; `launches`: the JVM is not that of `spark-submit`."""
    mode: dict[str, Any] = {}
    if launches:
        mode |= {"spark.driver.memory": settings["driver_memory"], "spark.driver.extraJavaOptions": settings["java_options"]}
    if jars:
        mode["spark.jars"] = ",".join(map(str, jars))
    if os.path.isabs(python):
        # compiled functions survive the run; an archive has its own beside the code, since each run unpacks it elsewhere
        mode["spark.executorEnv.NUMBA_CACHE_DIR"] = str(use_kernel_cache())
    return mode
