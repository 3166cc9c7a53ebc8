"""The tables' answers to the queries that a coordinator can answer too."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipelines.query.engine import Snapshot


@dataclass(frozen=True)
class Answers:
    """The tables' answers by group, without times and log positions."""

    offsets: Mapping[str, dict[tuple[str, int], tuple[int, int, str]]]
    pending: frozenset[tuple[str, str, int]]
    groups: Mapping[str, dict[str, Any]]
    members: Mapping[str, dict[str, dict[str, Any]]]
    assigned: Mapping[tuple[str, str], frozenset[tuple[str, int]]]


def answers(root: Path) -> Answers:
    """All rows under `root` that correspond to an answer of a coordinator."""
    snapshot = Snapshot.open(str(root))
    offsets: dict[str, dict[tuple[str, int], tuple[int, int, str]]] = {}
    columns = "group_id, topic, partition, committed_offset, leader_epoch, metadata"
    for row in snapshot.query(f"SELECT {columns} FROM committed_offsets").to_pylist():
        epoch = -1 if row["leader_epoch"] is None else row["leader_epoch"]
        partition = (row["topic"], row["partition"])
        offsets.setdefault(row["group_id"], {})[partition] = (row["committed_offset"], epoch, row["metadata"])
    members: dict[str, dict[str, dict[str, Any]]] = {}
    for row in snapshot.query("SELECT * FROM members").to_pylist():
        members.setdefault(row["group_id"], {})[row["member_id"]] = row
    assigned: dict[tuple[str, str], set[tuple[str, int]]] = {}
    for row in snapshot.query("SELECT group_id, member_id, topic, partition FROM assignments").to_pylist():
        assigned.setdefault((row["group_id"], row["member_id"]), set()).add((row["topic"], row["partition"]))
    pending = snapshot.query("SELECT group_id, topic, partition FROM pending_offsets").to_pylist()
    return Answers(
        offsets,
        frozenset((row["group_id"], row["topic"], row["partition"]) for row in pending),
        {row["group_id"]: row for row in snapshot.query("SELECT * FROM groups").to_pylist()},
        members,
        {member: frozenset(partitions) for member, partitions in assigned.items()},
    )
