"""Members, producers and consumers of franz-go at the coordinator and at a broker, in turns.

The coordinator has its log in segments and, for commits, in segments of two nodes and on the broker, in a topic of 50 and in one
of 8 partitions. All servers run during the whole benchmark, and each round measures one after the other.
"""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks.arguments import count, parser
from benchmarks.brokers import JVM, VERSION
from benchmarks.coordinators import Server
from benchmarks.franz_clients import Load, clients_program, run_clients
from benchmarks.logs import PARTITIONS
from benchmarks.report import print_machine, print_table
from pipelines.examples.private.kafka.broker import PrivateBroker
from pipelines.examples.private.private_coordinator import PrivateCoordinator

_ASSIGNED, _RECORDS = "assigned", "records"
_GROUP_SIZE = 10
#: Partitions that a member owns and commits.
_SHARE = 4
_DATA_PARTITIONS = 10
_PACED = 1_000
_PRODUCERS = 50
_LOG_ON_BROKER = "ours, log on Kafka"
_NODES = "ours, two nodes"
#: They serve groups only.
_WITHOUT_DATA = (_LOG_ON_BROKER, _NODES)
#: Of a log on the broker: with fewer, a transaction has the commits of more groups.
_LOG_PARTITIONS = (PARTITIONS, 8)
#: Defaults of Kafka's producer: `batch.size` and, since 4.0, `linger.ms`.
_DEFAULT_BATCHES: Mapping[str, float | str] = {"batch_bytes": 16_384, "linger": "5ms"}


@dataclass(frozen=True, slots=True)
class _Measurement:
    """A load and its unit; `options` are flags of the clients."""

    label: str
    unit: str
    mode: str
    topic: str
    clients: int
    options: Mapping[str, float | str] = field(default_factory=dict)


def main(arguments: list[str] | None = None) -> None:
    parsing = parser(__doc__, records="0", keys="0", rounds=3)
    parsing.add_argument("--only", nargs="+", choices=_PARTS, default=_PARTS, help="parts to run (default: all)")
    parsing.add_argument("--seconds", type=float, default=5.0, help="length of one measurement (default 5)")
    parsing.add_argument("--members", type=count, default=200, help="members, in groups of 10 (default 200)")
    parsing.add_argument("--fsync", default="interval", help="fsync of the coordinator (default interval)")
    parsing.add_argument("--without-broker", action="store_true", help="measure the coordinator only")
    options = parsing.parse_args(arguments)
    print_machine("confluent-kafka")
    try:
        clients_program()
    except FileNotFoundError as error:
        # the other benchmarks of `make bench` follow
        print(f"skipped: {error}")
        return
    with _servers(options.fsync, with_broker=not options.without_broker) as servers:
        for part in options.only:
            for measurement in _measurements(options.members)[part]:
                able = [each for each in servers if measurement.topic != _RECORDS or not each.name.startswith(_WITHOUT_DATA)]
                _measure(measurement, able, options.seconds, options.rounds)


def _measurements(members: int) -> dict[str, list[_Measurement]]:
    group: dict[str, float | str] = {"group_size": min(_GROUP_SIZE, members), "warmup": "2s"}
    commits = f"{members} members, {_SHARE} partitions each"
    return {
        "commits": [
            _Measurement(f"{commits}, closed loop", "commit", "commit", _ASSIGNED, members, group),
            _Measurement(f"{commits}, {_PACED:,}/s", "commit", "commit", _ASSIGNED, members, group | {"rate": _PACED}),
        ],
        "produce": [_Measurement("idempotent, 1 KiB", "record", "produce", _RECORDS, _PRODUCERS, _DEFAULT_BATCHES)],
        "fetch": [_Measurement("4 consumers, 1 KiB", "record", "fetch", _RECORDS, 4)],
        "transactions": [
            _Measurement("1 producer", "transaction", "transact", _RECORDS, 1),
            _Measurement(f"{_PRODUCERS} producers", "transaction", "transact", _RECORDS, _PRODUCERS),
        ],
    }


