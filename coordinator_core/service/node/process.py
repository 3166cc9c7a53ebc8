"""The coordinator as a process: start on an open log, signals, and shutdown."""

import asyncio
import os
import resource
import signal
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from socket import socket
from typing import Any

from coordinator_core.group_coordinator.config import CoordinatorConfig
from coordinator_core.protocol.groups import Node
from coordinator_core.segment_log.topic_store import TopicStore
from coordinator_core.service.net.addresses import ListenAddress
from coordinator_core.service.net.listener import Listener
from coordinator_core.service.node.admin_server import AdminAnswer, AdminServer, text_answer
from coordinator_core.service.node.composite_observer import CompositeObserver
from coordinator_core.service.node.event_log import EventLog
from coordinator_core.service.node.health import Health
from coordinator_core.service.node.membership import NewMembership
from coordinator_core.service.node.metrics import Metrics
from coordinator_core.service.node.node_report import NodeState
from coordinator_core.service.node.refused_appends import PROBE_SECONDS, RefusedAppends
from coordinator_core.service.node.services import Services
from coordinator_core.service.runtime.background import BackgroundTasks
from coordinator_core.service.runtime.clock import SteadyClock
from coordinator_core.service.runtime.log_interface import CoordinatorLog
from coordinator_core.service.runtime.observer import Observer
from coordinator_core.service.settings import ServiceSettings
from coordinator_core.service.topics.nodes import OneNode
from coordinator_core.service.transactions.transaction_service import TransactionLogConfig

#: macOS has an unlimited hard limit and refuses it as a soft one; setrlimit(2) there names OPEN_MAX instead.
_OPEN_MAX = 10_240
_SIGNALS = (signal.SIGTERM, signal.SIGINT)
#: Exit code after a second signal: 128 + SIGTERM.
_SECOND_SIGNAL = 143
#: A signal to a process and to its process group arrives twice; within this time the second one is ignored.
_SAME_SIGNAL_SECONDS = 0.2


#: Awaited once connections are accepted, with the address for clients and that of /health and /metrics; partitions may still be
#: loading then. The service shuts down when it returns, which it does with the reason.
Until = Callable[[ListenAddress, ListenAddress | None], Awaitable[str]]


class CannotListen(Exception):
    """An address cannot be bound; the message has the address and the system's error."""


@dataclass(frozen=True, slots=True)
class Addresses:
    """The listener's address, the advertised one (None: the same), and that of /health and /metrics (None: disabled).

    A socket instead of an address is bound already, by the parent process.
    """

    listen: ListenAddress | socket
    advertised: ListenAddress | None = None
    admin: ListenAddress | socket | None = None


def raise_file_limit() -> None:
    """Raise the limit of open files as far as the system allows: every connection needs one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft in (hard, resource.RLIM_INFINITY):
        return
    for wanted in (hard, max(soft, _OPEN_MAX)):
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            return


async def serve(
    log: CoordinatorLog,
    store: TopicStore | None,
    config: CoordinatorConfig,
    settings: ServiceSettings,
    addresses: Addresses,
    event_log: EventLog,
    until: Until,
    transactions: TransactionLogConfig | None = None,
    new_membership: NewMembership | None = None,
) -> None:
    """Serve until `until` returns or raises, then finish requests in progress. The logs are flushed and left open.

    `new_membership` is given if other nodes own partitions of the log.
    Without `transactions` the node refuses requests of transactions, as brokers before 0.11 do. Raises CannotListen.
    """
    metrics = Metrics()
    refused = RefusedAppends(None if store is None else store.directory, time.monotonic, event_log.appends_accepted)
    observer = CompositeObserver((metrics, event_log, refused))
    now_ms = SteadyClock(time.time, time.monotonic).now_ms
    background = BackgroundTasks(observer)
    services = Services.build(log, store, config, settings, transactions, now_ms, observer, background)
    state = NodeState(services, store, lambda: background.errors, refused.reasons, now_ms)
    metrics.bind(state.report)
    health = Health(state)

    async def metrics_answer() -> AdminAnswer:
        return text_answer(metrics.text())

    admin = AdminServer(health.answer, metrics_answer, observer)
    listener = Listener(settings, observer, background)
    asyncio.get_running_loop().set_exception_handler(partial(_report, observer))
    address = await started(listener.start(addresses.listen), addresses.listen)
    admin_address = None if addresses.admin is None else await started(admin.start(addresses.admin), addresses.admin)
    services.start()
    probe = background.repeat("refused-appends", PROBE_SECONDS, refused.check)
    own = Node(settings.node_id, *(addresses.advertised or address))
    membership = None if new_membership is None else new_membership(services.groups, own, observer)
    await listener.serve(services.dispatcher(membership or OneNode(own)))
    if membership is not None:
        membership.start()
    reason = "an error"
    try:
        reason = await until(address, admin_address)
    finally:
        event_log.info("stopping", reason=reason, connections=len(listener))
        health.stopping = True
        probe.cancel()
        if membership is not None:
            # before the listener: the others would take its end for that of the process
            await membership.stop()
        listener.stop_accepting()
        await _end(listener, services, settings.drain_ms / 1000)
        admin.close()
        event_log.info("stopped")


def _report(observer: Observer, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Report an error in a callback of a timer or a connection, or in a task that is not awaited."""
    message = context["message"]
    observer.bug(f"event loop: {message}", context.get("exception") or RuntimeError(message))


async def started(starting: Awaitable[ListenAddress], address: ListenAddress | socket) -> ListenAddress:
    """Return the actual address of a server that is starting. Raises CannotListen."""
    try:
        return await starting
    except OSError as error:
        raise CannotListen(f"cannot listen on {address}: {error.strerror or error}") from error


async def _end(listener: Listener, services: Services, drain_seconds: float) -> None:
    """End the services within their time, and close the sockets."""
    give_up = time.monotonic() + drain_seconds
    await services.stop(drain_seconds)
    await listener.wait_closed(max(give_up - time.monotonic(), 0))


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
