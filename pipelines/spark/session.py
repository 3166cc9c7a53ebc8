"""The Spark session of the job."""

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from pipelines.cache.jars import resolved_jars, spark_jars, without_spark_jars
from pipelines.cache.kernels import compile_kernels
from pipelines.configuration import PROFILES
from pipelines.spark.class_archive import ArchiveUse, ClassArchive, Recording
from pipelines.spark.gateway import launch_jvm
from pipelines.spark.settings_file import SPARK, settings_file

DELTA = ("delta-spark-4.4.0", ("io.delta:delta-spark_4.2_2.13:4.4.0",))

_SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # the tables of one batch are small; 50 tasks to read a Delta log are not
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.ui.showConsoleProgress": "false",
    "spark.python.daemon.module": "pipelines.source.worker_daemon",
    # between the JVM and its Python processes; a busy machine takes longer than the 15 s that Spark waits
    "spark.python.authenticate.socketTimeout": "300s",
    # what Spark hides by itself, and the names under which object stores and Kafka keep theirs
    "spark.redaction.regex": "(?i)secret|password|passphrase|credential|token|jaas|access[.]?key|account[.]?key|[.]sas[.]",
}

_LOCAL_SETTINGS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
    # the other way of writing the two files of a micro-batch's progress starts processes, 0.1 s a batch (docs/adr/0012)
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
}

#: How long a JVM may take to write its archive: at the end of a job, and of one that was stopped and is waited for.
_EXIT_LIMIT_SECONDS = 60
_STOP_LIMIT_SECONDS = 20


class Session:
    """A Spark session, whether its JVM has just been started, and what there is to do when the job is done with it."""

    def __init__(self, spark: SparkSession, *, is_fresh: bool, recording: Recording | None = None) -> None:
        self.spark = spark
        self.is_fresh = is_fresh
        self._recording = recording

    def finish(self, progress: Callable[[str], None], *, is_stopped: bool = False) -> None:
        """Ends the JVM if it is the first of its class path, so that it writes down what it has loaded for those that follow.

        `is_stopped`: the job was stopped from outside, and is not to take much longer. A JVM that takes too long is killed.
        """
        if self._recording is None:
            return
        assert SparkContext._gateway is not None
        process = SparkContext._gateway.proc
        progress("recording the classes that Spark has loaded, for quicker starts (some seconds, once)")
        # a signal to the whole process group has ended the JVM as well: it records all the same
        with suppress(Py4JError, OSError):
            self.spark.stop()
        process.stdin.close()
        try:
            code = process.wait(_STOP_LIMIT_SECONDS if is_stopped else _EXIT_LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            code = process.wait()
        # negative: killed by a signal, in the middle of writing perhaps
        if code >= 0:
            self._recording.keep()
        else:
            self._recording.discard()


def start_session(
    settings: Mapping[str, Any], progress: Callable[[str], None], jars: tuple[str, ...] = (), *, records_classes: bool = False
) -> Session:
    """Starts (or finds) the session. `settings` is the [spark] section of the configuration, `jars` more class path.

    `records_classes`: a local session whose class path has no `ClassArchive` yet makes one when it is finished.
    """
    is_fresh = SparkContext._gateway is None
    launches = is_fresh and "PYSPARK_GATEWAY_PORT" not in os.environ
    is_local = settings["master"].startswith("local")
    paths = [Path(jar) for jar in jars]
    if settings["delta_jars"] == "cache":
        paths += without_spark_jars(resolved_jars(*DELTA, progress=progress))
    if is_local and is_fresh:
        compile_kernels(progress)
    progress("starting Spark")
    archive = ArchiveUse("", None)
    if is_local:
        # the workers of a local session must find this environment
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("SPARK_SUBMIT_OPTS", f"-Dlog4j2.configurationFile={PROFILES / 'spark-log4j2.properties'}")
        if launches:
            archive = ClassArchive.of((*paths, *spark_jars()), settings["java_options"]).use(records=records_classes)
        mode = _LOCAL_SETTINGS | {
            "spark.driver.memory": settings["driver_memory"],
            "spark.driver.extraJavaOptions": f"{settings['java_options']} {archive.options}",
            # `spark.jars` would copy each, and hide its classes from the archive behind a class loader of their own
            "spark.driver.extraClassPath": os.pathsep.join(map(str, paths)),
        }
    else:
        mode = {"spark.jars": ",".join(map(str, paths))} if paths else {}
    master = {"spark.master": settings["master"]} if settings["master"] else {}
    given = settings["conf"]
    with settings_file(given) as hidden:
        all_settings = {"spark.app.name": "grouplake", **master, **_SETTINGS, **mode, **given}
        shown = {name: value for name, value in all_settings.items() if name not in hidden}
        if is_local and launches:
            launch_jvm(shown, archive.descriptor)
        builder = SparkSession.builder
        for name, value in shown.items():
            builder = builder.config(name, value)
        spark = builder.getOrCreate()
    for name in hidden:
        if not name.startswith(SPARK):
            spark.conf.set(name, given[name])
    # what ends a stream reaches the caller as an exception; Spark's log would only repeat it with its own stack
    spark.sparkContext.setLogLevel("ERROR" if os.environ.get("GROUPLAKE_TRACEBACK") else "OFF")
    return Session(spark, is_fresh=is_fresh, recording=archive.recording)
