"""The Spark session of the job."""

import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import SparkSession

from pipelines.configuration import PROFILES
from pipelines.jars import resolved_jars

DELTA = ("delta-spark-4.4.0", ("io.delta:delta-spark_4.2_2.13:4.4.0",))

_SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # the tables of one batch are small; 50 tasks to read a Delta log are not
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.ui.showConsoleProgress": "false",
}

_LOCAL_SETTINGS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
}


def start_session(settings: Mapping[str, Any], progress: Callable[[str], None], jars: tuple[str, ...] = ()) -> SparkSession:
    """Starts (or finds) the session. `settings` is the [spark] section of the configuration, `jars` more class path."""
    builder = SparkSession.builder.appName("grouplake")
    is_local = settings["master"].startswith("local")
    if settings["master"]:
        builder = builder.master(settings["master"])
    if is_local:
        # the workers of a local session must find this environment
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("SPARK_SUBMIT_OPTS", f"-Dlog4j2.configurationFile={PROFILES / 'spark-log4j2.properties'}")
        builder = builder.config("spark.driver.memory", settings["driver_memory"])
    paths = list(jars)
    if settings["delta_jars"] == "cache":
        paths += [str(path) for path in sorted(resolved_jars(*DELTA, progress=progress).glob("*.jar"))]
    if paths:
        builder = builder.config("spark.jars", ",".join(paths))
    for name, value in {**_SETTINGS, **(_LOCAL_SETTINGS if is_local else {}), **settings["conf"]}.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    # what ends a stream reaches the caller as an exception; Spark's log would only repeat it with its own stack
    spark.sparkContext.setLogLevel("ERROR" if os.environ.get("GROUPLAKE_TRACEBACK") else "OFF")
    return spark
