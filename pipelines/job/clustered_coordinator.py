"""`grouplake coordinator --log kafka://…`: a node among those that share a topic as their log."""

import asyncio
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, TextIO

import uvloop

from coordinator_core.log.errors import LogError, LogMisconfigured
from coordinator_core.protocol.groups import Node
from coordinator_core.reduction.group_warm_up import load_group_kernels
from coordinator_core.service.groups.group_service import GroupCoordinatorService
from coordinator_core.service.node.cluster_membership import ClusterMembership
from coordinator_core.service.node.event_log import EventLog
from coordinator_core.service.node.process import CannotListen, Until, raise_file_limit, serve
from coordinator_core.service.runtime.observer import Observer
from coordinator_core.sources.kafka_options import parse_address
from pipelines.job.coordinator_process import CoordinatorError, CoordinatorOptions, coordinator_options
from pipelines.runtime.configuration import Configuration
from pipelines.runtime.errors import UsageError

if TYPE_CHECKING:
    from coordinator_core.topic_log.topic_log import TopicLog


@dataclass(frozen=True)
class ClusterOptions:
    """Options of a node: those of a coordinator, the address of the log, and the options of its connection."""

    coordinator: CoordinatorOptions
    address: str
    connection: Mapping[str, str]


def cluster_options(listen: str, address: str, configuration: Configuration) -> ClusterOptions:
    """Check the sections `[coordinator]` and `[kafka]`. Raises UsageError for an invalid value or address."""
    try:
        parse_address(address)
    except LogMisconfigured as error:
        raise UsageError(f"--log: {error}") from error
    options = coordinator_options(listen, "", configuration.coordinator)
    with_data = [name for name, topic in options.settings.declared_topics.items() if topic.has_data]
    if with_data:
        raise UsageError(
            f"coordinator.topics.{with_data[0]} has data, which needs a log of segments: "
            "remove data = true, or use --log segments:DIR"
        )
    # the offsets of a client's transaction cannot be written with the client's producer id
    return ClusterOptions(replace(options, transactions=None), address, configuration.kafka_options)


def run_node(options: ClusterOptions, until: Until, stream: TextIO | None = None) -> None:
    """Serve until `until` returns, and log to `stream` (None: standard error), one JSON object per line.

    Raises CoordinatorError if the topic or an address is not available, and any exception of `until`.
    """
    coordinator = options.coordinator
    event_log = EventLog(stream or sys.stderr, coordinator.log_level)
    raise_file_limit()
    log = _opened(options, event_log)
    try:
        _expect_free(log, coordinator.settings.node_id)
        # before the node joins the others: partitions that it then gets from them are unserved until they are loaded
        load_group_kernels()
        serving = serve(
            log,
            None,
            coordinator.config,
            coordinator.settings,
            coordinator.addresses,
            event_log,
            until,
            new_membership=partial(_membership, log, coordinator.settings.node_session_timeout_ms),
        )
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(serving)
    except CannotListen as error:
        raise CoordinatorError(str(error)) from error
    finally:
        log.close()


def _expect_free(log: "TopicLog", node_id: int) -> None:
    """Raise CoordinatorError if a running node has the id: clients could not tell the two apart."""
    from coordinator_core.topic_log.node_group import node_with_id

    try:
        other = node_with_id(log.group_requests(), log.address.topic, node_id)
    except LogError as error:
        raise CoordinatorError(str(error)) from error
    if other is not None:
        raise CoordinatorError(
            f"node id {node_id} is in use by the coordinator at {other.host}:{other.port}: set coordinator.node_id to another one"
        )


def _membership(
    log: "TopicLog", session_timeout_ms: int, groups: GroupCoordinatorService, own: Node, observer: Observer
) -> ClusterMembership:
    from coordinator_core.topic_log.node_group import NodeGroup

    def group_of(membership: ClusterMembership) -> NodeGroup:
        topic = log.address.topic
        return NodeGroup(log.client_options(), topic, own, session_timeout_ms, membership, log.group_requests())

    return ClusterMembership(own, groups, observer, group_of, lambda partition: log.partition(partition).release())


def _opened(options: ClusterOptions, event_log: EventLog) -> "TopicLog":
    try:
        from coordinator_core.topic_log.log_topic import LogTopicSettings
        from coordinator_core.topic_log.topic_log import TopicLog
    except ModuleNotFoundError as error:
        raise UsageError("--log kafka:// needs confluent-kafka: pip install 'grouplake[kafka-log]'") from error
    started = time.perf_counter()
    config = options.coordinator.config
    settings = LogTopicSettings(
        config.offsets_topic_num_partitions, config.offsets_topic_replication_factor, config.offsets_topic_segment_bytes
    )
    try:
        log = TopicLog(options.address, options.connection, settings, config.offsets_commit_timeout_ms)
    except LogError as error:
        raise CoordinatorError(str(error)) from error
    event_log.info(
        "log opened",
        topic=log.address.topic,
        created=log.was_created,
        partitions=log.partitions,
        seconds=round(time.perf_counter() - started, 3),
    )
    return log
