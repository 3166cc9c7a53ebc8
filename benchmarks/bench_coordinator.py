"""The coordinator compared with a broker: commits, joins, loading, heartbeats; one after the other, with the same clients.

`python -m benchmarks.bench_coordinator [--only commits joins load heartbeats] [--records 1M] [--seconds 10] [--rounds 3]`. The
broker runs with the JVM settings of Kafka's own scripts, and leaves fsync to the system, as `fsync = "never"` does here. Commits
are made by confluent-kafka, everything else by members of `coordinator_core.client`. The best round counts.
"""

import asyncio
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.arguments import count, parser, short
from benchmarks.brokers import VERSION, LoadTime, broker_with
from benchmarks.commit_clients import commit_for
from benchmarks.coordinators import Server, kafka_broker, our_coordinator, our_load
from benchmarks.group_clients import Beats, Joined, Member, await_coordinator, beat, connections_to, join_all
from benchmarks.logs import LogShape, describe, generated_log
from benchmarks.report import print_machine, print_table

_TOPIC = "events"
_CONNECTIONS = (1, 50)
_HEARTBEAT_SECONDS = 3.0
_GROUP_SIZE = 100
#: Number of groups of idle members, which share the connections.
_GROUPS_AT_ONCE = 10
#: group.initial.rebalance.delay.ms: Kafka's default, and a short one for measurements that only need existing groups.
_DELAY_MS, _SHORT_DELAY_MS = 3_000, 2_000

Start = Callable[[], AbstractContextManager[Server]]


def main(arguments: list[str] | None = None) -> None:
    parsing = parser(__doc__, records="1M", keys="200k", rounds=3)
    parsing.add_argument("--only", nargs="+", choices=_PARTS, default=tuple(_PARTS), help="parts to run (default: all)")
    parsing.add_argument("--seconds", type=float, default=10.0, help="length of one measurement (default 10)")
    parsing.add_argument("--members", type=count, default=1_000, help="members that join one group (default 1k)")
    parsing.add_argument("--idle", type=count, default=10_000, help="members that only send heartbeats (default 10k)")
    options = parsing.parse_args(arguments)
    print_machine("confluent-kafka")
    for part in options.only:
        _PARTS[part](options)


def _servers(fsyncs: Sequence[str], delay_ms: int = _DELAY_MS) -> Iterator[Start]:
    """Our coordinator with each fsync policy, and a broker."""
    for fsync in fsyncs:
        yield partial(_ours, fsync, delay_ms)
    yield partial(kafka_broker, _TOPIC, delay_ms)


@contextmanager
def _ours(fsync: str, delay_ms: int) -> Iterator[Server]:
    with (
        tempfile.TemporaryDirectory(prefix="grouplake-benchmark-") as scratch,
        our_coordinator(Path(scratch, "log"), _TOPIC, fsync, delay_ms) as server,
    ):
        yield server


# ---- commits


def _commits(options: Any) -> None:
    rows = []
    for start in _servers(("always", "interval", "never")):
        with start() as server:
            for connections in _CONNECTIONS:
                commit_for(server.bootstrap, _TOPIC, connections, min(1.0, options.seconds))
                rows.append(max((_commit_row(server, connections, options.seconds) for _ in range(options.rounds)), key=_rate))
    head = ["commits", "connections", "per second", "server's CPU, µs per commit", "server's CPU, cores"]
    print_table(head, [(name, n, f"{rate:,.0f}", f"{cpu / rate * 1e6:.0f}", f"{cpu:.2f}") for name, n, rate, cpu in rows])


def _commit_row(server: Server, connections: int, seconds: float) -> tuple[str, int, float, float]:
    before = server.cpu_seconds()
    done = commit_for(server.bootstrap, _TOPIC, connections, seconds)
    return server.name, connections, done.per_second, (server.cpu_seconds() - before) / done.seconds


def _rate(row: tuple[str, int, float, float]) -> float:
    return row[2]


# ---- joins


def _joins(options: Any) -> None:
    rows = []
    for start in _servers(("always", "never")):
        with start() as server:
            first, again, cpu = asyncio.run(_join_rounds(server, options.members, options.rounds))
        rows.append(
            (
                server.name,
                f"{first.assignments:.2f}",
                f"{first.assignments - first.generation:.2f}",
                f"{again.assignments:.2f}",
                f"{cpu:.2f}",
            )
        )
    head = [
        f"{short(options.members)} members, s",
        "new group, until all have their assignment",
        "… from its first answer on",
        "all join again",
        "server's CPU when they join again",
    ]
    print_table(head, rows)


