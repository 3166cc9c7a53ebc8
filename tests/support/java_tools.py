"""Kafka's own command line tools, run from their jars."""

import subprocess
from pathlib import Path

from pipelines.jars import java_executable, resolved_jars
from pipelines.progress import Progress

_DEPENDENCIES = ("org.apache.kafka:kafka-tools:4.1.1", "org.slf4j:slf4j-simple:1.7.36")
_CONSUMER_GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"


def tools_jars(progress: Progress | None = None) -> Path:
    """The folder with the jars of the tools."""
    return resolved_jars("kafka-tools-4.1.1", _DEPENDENCIES, progress=progress)


def consumer_groups(bootstrap: str, *arguments: str) -> str:
    """What `kafka-consumer-groups` prints; AssertionError with all it said when it fails."""
    return _run(_CONSUMER_GROUPS, "--bootstrap-server", bootstrap, "--timeout", "15000", *arguments)


def table(printed: str) -> list[dict[str, str]]:
    """Rows of a printed table by the names of its columns; values of these tools have no spaces."""
    lines = [line.split() for line in printed.splitlines() if line.strip()]
    head = next(number for number, line in enumerate(lines) if line[0] == "GROUP")
    return [dict(zip(lines[head], line, strict=False)) for line in lines[head + 1 :]]


def _run(main_class: str, *arguments: str) -> str:
    jars = tools_jars()
    command = [
        str(java_executable()),
        "-XX:TieredStopAtLevel=1",
        "-XX:+UseSerialGC",
        "-Xshare:auto",
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
        "-cp",
        str(Path(jars) / "*"),
        main_class,
        *arguments,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    told = f"{' '.join(arguments)}: {done.stdout}{done.stderr}"
    assert done.returncode == 0, told
    assert "Error:" not in done.stdout, told
    return done.stdout
