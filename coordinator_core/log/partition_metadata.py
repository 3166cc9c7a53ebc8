"""`partition.metadata`: the file with the topic id of a partition (KIP-516, `PartitionMetadataFile`)."""

import re
from pathlib import Path
from uuid import UUID

from coordinator_core.codec.uuids import uuid_from_text, uuid_text

#: Folders being created, moved or deleted have a suffix and do not match.
_PARTITION_FOLDER = re.compile(r"(?P<topic>.+)-(?P<partition>\d+)")
_TOPIC_ID = re.compile(r"^topic_id: (?P<id>[A-Za-z0-9_-]{22})$", re.MULTILINE)


def partition_of(folder: str) -> tuple[str, int] | None:
    """Topic and partition in the name of a folder of a log directory, None for other folders."""
    match = _PARTITION_FOLDER.fullmatch(folder)
    return (match["topic"], int(match["partition"])) if match else None


def parse_topic_id(text: str) -> UUID | None:
    """Return the topic id in the contents of the file, None for invalid contents."""
    match = _TOPIC_ID.search(text)
    if match is None:
        return None
    try:
        return uuid_from_text(match["id"])
    except ValueError:
        return None


def format_topic_id(topic_id: UUID) -> str:
    """Return the contents of the file for a topic id."""
    return f"version: 0\ntopic_id: {uuid_text(topic_id)}"


def read_topic_ids(log_directory: Path) -> dict[UUID, str]:
    """Names of the topic ids in `log_directory`. Unreadable files are skipped."""
    found: dict[UUID, str] = {}
    for path in sorted(log_directory.glob("*/partition.metadata")):
        named = partition_of(path.parent.name)
        try:
            topic_id = parse_topic_id(path.read_text(errors="replace"))
        except OSError:
            continue
        if named is not None and topic_id is not None:
            found[topic_id] = named[0]
    return found