_PARTS = list(_measurements(0))


def _measure(measurement: _Measurement, servers: Sequence[Server], seconds: float, rounds: int) -> None:
    found: dict[str, list[Load]] = {server.name: [] for server in servers}
    for number in range(1 + rounds):
        for server in servers:
            options: dict[str, Any] = {"clients": measurement.clients, **measurement.options}
            load = run_clients(server, measurement.mode, measurement.topic, seconds, **options)
            # a JVM that has just started would still be compiling in the first round
            if number:
                found[server.name].append(load)
    unit = measurement.unit
    head = [measurement.label, f"{unit}s/s", "p50, ms", "p99, ms", f"server's CPU, µs per {unit}", f"{unit}s per batch"]
    head += ["server's CPU, cores", "clients' CPU, cores"]
    print_table(head, [_row(name, loads) for name, loads in found.items()])


def _row(name: str, loads: Sequence[Load]) -> list[str]:
    """The medians of all rounds."""
    batches = sum(load.batches for load in loads)
    return [
        name,
        f"{median(load.per_second for load in loads):,.0f}",
        f"{median(load.p50_ms for load in loads):,.1f}",
        f"{median(load.p99_ms for load in loads):,.1f}",
        f"{median(load.server_us for load in loads):,.0f}",
        f"{sum(load.done for load in loads) / batches:.1f}" if batches else "",
        f"{median(load.server_cpu / load.seconds for load in loads):.2f}",
        f"{median(load.client_cpu / load.seconds for load in loads):.2f}",
    ]


@contextmanager
def _servers(fsync: str, *, with_broker: bool) -> Iterator[list[Server]]:
    assigned = _GROUP_SIZE * _SHARE
    topics: dict[str, Any] = {_ASSIGNED: assigned, _RECORDS: {"partitions": _DATA_PARTITIONS, "data": True}}
    with ExitStack() as running:
        scratch = running.enter_context(tempfile.TemporaryDirectory(prefix="grouplake-benchmark-"))
        coordinator = running.enter_context(PrivateCoordinator(Path(scratch, "log"), topics=topics, fsync=fsync))
        servers = [Server(f"ours, fsync {fsync}", coordinator.bootstrap, coordinator.pid)]
        several = PrivateCoordinator(Path(scratch, "nodes"), topics={_ASSIGNED: assigned}, fsync=fsync, nodes=2)
        nodes = running.enter_context(several)
        servers.append(Server(_NODES, nodes.bootstrap, nodes.pid, tuple(nodes.node_pids)))
        if with_broker:
            properties = {"transaction.state.log.num.partitions": str(PARTITIONS)}
            private = PrivateBroker(VERSION, offsets_partitions=PARTITIONS, properties=properties, jvm_arguments=JVM)
            broker = running.enter_context(private)
            admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
            new = [NewTopic(_ASSIGNED, assigned, 1), NewTopic(_RECORDS, _DATA_PARTITIONS, 1)]
            for made in admin.create_topics(new).values():
                made.result(60)
            servers.append(Server(f"Kafka {VERSION}", broker.bootstrap, broker.pid))
            servers += [running.enter_context(_node(broker, Path(scratch), partitions)) for partitions in _LOG_PARTITIONS]
        yield servers


@contextmanager
def _node(broker: PrivateBroker, scratch: Path, partitions: int) -> Iterator[Server]:
    """A node with its log in a topic of the broker. It has a topic without data: it stores no records of clients."""
    node = PrivateCoordinator(
        scratch / f"node-{partitions}",
        topics={_ASSIGNED: _GROUP_SIZE * _SHARE},
        log=f"kafka://{broker.bootstrap}/grouplake_offsets_{partitions}",
        offsets_topic_num_partitions=partitions,
    )
    with node:
        node.wait_until_active(partitions)
        yield Server(f"{_LOG_ON_BROKER}, {partitions} partitions", node.bootstrap, node.pid)


if __name__ == "__main__":
    main()
