"""One-time preparations of a machine: compiled functions and jars, made before the first test starts its time limit."""

import sys
from collections.abc import Iterable, Set

from chromium import chromium
from debian_packages import prometheus
from java_clients import VERSIONS, client_jars
from java_tools import tools_jars
from member_programs import build_members
from object_stores import install_emulators

from pipelines.examples.private.kafka.distribution import broker_jars
from pipelines.runtime.cache.jars import resolved_jars
from pipelines.runtime.cache.kernels import compile_kernels

#: The token provider that matches Spark 4.2 is not in every repository; without Kerberos any version works.
TOKEN_PROVIDER = "4.0.0"

#: Versions of the brokers that tests start: those of every run, and those of tests marked slow.
BROKERS = ("4.1.1",)
BROKERS_OF_SLOW_TESTS = ("0.10.2.2", "1.1.1", "2.8.2", "3.9.1", "4.3.0")
#: Releases of the tools, in the same way.
TOOLS = ("1.1.1", "4.1.1")
TOOLS_OF_SLOW_TESTS = ("2.8.2", "3.9.1")


def prepare(markers: Set[str]) -> None:
    """Prepare tests that have these markers. Does nothing where it was done before, or by another process meanwhile."""
    compile_kernels(_progress)
    if "spark" in markers:
        from pipelines.job.spark.session import DELTA
        from pipelines.job.spark.spark_kafka import connector_jars

        resolved_jars(*DELTA, progress=_progress)
        connector_jars(TOKEN_PROVIDER, _progress)
    if "debian" in markers:
        prometheus(_progress)
    if "browser" in markers:
        chromium(_progress)
    if "store" in markers:
        install_emulators(_progress)
    if "broker" in markers:
        slow = "slow" in markers
        for version in (*TOOLS, *(TOOLS_OF_SLOW_TESTS if slow else ())):
            tools_jars(_progress, version=version)
        for version in VERSIONS:
            client_jars(version, _progress)
        build_members(_progress)
        for version in (*BROKERS, *(BROKERS_OF_SLOW_TESTS if slow else ())):
            broker_jars(version, progress=_progress)


def without_recording(lines: Iterable[str]) -> list[str]:
    """The lines of a job without the line of a machine's first run, which records the classes of Spark's JVM."""
    return [line for line in lines if not line.startswith("recording the classes")]


def _progress(line: str) -> None:
    # pytest captures what a hook prints elsewhere
    print(line, file=sys.__stderr__, flush=True)
