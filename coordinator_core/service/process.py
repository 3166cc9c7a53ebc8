"""The coordinator as a process: start on an open log, signals, and shutdown."""

import asyncio
import os
import resource
import signal
import time
import uuid
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.coordinator.config import CoordinatorConfig
from coordinator_core.protocol.apis import TRANSACTION_APIS, offered_versions
from coordinator_core.protocol.groups import Node
from coordinator_core.protocol.internal_topics import OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC
from coordinator_core.segment_log.topic_store import TopicStore
from coordinator_core.service.addresses import Endpoint
from coordinator_core.service.admin import Admin
from coordinator_core.service.background import BackgroundTasks
from coordinator_core.service.clock import SteadyClock
from coordinator_core.service.cluster import Cluster
from coordinator_core.service.composite_observer import CompositeObserver
from coordinator_core.service.event_log import EventLog
from coordinator_core.service.listener import Listener
from coordinator_core.service.log_interface import CoordinatorLog
from coordinator_core.service.marker_router import MarkerRouter
from coordinator_core.service.metrics import Metrics
from coordinator_core.service.node_report import NodeState
from coordinator_core.service.observer import Observer
from coordinator_core.service.produce_verification import CoordinatorVerifier
from coordinator_core.service.request_dispatcher import RequestDispatcher
from coordinator_core.service.service import CoordinatorService
from coordinator_core.service.settings import ServiceSettings
from coordinator_core.service.topic_registry import TopicRegistry
from coordinator_core.service.topic_service import TopicService
from coordinator_core.service.transaction_service import TransactionParts, TransactionService
from coordinator_core.transactions.context import TransactionTopology

#: macOS has an unlimited hard limit and refuses it as a soft one; setrlimit(2) there names OPEN_MAX instead.
_OPEN_MAX = 10_240
_SIGNALS = (signal.SIGTERM, signal.SIGINT)
#: Exit code after a second signal: 128 + SIGTERM.
_SECOND_SIGNAL = 143
#: A signal to a process and to its process group arrives twice; within this time the second one is ignored.
_SAME_SIGNAL_SECONDS = 0.2
_DRAIN_POLL_SECONDS = 0.005


#: Awaited once connections are accepted, with the address for clients and that of /health and /metrics; partitions may still be
#: loading then. The service shuts down when it returns, which it does with the reason.
Until = Callable[[Endpoint, Endpoint | None], Awaitable[str]]


class CannotListen(Exception):
    """An address cannot be bound; the message has the address and the system's error."""


@dataclass(frozen=True, slots=True)
class Addresses:
    """The listener's address, the advertised one (None: the same), and that of /health and /metrics (None: disabled)."""

    listen: Endpoint
    advertised: Endpoint | None = None
    admin: Endpoint | None = None


