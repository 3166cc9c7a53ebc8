"""A single-node Kafka broker on 127.0.0.1: with KRaft from 3.0, with its own ZooKeeper before."""

import shutil
import tempfile
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from types import TracebackType

from pipelines.examples.private.kafka.configuration import (
    HOST,
    ZOOKEEPER_SESSION_MS,
    Ports,
    Quorum,
    broker_properties,
    logging_arguments,
    write_properties,
    zookeeper_properties,
)
from pipelines.examples.private.kafka.distribution import PrivateKafkaError, broker_jars, distribution, version_tuple
from pipelines.examples.private.kafka.ports import PortReservation
from pipelines.examples.private.kafka.probe import has_brokers, listens
from pipelines.examples.private.kafka.process import JavaProcess, Keeper, java_command
from pipelines.examples.private.kafka.storage import new_cluster_id, new_storage
from pipelines.runtime.progress import Progress

DEFAULT_VERSION = "4.1.1"
START_LIMIT_SECONDS = 90
_LOG_TAIL_LINES = 15

#: Checkpoints of a data folder, which would contradict segment files that were copied into it.
_STALE_FILES = (
    "recovery-point-offset-checkpoint",
    "replication-offset-checkpoint",
    "log-start-offset-checkpoint",
    "cleaner-offset-checkpoint",
    ".kafka_cleanshutdown",
)
_KEPT_BESIDE_SEGMENTS = frozenset({"partition.metadata"})


