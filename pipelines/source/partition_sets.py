"""Partitions of topics, by name: those that are sampled, and those that a poll has found."""

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.source.changes import ChangeKind, of_kind

#: Partition numbers by topic name.
PartitionSets = Mapping[str, set[int]]


def partitions_by_topic(rows: pa.Table) -> PartitionSets:
    """The partitions in the columns `topic` and `partition`."""
    found: dict[str, set[int]] = {}
    distinct = rows.group_by(["topic", "partition"]).aggregate([])
    for topic, partition in zip(distinct["topic"].to_pylist(), distinct["partition"].to_pylist(), strict=True):
        found.setdefault(topic, set()).add(partition)
    return found


def changed_partitions(changes: pa.Table) -> PartitionSets:
    """The partitions that change rows commit to, and those that members gain, as far as the name of their topic is known."""
    gained = of_kind(changes, ChangeKind.OWNERSHIP).select(["topic", "gained"]).drop_null().combine_chunks()
    lists = gained["gained"].combine_chunks()
    owned = {"topic": gained["topic"].take(pc.list_parent_indices(lists)), "partition": pc.list_flatten(lists)}
    committed = of_kind(changes, ChangeKind.COMMIT).select(["topic", "partition"])
    return partitions_by_topic(pa.concat_tables([committed, pa.table(owned, committed.schema)]))


def united(first: PartitionSets, second: PartitionSets) -> PartitionSets:
    """The partitions of both."""
    return {topic: first.get(topic, set()) | second.get(topic, set()) for topic in first.keys() | second.keys()}


def without(wanted: PartitionSets, sampled: PartitionSets) -> PartitionSets:
    """The partitions of `wanted` that are not in `sampled`."""
    left = {topic: partitions - sampled.get(topic, set()) for topic, partitions in wanted.items()}
    return {topic: partitions for topic, partitions in left.items() if partitions}