def raise_file_limit() -> None:
    """Raise the limit of open files as far as the system allows: every connection needs one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft in (hard, resource.RLIM_INFINITY):
        return
    for wanted in (hard, max(soft, _OPEN_MAX)):
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            return


def new_member_id(name: str) -> str:
    """Return the client id or instance id, and a random UUID (`generateMemberId`)."""
    return f"{name}-{uuid.uuid4()}"


async def serve(
    log: CoordinatorLog,
    store: TopicStore,
    config: CoordinatorConfig,
    settings: ServiceSettings,
    addresses: Addresses,
    event_log: EventLog,
    until: Until,
    transactions: TransactionParts | None = None,
) -> None:
    """Serve until `until` returns or raises, then finish requests in progress. The logs are flushed and left open.

    Without `transactions` the node refuses requests of transactions, as brokers before 0.11 do. Raises CannotListen.
    """
    metrics = Metrics()
    observer = CompositeObserver((metrics, event_log))
    clock = SteadyClock(time.time, time.monotonic)
    background = BackgroundTasks(observer)
    service = CoordinatorService(config, settings, log, clock.now_ms, new_member_id, observer, background)
    nodes: list[CoordinatorService | TransactionService] = [service]
    state = NodeState(service, store, lambda: background.errors, clock.now_ms)
    metrics.bind(state.report)
    admin = Admin(state, metrics.text, observer)
    listener = Listener(settings, observer, background)
    asyncio.get_running_loop().set_exception_handler(partial(_report, observer))
    address = await _listening(listener.start(addresses.listen), addresses.listen)
    admin_address = None if addresses.admin is None else await _listening(admin.start(addresses.admin), addresses.admin)
    node = Node(settings.node_id, *(addresses.advertised or address))
    versions = offered_versions(config.era) if transactions is not None else _without_transactions(config.era)
    internal = {OFFSETS_TOPIC: (log.partitions, log.topic_id)}
    if transactions is not None:
        internal[TRANSACTION_STATE_TOPIC] = transactions.topic.partitions, transactions.topic.topic_id
    registry = TopicRegistry(settings.cluster_id, settings.declared_topics, internal, store, service.highest_commits)
    topics = TopicService(registry, settings, config, clock.now_ms, observer, background, service.forget_topic, service.producers)
    state.fetch_sessions = topics.fetching.sessions
    version = 0 if transactions is None else transactions.topic.version
    cluster = Cluster(node, settings.cluster_id, registry, versions, version)
    markers = MarkerRouter(service.end_transaction, registry.has_partition, topics.write_marker)
    transaction_service = None
    if transactions is not None:
        topology = TransactionTopology(
            lambda partition: registry.has_partition(*partition),
            lambda group_id: TopicPartition(OFFSETS_TOPIC, service.partition_for(group_id)),
        )
        transaction_service = TransactionService(
            transactions, settings, clock.now_ms, observer, background, topology, markers.write
        )
        nodes.append(transaction_service)
        state.transactions = transaction_service
        topics.producing.verifier = CoordinatorVerifier(transaction_service)
    for each in nodes:
        each.start()
    topics.start()
    await listener.serve(RequestDispatcher(service, cluster, topics, observer, markers, transaction_service))
    reason = "an error"
    try:
        reason = await until(address, admin_address)
    finally:
        event_log.info("stopping", reason=reason, connections=len(listener))
        admin.stopping = True
        await _end(listener, nodes, topics, settings.drain_ms / 1000)
        admin.close()
        event_log.info("stopped")


def _report(observer: Observer, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Report an error in a callback of a timer or a connection, or in a task that is not awaited."""
    message = context["message"]
    observer.bug(f"event loop: {message}", context.get("exception") or RuntimeError(message))


async def _listening(starting: Awaitable[Endpoint], address: Endpoint) -> Endpoint:
    try:
        return await starting
    except OSError as error:
        raise CannotListen(f"cannot listen on {address}: {error.strerror or error}") from error


async def _end(
    listener: Listener, nodes: Sequence[CoordinatorService | TransactionService], topics: TopicService, drain_seconds: float
) -> None:
    """Accept nothing new, answer requests that wait for the log, answer parked requests NOT_COORDINATOR, close the sockets."""
    give_up = time.monotonic() + drain_seconds
    listener.stop_accepting()
    await drain(nodes, drain_seconds)
    # transactions first: their markers go to the partitions of groups and of topics
    for each in reversed(nodes):
        await each.stop()
    await topics.stop()
    await listener.wait_closed(max(give_up - time.monotonic(), 0))


async def drain(nodes: Iterable[CoordinatorService | TransactionService], seconds: float) -> bool:
    """Wait until no request is in progress, except parked ones; False after `seconds`."""
    nodes = tuple(nodes)
    give_up = time.monotonic() + seconds
    while not all(each.is_quiet for each in nodes):
        if time.monotonic() >= give_up:
            return False
        await asyncio.sleep(_DRAIN_POLL_SECONDS)
    return True


def _without_transactions(era: str) -> Mapping[int, range]:
    """Return the offered versions of a node without a transaction coordinator."""
    transactional = {api.number for api in TRANSACTION_APIS.values()}
    return {number: versions for number, versions in offered_versions(era).items() if number not in transactional}


def signalled() -> "asyncio.Future[str]":
    """Return a future for the name of the first SIGTERM or SIGINT; a second one exits the process. Main thread only."""
    loop = asyncio.get_running_loop()
    stop: asyncio.Future[str] = loop.create_future()

    first_at = 0.0

    def stopped(number: signal.Signals) -> None:
        nonlocal first_at
        if not stop.done():
            first_at = loop.time()
            stop.set_result(number.name)
        elif loop.time() - first_at > _SAME_SIGNAL_SECONDS:
            os._exit(_SECOND_SIGNAL)

    for number in _SIGNALS:
        loop.add_signal_handler(number, stopped, number)
    return stop