class PrivateBroker:
    """A broker with a temporary folder. Both are removed by `close`, or when this process ends.

    `offsets_partitions` partitions of `__consumer_offsets`; `properties` override any broker setting (`{port}` in a value stands
    for the client port; `"listeners"` for another security protocol); `scram_users` user → password, added to new KRaft storage
    with SCRAM-SHA-256; `jvm_arguments` additional arguments of the JVM; `node_id` and `quorum` for a broker of a larger cluster.
    `with PrivateBroker(...) as broker:` starts the broker, and removes it at the end.
    Raises PrivateKafkaError, with the end of its log, if it cannot start.
    """

    def __init__(
        self,
        version: str = DEFAULT_VERSION,
        *,
        offsets_partitions: int = 4,
        properties: Mapping[str, str] | None = None,
        scram_users: Mapping[str, str] | None = None,
        jvm_arguments: tuple[str, ...] = (),
        node_id: int = 1,
        quorum: Quorum | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.version = version
        self._number = version_tuple(version)
        self._distribution = distribution(version)
        self._offsets_partitions = offsets_partitions
        self._properties = dict(properties or {})
        self._scram_users = dict(scram_users or {})
        self._jvm_arguments = jvm_arguments
        self._node_id = node_id
        self._quorum = quorum
        self._progress = progress
        self._jars = broker_jars(version, progress=progress)
        self._folder = Path(tempfile.mkdtemp(prefix=f"private-kafka-{version}-"))
        self._keeper = Keeper(self._folder)
        self._reserved = PortReservation(HOST), PortReservation(HOST)
        self._ports = Ports(*(reserved.port for reserved in self._reserved))
        self._log = self._folder / "broker.log"
        self._zookeeper_log = self._folder / "zookeeper.log"
        self._broker: JavaProcess | None = None
        self._zookeeper: JavaProcess | None = None
        self._session_ends_at = 0.0

    def __enter__(self) -> "PrivateBroker":
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    @property
    def bootstrap(self) -> str:
        """`127.0.0.1:PORT`; a restart keeps it."""
        return f"{HOST}:{self._ports.broker}"

    @property
    def data(self) -> Path:
        """The broker's log folder (`log.dirs`), with one folder per partition."""
        return self._folder / "data"

    @property
    def pid(self) -> int:
        """Process id of the running broker."""
        if self._broker is None:
            raise PrivateKafkaError("the broker was never started: call start() first")
        return self._broker.pid

    @property
    def jars(self) -> Path:
        """The folder with the broker's jars."""
        return self._jars

    @property
    def running(self) -> bool:
        return self._broker is not None and self._broker.exit_code is None

    @property
    def exit_code(self) -> int | None:
        """Exit code of the broker that was started last; None while it runs."""
        return None if self._broker is None else self._broker.exit_code

    def start(self) -> None:
        """Start, and return when the broker answers. A broker that was stopped or killed keeps its data."""
        if self.running:
            return
        if self._progress:
            self._progress(f"starting Kafka {self.version} on {self.bootstrap}")
        if self._distribution.zookeeper:
            self._start_zookeeper()
            # until the session of a killed broker ends, ZooKeeper keeps its id, and a new broker with that id exits
            time.sleep(max(0.0, self._session_ends_at - time.monotonic()))
        configuration = self._write_configuration()
        self._broker = JavaProcess(
            java_command(
                self._jars, "kafka.Kafka", [str(configuration)], [*logging_arguments(self._folder), *self._jvm_arguments]
            ),
            self._log,
        )
        self._wait_until(self._answers, self._broker, self._log, f"Kafka {self.version}")

    def stop(self) -> None:
        """Shut the broker down cleanly, and keep its data. Its ZooKeeper keeps running."""
        if self._broker is not None:
            self._broker.stop()

    def kill(self) -> None:
        """Kill the broker with SIGKILL, and keep its data."""
        if self._broker is not None:
            self._broker.kill()
            self._session_ends_at = time.monotonic() + 1.5 * ZOOKEEPER_SESSION_MS / 1000

    def restart(self) -> None:
        """Stop cleanly and start again, on the same port with the same data."""
        self.stop()
        self.start()

    def close(self) -> None:
        """End every process and remove every file."""
        self.kill()
        if self._zookeeper is not None:
            self._zookeeper.kill()
        self._keeper.release()
        for reserved in self._reserved:
            reserved.release()

    def place_segments(self, source: Path, topic: str = "__consumer_offsets", suffixes: Collection[str] = (".log",)) -> list[int]:
        """Replace the logs of `topic` by files in `source/TOPIC-N/` with these suffixes. The broker loads them when it starts.

        The broker must be stopped, and must already have the topic with enough partitions: a broker ignores logs of partitions
        that its metadata does not have. Returns the partitions that were replaced. Raises PrivateKafkaError if a condition fails.
        """
        if self.running:
            raise PrivateKafkaError("the broker runs: stop it before its segments are replaced")
        folders = sorted(source.glob(f"{topic}-[0-9]*"))
        if not folders:
            raise PrivateKafkaError(f"no {topic}-N folder in {source}")
        for folder in folders:
            target = self.data / folder.name
            if not target.is_dir():
                raise PrivateKafkaError(f"the broker has no {folder.name}: create the topic with enough partitions first")
            for old in target.iterdir():
                if old.name not in _KEPT_BESIDE_SEGMENTS:
                    old.unlink()
            for path in folder.iterdir():
                if path.suffix in suffixes:
                    shutil.copyfile(path, target / path.name)
        for name in _STALE_FILES:
            (self.data / name).unlink(missing_ok=True)
        return sorted(int(folder.name.rpartition("-")[2]) for folder in folders)

    def _write_configuration(self) -> Path:
        first = not self.data.exists()
        self.data.mkdir(exist_ok=True)
        properties = broker_properties(
            self._number,
            self._ports,
            self.data,
            offsets_partitions=self._offsets_partitions,
            zookeeper=self._distribution.zookeeper,
            node_id=self._node_id,
            quorum=self._quorum,
            overrides=self._properties,
        )
        path = write_properties(self._folder / "server.properties", properties)
        if first and not self._distribution.zookeeper:
            cluster_id = self._quorum.cluster_id if self._quorum else new_cluster_id()
            new_storage(self.version, self._jars, path, properties, cluster_id, self._scram_users)
        return path

    def _start_zookeeper(self) -> None:
        if self._zookeeper is not None and self._zookeeper.exit_code is None:
            return
        data = self._folder / "zookeeper"
        data.mkdir(exist_ok=True)
        path = write_properties(self._folder / "zookeeper.properties", zookeeper_properties(self._ports.second, data))
        main_class = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        jvm_arguments = [*logging_arguments(self._folder), "-Dzookeeper.admin.enableServer=false"]
        self._zookeeper = JavaProcess(java_command(self._jars, main_class, [str(path)], jvm_arguments), self._zookeeper_log)
        self._wait_until(lambda: listens(self._ports.second), self._zookeeper, self._zookeeper_log, "ZooKeeper")

    def _answers(self) -> bool:
        if "listeners" in self._properties:
            return listens(self._ports.broker)
        return has_brokers(self._ports.broker)

    def _wait_until(self, ready: Callable[[], bool], process: JavaProcess, log: Path, what: str) -> None:
        deadline = time.monotonic() + START_LIMIT_SECONDS
        while not ready():
            if process.exit_code is not None:
                raise PrivateKafkaError(
                    f"{what} exited with code {process.exit_code} during its start; the end of its log:\n{log_tail(log)}"
                )
            if time.monotonic() > deadline:
                raise PrivateKafkaError(
                    f"{what} does not answer after {START_LIMIT_SECONDS} s; the end of its log:\n{log_tail(log)}"
                )
            time.sleep(0.1)


def log_tail(log: Path) -> str:
    """The last lines of a log."""
    return "\n".join(log.read_text(errors="replace").splitlines()[-_LOG_TAIL_LINES:]) if log.exists() else "(empty)"
