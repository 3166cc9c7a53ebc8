"""Members and states of groups, as `kafka-consumer-groups --describe --members` and `--state` of Kafka 4.x print them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TextIO

import pyarrow as pa

from coordinator_core.codec import Record, Undecodable, decode
from coordinator_core.codec.messages.consumer import ConsumerGroupMemberMetadataValue
from coordinator_core.codec.messages.modern import MemberKey, TargetAssignmentMetadataValue
from pipelines.lag.reports.lag_report import require_groups
from pipelines.query.engine import Snapshot
from pipelines.query.kafka_layout import cell, write_block, write_remark
from pipelines.tables.store import literal

_GROUPS = "SELECT group_id, group_type, state, generation, protocol, member_count, log_partition FROM groups"
_MEMBERS = """
SELECT group_id, member_id, group_instance_id, client_id, client_host, member_epoch, assigned, target FROM members
"""
#: A coordinator leads the partition that has the records of the group.
_COORDINATORS = """
SELECT p.partition, concat(b.host, ':', CAST(b.port AS STRING), '  (', CAST(b.node_id AS STRING), ')') AS coordinator
FROM topic_partitions p JOIN brokers b ON b.node_id = p.leader WHERE p.topic = '__consumer_offsets'
"""
#: ConsumerGroupMemberMetadata and ConsumerGroupTargetAssignmentMetadata.
_RECORDS = "SELECT group_id, key, value FROM group_records WHERE record_type IN (5, 6)"

_Row = Mapping[str, Any]


@dataclass(frozen=True)
class GroupDescriptions:
    """Groups with their members, sorted by name, at one batch.

    `coordinators` are by partition of `__consumer_offsets`, as of the last sample, and empty without samples of a cluster.
    `assignment_epochs` and `upgraded` come from the records of groups of the consumer protocol: the target epoch of the group,
    and the members that use this protocol, not the classic one.
    """

    groups: tuple[_Row, ...]
    members: Mapping[str, tuple[_Row, ...]]
    topics: Mapping[str, str]
    coordinators: Mapping[int, str]
    assignment_epochs: Mapping[str, int]
    upgraded: Mapping[tuple[str, str], bool]

    @classmethod
    def of(cls, snapshot: Snapshot, groups: Sequence[str]) -> "GroupDescriptions":
        """These groups; all groups if none is named.

        Raises:
            UsageError: a named group does not exist.
        """
        named = f" group_id IN ({', '.join(map(literal, groups))})" if groups else " TRUE"
        found = snapshot.query(f"{_GROUPS} WHERE{named} ORDER BY group_id").to_pylist()
        require_groups(groups, {row["group_id"] for row in found}, snapshot)
        members: dict[str, list[_Row]] = {row["group_id"]: [] for row in found}
        for row in snapshot.query(f"{_MEMBERS} WHERE{named} ORDER BY group_id, member_id").to_pylist():
            members[row["group_id"]].append(row)
        topics = {row["topic_id"]: row["topic"] for row in snapshot.query("SELECT topic_id, topic FROM topic_ids").to_pylist()}
        is_sampled = "topic_partitions" in snapshot.batch.versions
        coordinators = snapshot.query(_COORDINATORS).to_pylist() if is_sampled else []
        records = snapshot.query(f"{_RECORDS} AND{named}").to_pylist()
        decoded = [(row["group_id"], decode(row["key"], row["value"])) for row in records]
        return cls(
            tuple(found),
            {group: tuple(rows) for group, rows in members.items()},
            topics,
            {row["partition"]: row["coordinator"] for row in coordinators},
            *_epochs_and_upgraded(decoded),
        )

    def write_members(self, out: TextIO, messages: TextIO, *, verbose: bool = False) -> None:
        """Write a block of members for each group, and remarks about groups to `messages`."""
        for group in self.groups:
            members = self.members[group["group_id"]]
            write_remark(messages, group["group_id"], group["state"], group["member_count"])
            rows = [self._member_cells(group, member) for member in members]
            end: str | None
            columns, end = ["GROUP", "CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS"], " "
            if any(member["group_instance_id"] for member in members):
                columns.insert(2, "GROUP-INSTANCE-ID")
            if verbose:
                columns, end = [*columns, "CURRENT-EPOCH", "CURRENT-ASSIGNMENT", "TARGET-EPOCH", "TARGET-ASSIGNMENT"], ""
                if {row["UPGRADED"] for row in rows} == {"true", "false"}:
                    columns, end = [*columns, "UPGRADED"], None
            write_block(out, rows, columns, end=end)

    def write_states(self, out: TextIO, messages: TextIO, *, verbose: bool = False) -> None:
        """Write a block with the state of each group, and remarks about groups to `messages`."""
        columns = ["GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE"]
        columns += ["GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH", "#MEMBERS"] if verbose else ["#MEMBERS"]
        for group in self.groups:
            write_remark(messages, group["group_id"], group["state"], group["member_count"])
            write_block(out, [self._state_cells(group)], columns)

    def member_table(self) -> pa.Table:
        """The members as rows, for other formats."""
        return pa.Table.from_pylist([member for group in self.groups for member in self.members[group["group_id"]]])

    def state_table(self) -> pa.Table:
        """The groups as rows, for other formats."""
        return pa.Table.from_pylist(list(self.groups))

    def _member_cells(self, group: _Row, member: _Row) -> dict[str, str]:
        is_modern = group["group_type"] != "classic"
        name = group["group_id"]
        return {
            "GROUP": name,
            "CONSUMER-ID": member["member_id"],
            "GROUP-INSTANCE-ID": member["group_instance_id"] or "",
            "HOST": member["client_host"],
            "CLIENT-ID": member["client_id"],
            "#PARTITIONS": str(sum(len(part["partitions"] or ()) for part in member["assigned"] or ())),
            "CURRENT-EPOCH": cell(member["member_epoch"] if is_modern else None),
            "CURRENT-ASSIGNMENT": self._assignment(member["assigned"]),
            "TARGET-EPOCH": cell(self.assignment_epochs.get(name)),
            "TARGET-ASSIGNMENT": self._assignment(member["target"] if is_modern else None),
            "UPGRADED": cell(self.upgraded.get((name, member["member_id"]))).lower(),
        }

    def _state_cells(self, group: _Row) -> dict[str, str]:
        is_modern = group["group_type"] not in ("classic", "simple")
        return {
            "GROUP": group["group_id"],
            "COORDINATOR (ID)": cell(self.coordinators.get(group["log_partition"])),
            "ASSIGNMENT-STRATEGY": cell(group["protocol"] or None),
            "STATE": group["state"],
            "GROUP-EPOCH": cell(group["generation"] if is_modern else None),
            "TARGET-ASSIGNMENT-EPOCH": cell(self.assignment_epochs.get(group["group_id"])),
            "#MEMBERS": str(group["member_count"]),
        }

    def _assignment(self, parts: Iterable[_Row] | None) -> str:
        """Partitions such as `orders:0,1;payments:2`; `-` for none. A topic without a known name has its id."""
        named = sorted((self._topic(part), sorted(part["partitions"])) for part in parts or () if part["partitions"])
        return ";".join(f"{topic}:{','.join(map(str, numbers))}" for topic, numbers in named) or "-"

    def _topic(self, part: _Row) -> str:
        return str(part["topic"] or self.topics.get(part["topic_id"], part["topic_id"]))


def _epochs_and_upgraded(
    decoded: Iterable[tuple[str, Record | Undecodable]],
) -> tuple[dict[str, int], dict[tuple[str, str], bool]]:
    epochs: dict[str, int] = {}
    upgraded: dict[tuple[str, str], bool] = {}
    for group, record in decoded:
        match record:
            case Record(value=TargetAssignmentMetadataValue() as value):
                epochs[group] = value.assignment_epoch
            case Record(key=MemberKey() as key, value=ConsumerGroupMemberMetadataValue() as member):
                upgraded[group, key.member_id] = member.classic_member_metadata is None
    return epochs, upgraded
