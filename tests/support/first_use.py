"""One-time preparations of a machine: compiled functions, jars and programs, made before the first test starts its time limit."""

import fcntl
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from functools import partial

import pytest
from apt_downloads import DownloadError
from checked_commands import CommandFailed
from chromium import chromium
from class_recordings import record_broker, record_spark, record_tools
from debian_packages import alertmanager_program, faketime, prometheus, tini
from deployment_tools import BUILD_REQUIREMENTS, COMPOSE, go_files, install_deployment_tools, python_environment
from java_clients import VERSIONS, client_jars
from java_tools import tools_jars
from member_programs import build_members
from object_stores import install_azurite, install_fake_gcs_server

from pipelines.examples.private.kafka.distribution import broker_jars
from pipelines.runtime.cache.folder import cache_root
from pipelines.runtime.cache.ivy import JarsError
from pipelines.runtime.cache.jars import resolved_jars
from pipelines.runtime.cache.kernels import compile_kernels
from pipelines.runtime.progress import Progress

#: The token provider that matches Spark 4.2 is not in every repository; without Kerberos any version works.
TOKEN_PROVIDER = "4.0.0"

#: Versions of the brokers that tests start: those of every run, and those of tests marked slow.
BROKERS = ("4.1.1", "4.3.0")
BROKERS_OF_SLOW_TESTS = ("0.10.2.2", "1.1.1", "2.8.2", "3.9.1")
#: Releases of the tools, in the same way.
TOOLS = ("1.1.1", "4.1.1")
TOOLS_OF_SLOW_TESTS = ("2.8.2", "3.9.1")

#: Pauses before a step is tried again. Registries fail for seconds more often than for minutes.
_PAUSES_SECONDS = (5, 30)
#: How steps fail whose download fails.
_FAILURES = (CommandFailed, DownloadError, JarsError, OSError, subprocess.SubprocessError)

Step = Callable[[Progress], object]


def prepare(markers: Set[str]) -> None:
    """Prepare tests that have these markers: one process at a time, so that a second one finds everything made.

    A step that fails is tried three times; its last error is raised. Without its toolchain a step does nothing: its tests are
    skipped, with the reason.
    """
    with _alone():
        for step in steps(markers):
            _repeated(step)


def steps(markers: Set[str]) -> Iterator[Step]:
    """The preparations of tests that have these markers. Each does nothing where its result exists."""
    yield compile_kernels
    for marker, (of_every_run, of_slow_tests) in _preparations().items():
        if marker in markers:
            yield from of_every_run
        if marker in markers and "slow" in markers:
            yield from of_slow_tests


def _preparations() -> Mapping[str, tuple[Sequence[Step], Sequence[Step]]]:
    """Steps by marker: those of every run, and those that only tests marked slow need."""
    return {
        "spark": ([_spark_jars, _spark_classes], []),
        "debian": ([prometheus, alertmanager_program], [tini, faketime]),
        "deployment": ([_build_environment, _compose_schema], [install_deployment_tools]),
        "browser": ([chromium], []),
        "store": ([install_azurite], [install_fake_gcs_server]),
        "broker": (
            [
                *(partial(tools_jars, version=version) for version in TOOLS),
                *(partial(client_jars, version) for version in VERSIONS),
                build_members,
                *(partial(record_broker, version) for version in BROKERS),
                partial(record_tools, BROKERS[0]),
            ],
            [
                *(partial(tools_jars, version=version) for version in TOOLS_OF_SLOW_TESTS),
                *(partial(_broker_jars, version) for version in BROKERS_OF_SLOW_TESTS),
            ],
        ),
    }


def without_recording(lines: Iterable[str]) -> list[str]:
    """The lines of a job without those of a machine that is new or slow.

    The first run records the classes of Spark's JVM, and a query starts again if a Python worker starts too slowly for Spark.
    """
    return [line for line in lines if not line.startswith(("recording the classes", "a Python worker took longer"))]


def _spark_jars(progress: Progress) -> None:
    from pipelines.job.spark.session import DELTA
    from pipelines.job.spark.spark_kafka import connector_jars

    resolved_jars(*DELTA, progress=progress)
    connector_jars(TOKEN_PROVIDER, progress)


def _spark_classes(progress: Progress) -> None:
    from pipelines.job.spark.spark_kafka import connector_jars

    # of the session of a test run, and of a job that a test starts
    for jars in (connector_jars(TOKEN_PROVIDER, progress), ()):
        record_spark(jars, progress)


def _build_environment(_: Progress) -> None:
    python_environment(*BUILD_REQUIREMENTS)


def _compose_schema(_: Progress) -> None:
    go_files(*COMPOSE)


def _broker_jars(version: str, progress: Progress) -> None:
    broker_jars(version, progress=progress)


def _repeated(step: Step) -> None:
    for pause in (*_PAUSES_SECONDS, None):
        try:
            step(_progress)
        except pytest.skip.Exception as reason:
            _progress(f"not prepared: {reason}")
        except _FAILURES as error:
            printed = (getattr(error, "stderr", None) or b"").decode(errors="replace")[-2000:]
            if pause is None:
                error.add_note(printed)
                raise
            _progress(f"failed, next try in {pause} s: {error} {printed}")
            time.sleep(pause)
            continue
        return


@contextmanager
def _alone() -> Iterator[None]:
    """Wait until no other process prepares this machine."""
    root = cache_root()
    root.mkdir(parents=True, exist_ok=True)
    with (root / ".prepare.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _progress(line: str) -> None:
    # pytest captures what a hook prints elsewhere
    print(line, file=sys.__stderr__, flush=True)
