"""Topics of the configuration: without data, or with data and their configs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from coordinator_core.segment_log.topic_config import TopicConfig
from coordinator_core.segment_log.topics_file import MOST_PARTITIONS, is_topic_name


@dataclass(frozen=True, slots=True)
class DeclaredTopic:
    """A topic of the configuration. `config` has the configs of a topic with data."""

    partitions: int
    has_data: bool = False
    config: TopicConfig = field(default_factory=lambda: TopicConfig(MappingProxyType({})))


def topic_name_problem(name: str) -> str | None:
    """Return what is wrong with the name of a topic, None for a valid one."""
    if not is_topic_name(name):
        return f"invalid topic name {name!r}: use 1–249 letters, digits, '.', '_' or '-'"
    return None


def declared_topic(name: str, value: object) -> DeclaredTopic:
    """Read a value of `[coordinator.topics]`: the number of partitions, or a table with `partitions`, `data` and configs.

    Configs have Kafka's names, with underscores for dots. Raises ValueError.
    """
    problem = topic_name_problem(name)
    if problem is not None:
        raise ValueError(f"topics: {problem}")
    if isinstance(value, DeclaredTopic):
        return value
    table: Mapping[str, Any] = value if isinstance(value, Mapping) else {"partitions": value}
    partitions, has_data = table.get("partitions", 1), table.get("data", False)
    if type(partitions) is not int or not 1 <= partitions <= MOST_PARTITIONS:
        raise ValueError(f"topics: {name} has {partitions!r} partitions: use 1–{MOST_PARTITIONS}")
    if type(has_data) is not bool:
        raise ValueError(f"topics: {name}.data is {has_data!r}: use true or false")
    configs = {key.replace("_", "."): _text(value) for key, value in table.items() if key not in ("partitions", "data")}
    if configs and not has_data:
        raise ValueError(f"topics: {name} has configs, but no data: set data = true")
    try:
        return DeclaredTopic(partitions, has_data, TopicConfig(configs))
    except ValueError as error:
        raise ValueError(f"topics: {name}: {error}") from error


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
