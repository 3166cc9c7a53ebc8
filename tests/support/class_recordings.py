"""Class archives of the JVMs that tests start, each recorded by a run that uses most of its program.

Tests map the archives. A test that recorded one would take seconds longer, and might use little of the program.
"""

import os
import subprocess
import sys
from pathlib import Path

from patience import PATIENCE_SECONDS

from pipelines.runtime.configuration import load_configuration
from pipelines.runtime.progress import Progress

_SPARK_RUN = Path(__file__).with_name("recorded_spark_run.py")


def record_spark(jars: tuple[str, ...], progress: Progress) -> None:
    """Record a local session with `jars` and writes of the job and views, unless there is an archive."""
    from pipelines.job.spark.session import session_archive

    if session_archive(load_configuration(None).spark, jars, progress).is_whole():
        return
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, str(_SPARK_RUN), *jars], env=environment, check=True, timeout=10 * PATIENCE_SECONDS)
