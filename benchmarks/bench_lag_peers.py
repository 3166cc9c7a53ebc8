"""A complete answer about the lag of all groups of one broker: beside Kafka's own tool, and klag-exporter where it is in PATH.

`python -m benchmarks.bench_lag_peers [--groups 200] [--klag-exporter PATH]`. Each group has committed to the 50 partitions of one
of 20 topics. Every program runs alone. "First" is the time from the start of the process to an answer that has every partition of
every group, "per answer" the CPU time of later ones at an interval of 10 s. Ours stores every answer in tables.
"""

import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from benchmarks.arguments import count, parser
from benchmarks.brokers import JVM, VERSION
from benchmarks.processes import family_cpu, family_cpu_seconds
from benchmarks.report import print_machine, print_table
from pipelines.examples.private.kafka.broker import PrivateBroker
from pipelines.examples.private.kafka.clients import Clients
from pipelines.examples.private.kafka.ports import PortReservation
from pipelines.query.engine import Snapshot
from pipelines.runtime.cache.jars import resolved_jars
from pipelines.runtime.cache.java import java_executable
from pipelines.runtime.errors import GrouplakeError

_TOPICS, _PARTITIONS = 20, 50
_INTERVAL_SECONDS, _INTERVALS = 10, 6
_LIMIT_SECONDS = 300
_TOOL = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
_TOOL_JARS = (f"org.apache.kafka:kafka-tools:{VERSION}", "org.slf4j:slf4j-simple:1.7.36")
_GROUPLAKE = Path(sys.executable).parent / "grouplake"


def main(arguments: list[str] | None = None) -> None:
    parsing = parser(__doc__, records="0", keys="0", rounds=1)
    parsing.add_argument("--groups", type=count, default=200, help="groups, of 50 partitions each (default 200)")
    parsing.add_argument("--klag-exporter", default="klag-exporter", metavar="PATH", help="program of klag-exporter")
    options = parsing.parse_args(arguments)
    print_machine("confluent-kafka")
    rows = options.groups * _PARTITIONS
    with PrivateBroker(VERSION, offsets_partitions=50, jvm_arguments=JVM) as broker, tempfile.TemporaryDirectory() as scratch:
        _make_groups(broker.bootstrap, options.groups)
        found = [_kafka_tool(broker, rows)]
        if shutil.which(options.klag_exporter):
            found.append(_klag_exporter(options.klag_exporter, broker.bootstrap, rows, Path(scratch)))
        found.append(_ours(broker.bootstrap, rows, Path(scratch)))
    print(f"{options.groups} groups, {rows} partitions of groups, {_TOPICS * _PARTITIONS} partitions of topics\n")
    print_table(("program", "first answer, s", "its CPU s", "CPU s per further answer"), found)


def _make_groups(bootstrap: str, groups: int) -> None:
    topics = [f"topic-{number}" for number in range(_TOPICS)]
    with Clients(bootstrap) as clients:
        clients.create_topics(topics, _PARTITIONS)
        for topic in topics:
            clients.produce(topic, _PARTITIONS, 10 * _PARTITIONS)
        for number in range(groups):
            offsets = [(topics[number % _TOPICS], partition, 4) for partition in range(_PARTITIONS)]
            consumer = clients.consumer(f"group-{number}")
            clients.commit(consumer, offsets)
            clients.leave(consumer)


