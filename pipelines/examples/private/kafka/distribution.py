"""Class path of a Kafka broker, by version."""

from dataclasses import dataclass
from pathlib import Path

from pipelines.runtime.cache.jars import resolved_jars
from pipelines.runtime.errors import GrouplakeError
from pipelines.runtime.progress import Progress


class PrivateKafkaError(GrouplakeError):
    """A private broker cannot start or does not behave as expected. The message has cause and remedy."""


_SLF4J_SIMPLE = "org.slf4j:slf4j-simple:1.7.36"
_SLF4J_LOG4J = "org.slf4j:slf4j-log4j12:1.7.30"
# needed by old brokers to read ZooKeeper's configuration; Java 11 removed the package
_JAXB = "javax.xml.bind:jaxb-api:2.3.1"


@dataclass(frozen=True, slots=True)
class Distribution:
    """Class path of one broker version, and whether it keeps its metadata in ZooKeeper."""

    version: str
    scala: str
    extra: tuple[str, ...]
    zookeeper: bool

    @property
    def dependencies(self) -> tuple[str, ...]:
        """Maven coordinates `organisation:module:revision`."""
        return (f"org.apache.kafka:kafka_{self.scala}:{self.version}", *self.extra)


def version_tuple(version: str) -> tuple[int, ...]:
    """`"4.1.1"` → `(4, 1, 1)`. Raises PrivateKafkaError unless it consists of numbers and dots."""
    try:
        return tuple(int(part) for part in version.split("."))
    except ValueError:
        raise PrivateKafkaError(f"invalid Kafka version {version!r}: use numbers and dots, as in 4.1.1") from None


def distribution(version: str) -> Distribution:
    """The distribution of `version`: KRaft from 3.0, ZooKeeper before."""
    number = version_tuple(version)
    if number >= (3,):
        return Distribution(version, "2.13", (_SLF4J_SIMPLE,), zookeeper=False)
    if number >= (2, 4):
        return Distribution(version, "2.13", (_SLF4J_LOG4J,), zookeeper=True)
    return Distribution(version, "2.11", (_SLF4J_LOG4J, _JAXB), zookeeper=True)


def broker_jars(version: str, *, cache: Path | None = None, progress: Progress | None = None) -> Path:
    """Folder with every jar of a broker of `version`, downloaded unless the cache has it.

    Several processes can call this at the same time: the folder appears only when it is complete.
    Raises JavaError without Java, JarsError if PySpark is missing or a dependency does not resolve, and PrivateKafkaError for an
    invalid version.
    """
    return resolved_jars(f"kafka-{version}", distribution(version).dependencies, cache=cache, progress=progress)
