"""Members without partitions for which there are none, which is no defect: hot spares, and standby tasks of Kafka Streams.

A group may have more members than partitions on purpose: the spare ones take over when another member ends.
"""

from collections import ChainMap
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

import pyarrow as pa

from pipelines.tables.store import Batch, is_in

#: Runs a reading statement over tables and views.
Query = Callable[[str], pa.Table]

_ASSIGNED = """
SELECT group_id, topic, count(DISTINCT partition) AS partitions FROM assignments
WHERE topic IS NOT NULL AND {groups} GROUP BY group_id, topic
"""
_OF_CLUSTER = "SELECT topic, count(*) AS partitions FROM topic_partitions GROUP BY topic"


class MemberNow(NamedTuple):
    """A member as the tables have it now.

    `topics` are those that it subscribes to by name; None if they are unknown. `standby_tasks` is the number of standby and
    warm-up tasks.
    """

    has_partitions: bool
    client_id: str | None = None
    host: str | None = None
    is_unreadable: bool = False
    topics: tuple[str, ...] | None = ()
    standby_tasks: int = 0

    @property
    def is_idle(self) -> bool:
        """True for a member without partitions; false if they are unknown."""
        return not self.has_partitions and not self.is_unreadable


def member_now(row: Mapping[str, Any], has_partitions: bool) -> MemberNow:
    """The member of a row of `members`. A row of an earlier layout lacks the number of standby tasks."""
    topics = row["subscribed_topics"]
    known = topics is not None and not row["subscribed_regex"]
    return MemberNow(
        has_partitions,
        row["client_id"],
        row["client_host"],
        row["assigned"] is None,
        tuple(topics) if known else None,
        row.get("standby_tasks") or 0,
    )


def partitions_of_topics(query: Query, batch: Batch, groups: Collection[str]) -> dict[str, Mapping[str, int]]:
    """By group, the number of partitions of each topic: that of the cluster, or else those that its members have."""
    if not groups:
        return {}
    assigned: dict[str, dict[str, int]] = {group: {} for group in groups}
    of_cluster: dict[str, int] = {}
    if "topic_partitions" in batch.versions:
        of_cluster = {row["topic"]: row["partitions"] for row in query(_OF_CLUSTER).to_pylist()}
    for row in query(_ASSIGNED.format(groups=is_in("group_id", groups))).to_pylist():
        assigned[row["group_id"]][row["topic"]] = row["partitions"]
    return {group: ChainMap(of_cluster, counts) for group, counts in assigned.items()}


def spare_members(members: Mapping[str, MemberNow], partitions: Mapping[str, int]) -> set[str]:
    """Ids of the members without partitions for which there are none.

    A member is spare if it holds standby tasks, or if the members that subscribe to a topic of its own outnumber the partitions
    of these topics. A member whose topics have no partition is not spare: its subscription finds nothing to read. Where
    subscription or partitions are unknown, nothing can be said against the member, so it is spare.
    """
    return {name for name, member in members.items() if member.is_idle and _is_spare(member, members, partitions)}


def _is_spare(member: MemberNow, members: Mapping[str, MemberNow], partitions: Mapping[str, int]) -> bool:
    if member.standby_tasks or member.topics is None:
        return True
    topics = set(member.topics)
    rivals = [other for other in members.values() if other.topics is None or not topics.isdisjoint(other.topics)]
    number = sum(partitions.get(topic, 0) for topic in topics)
    if any(other.is_unreadable for other in rivals) and not all(topic in partitions for topic in topics):
        return True
    return 0 < number < len(rivals)