def _kafka_tool(broker: PrivateBroker, rows: int) -> Sequence[object]:
    arguments = [
        str(java_executable()),
        "-cp",
        str(resolved_jars(f"kafka-tools-{VERSION}", _TOOL_JARS) / "*"),
        _TOOL,
        "--bootstrap-server",
        broker.bootstrap,
    ]
    started = time.monotonic()
    with subprocess.Popen(
        [*arguments, "--describe", "--all-groups", "--timeout", "60000"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdout is not None
        answered = sum(line.startswith(b"group-") for line in process.stdout)
        took = time.monotonic() - started
        cpu = family_cpu_seconds(process.pid)
    assert answered == rows, f"the tool printed {answered} of {rows} rows"
    return f"kafka-consumer-groups {VERSION}", f"{took:.1f}", f"{cpu:.1f}", f"{cpu:.1f}"


def _klag_exporter(program: str, bootstrap: str, rows: int, scratch: Path) -> Sequence[object]:
    reservation = PortReservation()
    port = reservation.port
    reservation.release()
    configuration = scratch / "klag.toml"
    configuration.write_text(
        f'[exporter]\npoll_interval = "{_INTERVAL_SECONDS}s"\nhttp_port = {port}\nhttp_host = "127.0.0.1"\n'
        'granularity = "partition"\n[exporter.timestamp_sampling]\nenabled = true\n'
        f'[[clusters]]\nname = "c"\nbootstrap_servers = "{bootstrap}"\n'
    )
    assert tomllib.loads(configuration.read_text())

    def is_complete() -> bool:
        with suppress(URLError, OSError), urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as response:
            series = sum(line.startswith(b"kafka_consumergroup_group_lag{") for line in response)
            return bool(series == rows)
        return False

    return _exporter("klag-exporter", [program, "--config", str(configuration)], is_complete, scratch)


def _ours(bootstrap: str, rows: int, scratch: Path) -> Sequence[object]:
    tables = scratch / "tables"
    configuration = scratch / "grouplake.toml"
    configuration.write_text(f"[lag]\ninterval_seconds = {_INTERVAL_SECONDS}\n")

    def is_complete() -> bool:
        with suppress(GrouplakeError):
            (row,) = Snapshot.open(str(tables)).query("SELECT count(lag) AS n FROM lag").to_pylist()
            return bool(row["n"] == rows)
        return False

    def answers() -> int:
        (row,) = Snapshot.open(str(tables)).query("SELECT count(phase_ms['write_lag']) AS n FROM batches").to_pylist()
        return int(row["n"])

    source = f"kafka://{bootstrap}/__consumer_offsets"
    command = [str(_GROUPLAKE), "run", "--source", source, "--tables", str(tables), "--trigger", "5s"]
    return _exporter("grouplake run", [*command, "--conf", str(configuration)], is_complete, scratch, answers)


def _exporter(
    name: str,
    command: Sequence[str],
    is_complete: Callable[[], bool],
    scratch: Path,
    answers: Callable[[], int] | None = None,
) -> Sequence[object]:
    """Start a program that answers again and again; measure its first complete answer and the later ones.

    `answers` counts the answers so far, of a program that shows their number.
    """
    started = time.monotonic()
    with _running(command, scratch / f"{name}.log".replace(" ", "-")) as process:
        while not is_complete():
            if time.monotonic() - started > _LIMIT_SECONDS or process.poll() is not None:
                raise SystemExit(f"{name}: no complete answer within {_LIMIT_SECONDS} s (exit code {process.poll()})")
            time.sleep(0.2)
        took, first = time.monotonic() - started, family_cpu_seconds(process.pid)
        # processes that served the start end meanwhile
        time.sleep(_INTERVAL_SECONDS * _INTERVALS)
        settled, before = family_cpu(process.pid), answers() if answers else 0
        time.sleep(_INTERVAL_SECONDS * _INTERVALS)
        made = answers() - before if answers else _INTERVALS
        assert made >= _INTERVALS - 1, f"{name} gave {made} answers in {_INTERVALS} intervals"
        # a process that ended meanwhile takes its time with it, so only those that run count
        further = sum(seconds - settled.get(pid, 0.0) for pid, seconds in family_cpu(process.pid).items()) / made
    return name, f"{took:.1f}", f"{first:.1f}", f"{further:.2f}"


@contextmanager
def _running(command: Sequence[str], log: Path) -> Iterator["subprocess.Popen[bytes]"]:
    with log.open("wb") as output, subprocess.Popen(command, stdout=output, stderr=output) as process:
        try:
            yield process
        finally:
            process.terminate()


if __name__ == "__main__":
    main()
