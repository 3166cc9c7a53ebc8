"""Class archives of the JVMs that tests start, each recorded by a run that uses most of its program.

Tests map the archives. A test that recorded one would take seconds longer, and might use little of the program.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from java_tools import CONSUMER_GROUPS, tool_command, tools_jars
from patience import PATIENCE_SECONDS

from pipelines.examples.private.kafka import scenario
from pipelines.examples.private.kafka.broker import PrivateBroker
from pipelines.examples.private.kafka.clients import Clients
from pipelines.examples.private.kafka.distribution import broker_jars
from pipelines.examples.private.kafka.process import class_archive
from pipelines.runtime.configuration import load_configuration
from pipelines.runtime.progress import Progress

_SPARK_RUN = Path(__file__).with_name("recorded_spark_run.py")


def record_broker(version: str, progress: Progress) -> None:
    """Record a broker with groups of every kind, unless there is an archive."""

    def run(options: tuple[str, ...]) -> int:
        with PrivateBroker(version, jvm_arguments=options) as broker:
            with Clients(broker.bootstrap) as clients:
                scenario.play(clients, version)
            broker.stop()
            assert broker.exit_code is not None
            return broker.exit_code

    _record(broker_jars(version, progress=progress), run, progress)


def record_tools(version: str, progress: Progress) -> None:
    """Record the tools of a release that have jars of their own, unless there is an archive."""
    jars = tools_jars(progress, version=version)

    def run(options: tuple[str, ...]) -> int:
        with PrivateBroker(version) as broker, Clients(broker.bootstrap) as clients:
            scenario.play(clients, version)
            arguments = ("--bootstrap-server", broker.bootstrap, "--describe", "--all-groups")
            tool = tool_command(CONSUMER_GROUPS, jars, arguments, options)
            return subprocess.run(tool, capture_output=True, timeout=PATIENCE_SECONDS, check=False).returncode

    _record(jars, run, progress)


def _record(jars: Path, run: Callable[[tuple[str, ...]], int], progress: Progress) -> None:
    """`run` starts a JVM with the given options, and returns its exit code."""
    use = class_archive(jars).use(records=True)
    if use.recording is None:
        return
    progress(f"recording the classes of {jars.name} (once)")
    try:
        use.recording.end(run(use.options))
    except BaseException:
        use.recording.discard()
        raise


def record_spark(jars: tuple[str, ...], progress: Progress) -> None:
    """Record a local session with `jars` and writes of the job and views, unless there is an archive."""
    from pipelines.job.spark.session import session_archive

    if session_archive(load_configuration(None).spark, jars, progress).is_whole():
        return
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, str(_SPARK_RUN), *jars], env=environment, check=True, timeout=10 * PATIENCE_SECONDS)
