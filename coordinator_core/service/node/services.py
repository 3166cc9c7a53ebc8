"""The services of a node, built in the order in which they need each other, with their common start and end."""

import asyncio
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.group_coordinator.config import CoordinatorConfig
from coordinator_core.protocol.apis import TRANSACTION_APIS, offered_versions
from coordinator_core.protocol.internal_topics import OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC
from coordinator_core.segment_log.topic_store import TopicStore
from coordinator_core.service.groups.group_service import GroupCoordinatorService
from coordinator_core.service.net.request_dispatcher import RequestDispatcher
from coordinator_core.service.runtime.background import BackgroundTasks
from coordinator_core.service.runtime.log_interface import CoordinatorLog
from coordinator_core.service.runtime.observer import Observer
from coordinator_core.service.settings import ServiceSettings
from coordinator_core.service.topics.cluster import ClusterResponses
from coordinator_core.service.topics.nodes import Nodes
from coordinator_core.service.topics.topic_registry import TopicRegistry
from coordinator_core.service.topics.topic_service import TopicService
from coordinator_core.service.transactions.marker_router import MarkerRouter
from coordinator_core.service.transactions.produce_verification import CoordinatorVerifier
from coordinator_core.service.transactions.transaction_service import TransactionLogConfig, TransactionService
from coordinator_core.transaction_coordinator.context import TransactionTopology

_DRAIN_POLL_SECONDS = 0.005

#: A coordinator of the node.
CoordinatorService = GroupCoordinatorService | TransactionService


def new_member_id(name: str) -> str:
    """Return the client id or instance id, and a random UUID (`generateMemberId`)."""
    return f"{name}-{uuid.uuid4()}"


@dataclass(frozen=True, slots=True)
class Services:
    """The services of one node. `transactions` is None for a node without a transaction coordinator."""

    settings: ServiceSettings
    observer: Observer
    groups: GroupCoordinatorService
    registry: TopicRegistry
    topics: TopicService
    markers: MarkerRouter
    transactions: TransactionService | None

    @classmethod
    def build(
        cls,
        log: CoordinatorLog,
        store: TopicStore | None,
        config: CoordinatorConfig,
        settings: ServiceSettings,
        transactions: TransactionLogConfig | None,
        now_ms: Callable[[], int],
        observer: Observer,
        background: BackgroundTasks,
    ) -> "Services":
        """Build the services on open logs; `start` begins their tasks."""
        groups = GroupCoordinatorService(config, settings, log, now_ms, new_member_id, observer, background)
        internal = {OFFSETS_TOPIC: (log.partitions, log.topic_id)}
        if transactions is not None:
            internal[TRANSACTION_STATE_TOPIC] = transactions.topic.partitions, transactions.topic.topic_id
        registry = TopicRegistry(settings.cluster_id, settings.declared_topics, internal, store, groups.highest_commits)
        topics = TopicService(registry, settings, config, now_ms, observer, background, groups.forget_topic, groups.producers)
        markers = MarkerRouter(groups.end_transaction, registry.has_partition, topics.write_marker)
        if transactions is None:
            return cls(settings, observer, groups, registry, topics, markers, None)
        topology = TransactionTopology(
            lambda partition: registry.has_partition(*partition),
            lambda group_id: TopicPartition(OFFSETS_TOPIC, groups.partition_for(group_id)),
        )
        service = TransactionService(transactions, settings, now_ms, observer, background, topology, markers.write)
        # the one cycle: this coordinator writes markers to topics, which ask it about transactional batches
        topics.producing.verifier = CoordinatorVerifier(service)
        return cls(settings, observer, groups, registry, topics, markers, service)

    @property
    def coordinators(self) -> tuple[CoordinatorService, ...]:
        """The coordinators in the order in which they start."""
        return (self.groups,) if self.transactions is None else (self.groups, self.transactions)

    def dispatcher(self, nodes: Nodes) -> RequestDispatcher:
        """Return the dispatcher of requests. `nodes` have the addresses at which clients reach them."""
        era = self.groups.config.era
        offered = offered_versions(era) if self.transactions is not None else _without_transactions(era)
        version = 0 if self.transactions is None else self.transactions.config.behaviour.transaction_version
        cluster = ClusterResponses(nodes, self.settings.cluster_id, self.registry, offered, version)
        return RequestDispatcher(self.groups, cluster, self.topics, self.observer, self.markers, self.transactions)

    def start(self) -> None:
        """Load the logs of the coordinators, and begin the periodic tasks."""
        for each in self.coordinators:
            each.start()
        self.topics.start()

    async def stop(self, drain_seconds: float) -> None:
        """Answer requests that wait for the log, then parked ones NOT_COORDINATOR, and flush; the logs are left open."""
        await drain(self.coordinators, drain_seconds)
        # transactions first: their markers go to the partitions of groups and of topics
        for each in reversed(self.coordinators):
            await each.stop()
        await self.topics.stop()


async def drain(coordinators: Iterable[CoordinatorService], seconds: float) -> bool:
    """Wait until no request is in progress, except parked ones; False after `seconds`."""
    coordinators = tuple(coordinators)
    give_up = time.monotonic() + seconds
    while not all(each.is_quiet for each in coordinators):
        if time.monotonic() >= give_up:
            return False
        await asyncio.sleep(_DRAIN_POLL_SECONDS)
    return True


def _without_transactions(era: str) -> Mapping[int, range]:
    """Return the offered versions of a node without a transaction coordinator."""
    transactional = {api.number for api in TRANSACTION_APIS.values()}
    return {number: versions for number, versions in offered_versions(era).items() if number not in transactional}
