"""The coordinator's log: one JSON object per line with the event, the group, the member and the reason."""

import logging
import time
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, TextIO

import structlog

from coordinator_core.group_coordinator.group_events import (
    GenerationBegan,
    GroupEvent,
    GroupRemoved,
    GroupStabilized,
    MemberIdGiven,
    MemberJoined,
    MemberRemoved,
    OffsetsExpired,
    RebalanceBegan,
    WriteRefused,
)
from coordinator_core.service.node.repeated_events import RepeatedEvents
from coordinator_core.service.runtime.observer import Observer
from coordinator_core.transaction_coordinator.events import (
    MarkersAbandoned,
    ProducerFenced,
    TransactionalIdExpired,
    TransactionEvent,
    TransactionTimedOut,
    TransactionWriteRefused,
)

LEVELS = ("debug", "info", "warning", "error")

#: Level and message of each event.
_MESSAGES: Mapping[type, tuple[int, str]] = {
    MemberIdGiven: (logging.DEBUG, "member id given"),
    MemberJoined: (logging.INFO, "member joined"),
    MemberRemoved: (logging.INFO, "member removed"),
    RebalanceBegan: (logging.INFO, "group rebalances"),
    GenerationBegan: (logging.INFO, "generation began"),
    GroupStabilized: (logging.INFO, "group stable"),
    GroupRemoved: (logging.INFO, "group removed"),
    OffsetsExpired: (logging.INFO, "offsets expired"),
    WriteRefused: (logging.WARNING, "write refused"),
    TransactionTimedOut: (logging.INFO, "transaction timed out"),
    ProducerFenced: (logging.INFO, "producer fenced"),
    TransactionalIdExpired: (logging.INFO, "transactional id expired"),
    MarkersAbandoned: (logging.WARNING, "markers abandoned"),
    TransactionWriteRefused: (logging.WARNING, "write refused"),
}
_SHORT_NAMES = {"group_id": "group", "member_id": "member", "partition": "target_partition"}


class EventLog(Observer):
    """An observer that writes JSON lines to `stream`. `level` is one of LEVELS, `now` a clock in seconds.

    `node` is in every line of a node among several ones that write to the same stream.

    Of events that clients can repeat at will, such as refused appends, some lines a minute are written for each client or
    partition; `omitted` in the next line has the number of the others.
    """

    def __init__(
        self, stream: TextIO, level: str = "info", now: Callable[[], float] = time.monotonic, node: int | None = None
    ) -> None:
        self._level = getattr(logging, level.upper())
        self._repeated = RepeatedEvents(now)
        self._log = structlog.wrap_logger(
            structlog.WriteLogger(stream),
            processors=[
                structlog.processors.add_log_level,
                structlog.processors.TimeStamper(fmt="iso", utc=True),
                structlog.processors.JSONRenderer(),
            ],
            wrapper_class=structlog.make_filtering_bound_logger(self._level),
        )
        if node is not None:
            self._log = self._log.bind(node=node)

    def info(self, event: str, **details: Any) -> None:
        """Log an event of the service itself."""
        self._log.info(event, **details)

    def warning(self, event: str, **details: Any) -> None:
        """Log a problem of the service itself."""
        self._log.warning(event, **details)

    # ---- `Observer`

    def group_events(self, partition: int | str, group_events: Iterable[GroupEvent]) -> None:
        self._log_events(partition, group_events)

    def transaction_events(self, partition: int | str, events: Iterable[TransactionEvent]) -> None:
        self._log_events(partition, events)

    def _log_events(self, partition: int | str, events: Iterable[GroupEvent | TransactionEvent]) -> None:
        for event in events:
            level, message = _MESSAGES[type(event)]
            if level >= self._level:
                details = {_SHORT_NAMES.get(name, name): value for name, value in asdict(event).items() if value is not None}
                self._log.log(level, message, partition=partition, **details)

    def load_finished(self, partition: int | str, epoch: int, records: int, anomalies: int, seconds: float) -> None:
        level = logging.WARNING if anomalies else logging.INFO if records else logging.DEBUG
        took = round(seconds, 3)
        self._log.log(
            level, "load finished", partition=partition, epoch=epoch, records=records, anomalies=anomalies, seconds=took
        )

    def unloaded(self, partition: int | str, epoch: int) -> None:
        self._log.debug("partition unloaded", partition=partition, epoch=epoch)

    def load_failed(self, partition: int | str, reason: str, seconds: float) -> None:
        self._warn_repeatedly("load failed", partition, partition=partition, reason=reason, retried_in_seconds=seconds)

    def lost(self, partition: int | str, reason: str) -> None:
        self._warn_repeatedly("partition lost", partition, partition=partition, reason=reason)

    def fenced(self, partition: int | str, reason: str) -> None:
        self._log.warning("partition fenced", partition=partition, reason=reason)

    def failed(self, partition: int | str, reason: str) -> None:
        self._log.error("partition failed", partition=partition, reason=reason)

    def partitions_assigned(self, partitions: Sequence[int]) -> None:
        self._log.info("partitions assigned", partitions=list(partitions))

    def partitions_revoked(self, partitions: Sequence[int]) -> None:
        self._log.info("partitions revoked", partitions=list(partitions))

    def node_group_failed(self, reason: str) -> None:
        self._warn_repeatedly("node group failed", "node group", reason=reason)

    def node_ended(self, node: str) -> None:
        self._log.warning("node ended", node=node)

    def append_refused(self, partition: int | str, batches: int, reason: str) -> None:
        self._warn_repeatedly("append refused", partition, partition=partition, batches=batches, reason=reason)

    def cleaning_failed(self, reason: str) -> None:
        self._log.warning("cleaning failed", reason=reason)

    def disconnected(self, client: str, reason: str | None) -> None:
        if reason is not None:
            self._warn_repeatedly("connection ended", _host(client), client=client, reason=reason)

    def connection_refused(self, client: str, reason: str) -> None:
        self._warn_repeatedly("connection refused", _host(client), client=client, reason=reason)

    def appends_accepted(self, partitions: Iterable[str]) -> None:
        """The logs of partitions that refused appends accept them again."""
        self._log.info("appends accepted", partitions=sorted(partitions))

    def bug(self, where: str, error: BaseException) -> None:
        self._log.error("unexpected error", where=where, error=f"{type(error).__name__}: {error}")

    def recovered(self, task: str, failures: int) -> None:
        self._log.info("background task recovered", task=task, failures=failures)

    def _warn_repeatedly(self, event: str, cause: Hashable, **details: Any) -> None:
        omitted = self._repeated.omitted((event, cause))
        if omitted is not None:
            self._log.warning(event, **details, **({"omitted": omitted} if omitted else {}))


def _host(client: str) -> str:
    """The address of a client without its port."""
    return client.rpartition(":")[0]
