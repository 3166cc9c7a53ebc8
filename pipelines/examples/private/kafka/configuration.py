"""Configuration files of brokers, controllers and ZooKeeper, and their logging."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

HOST = "127.0.0.1"
ZOOKEEPER_SESSION_MS = 3000
#: A killed broker can start again when its session at the controller has expired.
SESSION_MS = "1500"

#: For a small broker and quick tests: one replica, no initial rebalance delay, a small buffer of the log cleaner.
_COMMON = {
    "num.partitions": "1",
    "default.replication.factor": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "2",
    "group.initial.rebalance.delay.ms": "0",
    "log.cleaner.dedupe.buffer.size": "4194304",
    "num.network.threads": "2",
    "num.io.threads": "4",
    "num.recovery.threads.per.data.dir": "2",
    "log.segment.delete.delay.ms": "1000",
}

_SHARE_STATE = {
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
}

_LOG4J = """log4j.rootLogger=WARN, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d %p %m (%c)%n
"""

_SIMPLE_LOGGER = {
    "org.slf4j.simpleLogger.defaultLogLevel": "warn",
    "org.slf4j.simpleLogger.showDateTime": "true",
    "org.slf4j.simpleLogger.dateTimeFormat": "yyyy-MM-dd HH:mm:ss.SSS",
}


#: Members of a KIP-848 group receive a new assignment with their next heartbeat, by default up to 5 s later.
_CONSUMER_PROTOCOL = {
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "200",
}


@dataclass(frozen=True, slots=True)
class Ports:
    """Ports on 127.0.0.1. `second` is the controller's (KRaft) or ZooKeeper's."""

    broker: int
    second: int


@dataclass(frozen=True, slots=True)
class Quorum:
    """The KRaft controller of a cluster of several nodes."""

    cluster_id: str
    node_id: int
    port: int

    @property
    def voters(self) -> str:
        """`controller.quorum.voters`."""
        return f"{self.node_id}@{HOST}:{self.port}"


def broker_properties(
    version: tuple[int, ...],
    ports: Ports,
    data: Path,
    *,
    offsets_partitions: int,
    zookeeper: bool,
    node_id: int,
    quorum: Quorum | None,
    overrides: Mapping[str, str],
) -> dict[str, str]:
    """`server.properties` as a dict; `overrides` take precedence, and an override of "" removes a setting.

    Without a `quorum` a KRaft broker is its own controller.
    """
    listeners = overrides.get("listeners", f"PLAINTEXT://{HOST}:{ports.broker}").format(port=ports.broker)
    properties = _COMMON | {"offsets.topic.num.partitions": str(offsets_partitions), "log.dirs": str(data)}
    if zookeeper:
        properties |= {
            "broker.id": str(node_id),
            "zookeeper.connect": f"{HOST}:{ports.second}",
            # the session of a killed broker must expire soon, since it blocks the next broker with its id
            "zookeeper.session.timeout.ms": str(ZOOKEEPER_SESSION_MS),
            "zookeeper.connection.timeout.ms": "20000",
        }
    else:
        properties |= {
            "node.id": str(node_id),
            "process.roles": "broker" if quorum else "broker,controller",
            "controller.quorum.voters": quorum.voters if quorum else f"{node_id}@{HOST}:{ports.second}",
            "controller.listener.names": "CONTROLLER",
            "broker.heartbeat.interval.ms": "300",
            "broker.session.timeout.ms": SESSION_MS,
        }
        properties |= _CONSUMER_PROTOCOL if version >= (4, 0) else {}
        properties |= _SHARE_STATE if version >= (4, 1) else {}
    properties |= {"advertised.listeners": listeners}
    properties |= {name: value.format(port=ports.broker) for name, value in overrides.items() if name != "listeners"}
    properties["listeners"] = listeners if zookeeper or quorum else f"{listeners},CONTROLLER://{HOST}:{ports.second}"
    return {name: value for name, value in properties.items() if value}


def zookeeper_properties(port: int, data: Path) -> dict[str, str]:
    """`zoo.cfg` as a dict: one server, without the admin port."""
    return {
        "dataDir": str(data),
        "clientPort": str(port),
        "clientPortAddress": HOST,
        "maxClientCnxns": "0",
        "tickTime": "1000",
        "admin.enableServer": "false",
    }


def write_properties(path: Path, properties: Mapping[str, str]) -> Path:
    """Write a Java properties file, and return its path."""
    path.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
    return path


def logging_arguments(folder: Path) -> list[str]:
    """JVM arguments that limit the log to warnings, for log4j 1 and slf4j-simple; the broker uses the one on its class path."""
    log4j = folder / "log4j.properties"
    log4j.write_text(_LOG4J)
    return [f"-Dlog4j.configuration=file:{log4j}", *(f"-D{name}={value}" for name, value in _SIMPLE_LOGGER.items())]