async def _join_rounds(server: Server, count_of_members: int, rounds: int) -> tuple[Joined, Joined, float]:
    """The best round of each: members join a new group, and the same members rejoin."""
    connections = await connections_to(server.address, count_of_members)
    first, again, cpu = [], [], []
    for number in range(rounds):
        members = [Member(f"joins-{number}", connection) for connection in connections]
        await await_coordinator(connections[0], members[0].group)
        first.append(await join_all(members, _TOPIC))
        before = server.cpu_seconds()
        again.append(await join_all(members, _TOPIC, round_number=1))
        cpu.append(server.cpu_seconds() - before)
    for connection in connections:
        connection.close()
    return min(first, key=_whole), min(again, key=_whole), min(cpu)


def _whole(joined: Joined) -> float:
    return joined.assignments


# ---- loads


def _loads(options: Any) -> None:
    for records in options.records:
        log = generated_log(LogShape(records, options.keys), options.cache)
        print(f"Log: {describe(log)}\n", flush=True)
        with tempfile.TemporaryDirectory(prefix="grouplake-benchmark-") as scratch:
            folder = Path(scratch, "log")
            shutil.copytree(log.directory, folder)
            ours = [our_load(log, folder) for _ in range(options.rounds)]
        with broker_with(log) as broker:
            theirs = [broker.reload() for _ in range(options.rounds)]
        assert all(load.records == records for load in (*ours, *theirs))
        rows = [_load_row("ours", ours), _load_row(f"Kafka {VERSION}", theirs)]
        head = [
            f"load of {short(records)}, s",
            "first start to last end",
            "sum over partitions",
            "start of the process to last end",
        ]
        print_table(head, rows)


def _load_row(name: str, loads: Sequence[LoadTime]) -> list[str]:
    values = (min(load.wall for load in loads), min(load.total for load in loads), min(load.since_start for load in loads))
    return [name, *(f"{value:.2f}" for value in values)]


# ---- heartbeats


def _heartbeats(options: Any) -> None:
    rows = []
    for start in _servers(("always",), _SHORT_DELAY_MS):
        with start() as server:
            beats, cpu = asyncio.run(_idle(server, options.idle, options.seconds, options.rounds))
        done = len(beats.latencies)
        latencies = (f"{beats.percentile(share) * 1e3:.2f}" for share in (0.5, 0.99))
        rows.append(
            (server.name, f"{done / beats.seconds:,.0f}", *latencies, f"{cpu / beats.seconds:.2f}", f"{cpu / done * 1e6:.0f}")
        )
    head = [f"{short(options.idle)} idle members", "heartbeats per second", "p50, ms", "p99, ms"]
    print_table([*head, "server's CPU, cores", "server's CPU, µs per heartbeat"], rows)


async def _idle(server: Server, count_of_members: int, seconds: float, rounds: int) -> tuple[Beats, float]:
    """The round with the lowest CPU time."""
    size = min(_GROUP_SIZE, count_of_members)
    groups = count_of_members // size
    connections = await connections_to(server.address, size * min(_GROUPS_AT_ONCE, groups))
    members = []
    for first in range(0, groups, _GROUPS_AT_ONCE):
        wave = [_members_of(group, size, connections) for group in range(first, min(first + _GROUPS_AT_ONCE, groups))]
        for group in wave:
            await await_coordinator(group[0].connection, group[0].group)
        await asyncio.gather(*(join_all(group, _TOPIC) for group in wave))
        members += [member for group in wave for member in group]
    found = []
    for _ in range(rounds):
        before = server.cpu_seconds()
        beats = await beat(members, _HEARTBEAT_SECONDS, seconds)
        found.append((server.cpu_seconds() - before, beats))
    for connection in connections:
        connection.close()
    cpu, best = min(found, key=lambda each: each[0])
    return best, cpu


def _members_of(group: int, size: int, connections: Sequence[Any]) -> list[Member]:
    """Members of a group on different connections, since a pending JoinGroup delays later requests of its connection."""
    first = group % _GROUPS_AT_ONCE * size
    return [Member(f"idle-{group}", connection) for connection in connections[first : first + size]]


_PARTS: dict[str, Callable[[Any], None]] = {"commits": _commits, "joins": _joins, "load": _loads, "heartbeats": _heartbeats}

if __name__ == "__main__":
    main()
