"""Kafka's own command line tools, run from their jars."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

from patience import PATIENCE_SECONDS

from pipelines.examples.private.kafka.distribution import broker_jars, version_tuple
from pipelines.examples.private.kafka.process import java_command
from pipelines.runtime.cache.jars import resolved_jars
from pipelines.runtime.progress import Progress

CONSUMER_GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
_NEWEST = "4.1.1"
#: The first release whose `kafka-consumer-groups` is written in Java and has a jar of its own, apart from the broker's.
_IN_A_JAR_OF_ITS_OWN = (3, 8)
#: The first release whose `kafka-dump-log` is there, too.
_DUMPS_IN_JAVA = (4, 2)
#: Tools before 2.4 print no column for the group.
_FIRST_COLUMNS = ("GROUP", "TOPIC", "CONSUMER-ID")


def tools_jars(progress: Progress | None = None, *, version: str = _NEWEST) -> Path:
    """The folder with the jars of a release's tools."""
    if version_tuple(version) < _IN_A_JAR_OF_ITS_OWN:
        return broker_jars(version, progress=progress)
    dependencies = (f"org.apache.kafka:kafka-tools:{version}", "org.slf4j:slf4j-simple:1.7.36")
    return resolved_jars(f"kafka-tools-{version}", dependencies, progress=progress)


def consumer_groups(bootstrap: str, *arguments: str, version: str = _NEWEST) -> str:
    """The output of a release's `kafka-consumer-groups`; AssertionError with the whole output when it fails."""
    return _run(version, "--bootstrap-server", bootstrap, "--timeout", str(round(PATIENCE_SECONDS * 1000)), *arguments)


def topics(bootstrap: str, *arguments: str, version: str = _NEWEST) -> str:
    """The output of a release's `kafka-topics`."""
    return _run_class(
        "org.apache.kafka.tools.TopicCommand", tools_jars(version=version), ("--bootstrap-server", bootstrap, *arguments)
    )


def group_configs(bootstrap: str, group: str, version: str = _NEWEST) -> list[str]:
    """The lines that a release's `kafka-configs` prints for a group, with all configs."""
    arguments = ("--bootstrap-server", bootstrap, "--entity-type", "groups", "--entity-name", group, "--describe", "--all")
    return _run_class("kafka.admin.ConfigCommand", broker_jars(version), arguments).splitlines()


def transactions(bootstrap: str, *arguments: str, version: str = _NEWEST) -> list[dict[str, str]]:
    """The rows that a release's `kafka-transactions` prints, by the names of the columns; none for commands without a table."""
    tool = "org.apache.kafka.tools.TransactionsCommand"
    printed = _run_class(tool, tools_jars(version=version), ("--bootstrap-server", bootstrap, *arguments))
    head, *rows = [line.split("\t") for line in printed.splitlines() if line.strip()] or [[]]
    names = [name.strip() for name in head]
    return [dict(zip(names, (value.strip() for value in row), strict=True)) for row in rows]


def dumped_records(log: Path, topic: str, decoder: str, version: str = _NEWEST) -> dict[str, list[str]]:
    """The lines that a release's `kafka-dump-log` prints for the batches and records of a topic, by the name of the folder.

    `decoder` is "transaction-log" or "offsets".
    """
    segments = sorted(log.glob(f"{topic}-*/*.log"))
    arguments = ("--files", ",".join(map(str, segments)), f"--{decoder}-decoder")
    lines: dict[str, list[str]] = {}
    folder = ""
    is_java = version_tuple(version) >= _DUMPS_IN_JAVA
    tool = "org.apache.kafka.tools.DumpLogSegments" if is_java else "kafka.tools.DumpLogSegments"
    for line in _run_class(tool, tools_jars(version=version) if is_java else broker_jars(version), arguments).splitlines():
        if line.startswith("Dumping "):
            folder = Path(line.removeprefix("Dumping ")).parent.name
        elif line.startswith(("|", "baseOffset")):
            lines.setdefault(folder, []).append(line)
    return lines


def printed_offsets(bootstrap: str, topic: str, records: int, version: str = _NEWEST) -> str:
    """What a release's `kafka-console-consumer` prints with its formatter of offsets for that many records."""
    is_java = version_tuple(version) >= _IN_A_JAR_OF_ITS_OWN
    tool = "org.apache.kafka.tools.consumer.ConsoleConsumer" if is_java else "kafka.tools.ConsoleConsumer"
    formatter = (
        "org.apache.kafka.tools.consumer.OffsetsMessageFormatter"
        if is_java
        else "kafka.coordinator.group.GroupMetadataManager$OffsetsMessageFormatter"
    )
    arguments = (
        *("--bootstrap-server", bootstrap, "--topic", topic, "--from-beginning", "--max-messages", str(records)),
        *("--isolation-level", "read_committed", "--formatter", formatter),
    )
    return _run_class(tool, tools_jars(version=version), arguments)


def tool_command(main_class: str, jars: Path, arguments: Sequence[str], jvm_arguments: Sequence[str] = ()) -> list[str]:
    """The command line of a tool that logs errors alone."""
    return java_command(jars, main_class, arguments, [*jvm_arguments, "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"])


def table(printed: str) -> list[dict[str, str]]:
    """Rows of a printed table by the names of its columns; values of these tools contain no spaces."""
    lines = [line.split() for line in printed.splitlines() if line.strip()]
    head = next((number for number, line in enumerate(lines) if line[0] in _FIRST_COLUMNS), None)
    assert head is not None, f"no table in what the tool printed: {printed}"
    return [dict(zip(lines[head], line, strict=False)) for line in lines[head + 1 :]]


def _run(version: str, *arguments: str) -> str:
    is_java = version_tuple(version) >= _IN_A_JAR_OF_ITS_OWN
    main_class = CONSUMER_GROUPS if is_java else "kafka.admin.ConsumerGroupCommand"
    return _run_class(main_class, tools_jars(version=version), arguments)


def _run_class(main_class: str, jars: Path, arguments: Sequence[str]) -> str:
    command = tool_command(main_class, jars, arguments)
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
    printed = f"{' '.join(arguments)}: {done.stdout}{done.stderr}"
    assert done.returncode == 0, printed
    assert "Error:" not in done.stdout, printed
    return done.stdout
