"""Records of offset commits: types 0 (0.8.2) and 1."""

from dataclasses import dataclass
from uuid import UUID

Tags = tuple[tuple[int, bytes], ...]

#: Kafka's `Uuid.ZERO_UUID`: "no topic id".
ZERO_UUID = UUID(int=0)


@dataclass(frozen=True, slots=True)
class OffsetCommitKey:
    """Key of types 0 and 1; both name the same entry of the coordinator's cache."""

    group: str
    topic: str
    partition: int


@dataclass(frozen=True, slots=True)
class OffsetCommitValue:
    """A committed offset (versions 0–4). Timestamps in ms since the epoch; -1 means "none"."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    commit_timestamp: int = -1
    expire_timestamp: int = -1
    topic_id: UUID = ZERO_UUID
    unknown_tags: Tags = ()
