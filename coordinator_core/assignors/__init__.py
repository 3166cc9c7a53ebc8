"""Partition assignors of classic consumers: subscriptions of a group's members in, assignments out. Pure."""

from coordinator_core.assignors.assignor import Assignor, PartitionAssignor
from coordinator_core.assignors.broadcast_assignor import BroadcastAssignor
from coordinator_core.assignors.cooperative_sticky_assignor import CooperativeStickyAssignor
from coordinator_core.assignors.leader import AssignmentFailed, assign_group, rebalance_protocol
from coordinator_core.assignors.model import Assignment, Cluster, PartitionInfo, RebalanceProtocol, Subscription
from coordinator_core.assignors.protocol_bytes import assignment_bytes, read_assignment, read_subscription, subscription_bytes
from coordinator_core.assignors.rack_aware_assignor import RackAwareAssignor
from coordinator_core.assignors.random_assignor import RandomAssignor
from coordinator_core.assignors.range_assignor import RangeAssignor
from coordinator_core.assignors.round_robin_assignor import RoundRobinAssignor
from coordinator_core.assignors.sticky_assignor import StickyAssignor
from coordinator_core.codec.topic_partition import TopicPartition

__all__ = [
    "Assignment",
    "AssignmentFailed",
    "Assignor",
    "BroadcastAssignor",
    "Cluster",
    "CooperativeStickyAssignor",
    "PartitionAssignor",
    "PartitionInfo",
    "RackAwareAssignor",
    "RandomAssignor",
    "RangeAssignor",
    "RebalanceProtocol",
    "RoundRobinAssignor",
    "StickyAssignor",
    "Subscription",
    "TopicPartition",
    "assign_group",
    "assignment_bytes",
    "read_assignment",
    "read_subscription",
    "rebalance_protocol",
    "subscription_bytes",
]
