"""The Java that Spark, Ivy and private brokers start with."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from pipelines.runtime.errors import GrouplakeError

#: Spark 4 has no class files for earlier ones.
OLDEST_JAVA = 17
REMEDY = f"install a Java runtime, version {OLDEST_JAVA} or newer, or set JAVA_HOME to one"

_ANSWER_SECONDS = 30
_VERSION = re.compile(r'version "(?:1\.)?(\d+)([^"]*)"')


class JavaError(GrouplakeError):
    """Java is missing, does not start or is too old. The message is `problem` and the remedy."""

    def __init__(self, problem: str) -> None:
        super().__init__(f"{problem}: {REMEDY}")
        self.problem = problem


def java_executable() -> str:
    """Path of `java`: that of `JAVA_HOME`, without this variable that of `PATH`, as Spark's launcher chooses it.

    Raises JavaError if it does not exist.
    """
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home) / "bin")) if home else shutil.which("java")
    if found is None and home:
        raise JavaError(f"JAVA_HOME is {home}, which has no bin/java")
    if found is None:
        raise JavaError("no `java` in JAVA_HOME or PATH")
    return found


def java_version() -> tuple[str, str | None]:
    """Path of `java` and its version, None if it prints none that is known.

    Raises JavaError if it is missing, does not start, or is older than OLDEST_JAVA.
    """
    program = java_executable()
    try:
        printed = subprocess.run(
            [program, "-version"], capture_output=True, text=True, errors="replace", timeout=_ANSWER_SECONDS, check=True
        ).stderr
    except (OSError, subprocess.SubprocessError) as error:
        raise JavaError(f"Java cannot be started: {error}") from error
    found = _VERSION.search(printed)
    if found is None:
        return program, None
    version = f"{found[1]}{found[2]}"
    if int(found[1]) < OLDEST_JAVA:
        raise JavaError(f"Java {version} ({program}) is too old for Spark")
    return program, version
