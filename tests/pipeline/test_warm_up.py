"""Reads without rows, and workers that start with compiled code."""

import subprocess
import sys

import pyspark
import pytest
from first_use import TOKEN_PROVIDER
from patience import PATIENCE_SECONDS
from pyspark.sql import SparkSession

from pipelines.job.spark.session import session_archive
from pipelines.job.spark.spark_kafka import connector_jars
from pipelines.runtime.cache.spark_home import shared_home
from pipelines.runtime.configuration import load_configuration
from pipelines.runtime.progress import print_progress
from pipelines.source.data_source import ConsumerOffsetsDataSource
from pipelines.source.log_reading import WARM_UP

_LOADED = """
from coordinator_core.reduction.transaction_warm_up import load_transaction_kernels
from coordinator_core.service.topics.topic_kernels import load_topic_kernels
from pipelines.source.warm_up import load_kernels
load_kernels()
load_transaction_kernels()
load_topic_kernels()
from coordinator_core.log import batch_kernels
from coordinator_core.codec import columnar_kernels, transaction_kernels
from coordinator_core.reduction import fold_kernels
from coordinator_core.segment_log import read_kernels
from coordinator_core.service.topics import record_kernels
for module in (batch_kernels, columnar_kernels, fold_kernels, read_kernels, record_kernels, transaction_kernels):
    compiled = [name for name, value in vars(module).items() if getattr(value, "signatures", None)]
    assert compiled, module.__name__
"""

#: What a load of a partition of groups runs, and the assertion that a second load has to load nothing.
_GROUPS_LOADED = """
from coordinator_core.reduction.group_warm_up import load_group_kernels
load_group_kernels()
import sys
from coordinator_core.codec import columnar_kernels
from coordinator_core.log import batch_kernels
from coordinator_core.reduction import fold_kernels
loaded = {*sys.modules}
for module in (batch_kernels, columnar_kernels, fold_kernels):
    compiled = [name for name, value in vars(module).items() if getattr(value, "signatures", None)]
    assert compiled, module.__name__
load_group_kernels()
assert loaded == {*sys.modules}, {*sys.modules} - loaded
"""


@pytest.mark.spark
def test_a_warm_up_reads_nothing_and_needs_no_log(spark: SparkSession) -> None:
    spark.dataSource.register(ConsumerOffsetsDataSource)
    reader = spark.read.format(ConsumerOffsetsDataSource.name()).option(WARM_UP, "true").option("tasks", 2)
    rows = reader.load("segments:/no/such/folder")
    assert rows.rdd.getNumPartitions() == 2
    assert rows.toArrow().num_rows == 0


@pytest.mark.spark
def test_workers_begin_with_what_their_daemon_has_loaded(spark: SparkSession) -> None:
    def is_loaded(_rows: object) -> list[bool]:
        return ["coordinator_core.reduction.partition_reduction" in sys.modules]

    assert spark.sparkContext.parallelize([0], 1).mapPartitions(is_loaded).collect() == [True]


@pytest.mark.spark
def test_the_session_starts_from_the_cache_with_the_classes_that_were_recorded_for_it(spark: SparkSession) -> None:
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    runtime = jvm.java.lang.management.ManagementFactory.getRuntimeMXBean()
    home = shared_home()
    assert home is not None
    assert str(home / "jars") in str(runtime.getClassPath())
    settings = load_configuration(None).spark
    archive = session_archive(settings, connector_jars(TOKEN_PROVIDER, print_progress), print_progress)
    assert f"-XX:SharedArchiveFile={archive.path}" in runtime.getInputArguments()


@pytest.mark.spark
def test_workers_find_the_python_packages_of_this_environment(spark: SparkSession) -> None:
    def found(_rows: object) -> list[str]:
        return [pyspark.__file__]

    assert spark.sparkContext.parallelize([0], 1).mapPartitions(found).collect() == [pyspark.__file__]


def test_loading_the_kernels_runs_those_of_every_step() -> None:
    for script in (_LOADED, _GROUPS_LOADED):
        subprocess.run([sys.executable, "-c", script], check=True, timeout=PATIENCE_SECONDS)
