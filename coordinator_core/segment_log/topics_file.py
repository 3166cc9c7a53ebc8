"""The file `topics.json`: names, ids, partitions and configs of the topics with data, replaced at each change."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

from coordinator_core.codec.uuids import uuid_from_text, uuid_text
from coordinator_core.log.file_replacement import replace_file
from coordinator_core.segment_log.errors import LogDamaged
from coordinator_core.segment_log.topic_config import TopicConfig

TOPICS_FILE = "topics.json"
#: Topic names that Kafka allows (`Topic.validate`).
_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")
MOST_PARTITIONS = 100_000
_VERSION = 1


class StoredTopic(NamedTuple):
    """A topic of the file."""

    topic_id: UUID
    partitions: int
    config: TopicConfig


def is_topic_name(name: str) -> bool:
    """Whether Kafka allows this name. It is then also a safe part of the name of a folder."""
    return _NAME.fullmatch(name) is not None and name not in (".", "..")


def read_topics(path: Path) -> dict[str, StoredTopic]:
    """Return the topics by name, none for a missing file. Raises LogDamaged for an unreadable one, OSError."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return {}
    try:
        rows = json.loads(data)["topics"]
        return {name: _stored_topic(name, row) for name, row in rows.items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise LogDamaged(f"{path}: unreadable list of topics: {error}; restore the file") from error


def _stored_topic(name: str, row: Any) -> StoredTopic:
    partitions, configs = row["partitions"], row["configs"]
    if not is_topic_name(name):
        raise ValueError(f"invalid topic name {name!r}")
    if type(partitions) is not int or not 1 <= partitions <= MOST_PARTITIONS:
        raise ValueError(f"{name} has {partitions!r} partitions")
    if not all(isinstance(value, str) for value in configs.values()):
        raise ValueError(f"{name} has a config that is not a text")
    return StoredTopic(uuid_from_text(row["topic_id"]), partitions, TopicConfig(configs))


def write_topics(path: Path, topics: Mapping[str, StoredTopic]) -> None:
    """Replace the file durably; the caller must sync the folder to make the new name durable. Raises OSError."""
    rows = {
        name: {"topic_id": uuid_text(topic.topic_id), "partitions": topic.partitions, "configs": dict(topic.config.values)}
        for name, topic in topics.items()
    }
    replace_file(path, json.dumps({"version": _VERSION, "topics": rows}, indent=1).encode())
