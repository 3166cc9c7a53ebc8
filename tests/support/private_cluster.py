"""Several KRaft brokers on 127.0.0.1 with a separate controller, so that tests can stop any broker and move leaders."""

import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from eventually import eventually

from pipelines.examples.private.kafka.broker import DEFAULT_VERSION, START_LIMIT_SECONDS, PrivateBroker, log_tail
from pipelines.examples.private.kafka.configuration import HOST, SESSION_MS, Quorum, logging_arguments, write_properties
from pipelines.examples.private.kafka.distribution import broker_jars
from pipelines.examples.private.kafka.ports import PortReservation
from pipelines.examples.private.kafka.probe import listens
from pipelines.examples.private.kafka.process import JavaProcess, Keeper, java_command
from pipelines.examples.private.kafka.storage import new_cluster_id, new_storage

_CONTROLLER_ID = 100


class PrivateCluster:
    """`count` brokers with node ids from 1, a replica of every topic on each, and a controller. A context manager.

    `properties` override settings of all brokers, `own_properties` of each one, in their order. A broker without a heartbeat
    for `session_ms` loses its partitions. Fails with the end of its log if a node cannot start.
    """

    def __init__(
        self,
        count: int = 2,
        version: str = DEFAULT_VERSION,
        *,
        offsets_partitions: int = 4,
        properties: Mapping[str, str] | None = None,
        own_properties: Sequence[Mapping[str, str]] = (),
        session_ms: str = SESSION_MS,
    ) -> None:
        self._version = version
        self._jars = broker_jars(version)
        self._folder = Path(tempfile.mkdtemp(prefix=f"private-kafka-{version}-controller-"))
        self._keeper = Keeper(self._folder)
        self._reserved = PortReservation()
        self._quorum = Quorum(new_cluster_id(), _CONTROLLER_ID, self._reserved.port)
        self._controller: JavaProcess | None = None
        self._session_ms = session_ms
        replicated = {
            "broker.session.timeout.ms": session_ms,
            "default.replication.factor": str(count),
            "offsets.topic.replication.factor": str(count),
            "transaction.state.log.replication.factor": str(count),
            # a stopped replica leaves the in-sync set after this time
            "replica.lag.time.max.ms": "3000",
            "replica.fetch.wait.max.ms": "100",
        }
        self.brokers = tuple(
            PrivateBroker(
                version,
                offsets_partitions=offsets_partitions,
                properties=replicated | dict(properties or {}) | dict(own_properties[number - 1] if own_properties else {}),
                node_id=number,
                quorum=self._quorum,
            )
            for number in range(1, count + 1)
        )

    def __enter__(self) -> "PrivateCluster":
        try:
            self._start_controller()
            with ThreadPoolExecutor(len(self.brokers)) as pool:
                list(pool.map(PrivateBroker.start, self.brokers))
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def bootstrap(self) -> str:
        """`127.0.0.1:PORT,127.0.0.1:PORT…`"""
        return ",".join(broker.bootstrap for broker in self.brokers)

    def close(self) -> None:
        """End every process and remove every file."""
        for broker in self.brokers:
            broker.close()
        if self._controller is not None:
            self._controller.kill()
        self._keeper.release()
        self._reserved.release()

    def _start_controller(self) -> None:
        data = self._folder / "data"
        data.mkdir()
        properties = _controller_properties(self._quorum, data, self._session_ms)
        configuration = write_properties(self._folder / "server.properties", properties)
        new_storage(self._version, self._jars, configuration, properties, self._quorum.cluster_id, {})
        log = self._folder / "controller.log"
        command = java_command(self._jars, "kafka.Kafka", [str(configuration)], logging_arguments(self._folder))
        self._controller = controller = JavaProcess(command, log)
        eventually(
            "the controller listens",
            lambda: listens(self._quorum.port),
            unless=lambda: None if controller.exit_code is None else log_tail(log),
            patience_seconds=START_LIMIT_SECONDS,
        )


def _controller_properties(quorum: Quorum, data: Path, session_ms: str) -> dict[str, str]:
    """`server.properties` of a node that is only a controller."""
    return {
        "node.id": str(quorum.node_id),
        "process.roles": "controller",
        "controller.quorum.voters": quorum.voters,
        "controller.listener.names": "CONTROLLER",
        "listeners": f"CONTROLLER://{HOST}:{quorum.port}",
        "broker.session.timeout.ms": session_ms,
        "log.dirs": str(data),
    }


def linked_listeners(ports: Mapping[int, tuple[int, int]]) -> dict[str, str]:
    """Settings of a broker with one listener for each node of ours, which names the port of a proxy as its own.

    `ports` has the port of the proxy and that of the listener.
    """
    own, names = f"PLAINTEXT://{HOST}:{{port}}", ["PLAINTEXT", "CONTROLLER", *(f"NODE{node}" for node in ports)]
    return {
        "listeners": ",".join([own, *(f"NODE{node}://{HOST}:{server}" for node, (_, server) in ports.items())]),
        "advertised.listeners": ",".join([own, *(f"NODE{node}://{HOST}:{link}" for node, (link, _) in ports.items())]),
        "listener.security.protocol.map": ",".join(f"{name}:PLAINTEXT" for name in names),
        "inter.broker.listener.name": "PLAINTEXT",
    }
