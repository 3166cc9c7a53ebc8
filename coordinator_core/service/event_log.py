"""The coordinator's log: one JSON object per line with the event, the group, the member and the reason."""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any, TextIO

import structlog

from coordinator_core.coordinator.group_events import (
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
from coordinator_core.service.observer import Observer
from coordinator_core.transactions.events import (
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
    """An observer that writes JSON lines to `stream`. `level` is one of LEVELS."""

    def __init__(self, stream: TextIO, level: str = "info") -> None:
        self._level = getattr(logging, level.upper())
        self._log = structlog.wrap_logger(
            structlog.WriteLogger(stream),
            processors=[
                structlog.processors.add_log_level,
                structlog.processors.TimeStamper(fmt="iso", utc=True),
                structlog.processors.JSONRenderer(),
            ],
            wrapper_class=structlog.make_filtering_bound_logger(self._level),
        )

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

    def failed(self, partition: int | str, reason: str) -> None:
        self._log.error("partition failed", partition=partition, reason=reason)

    def append_refused(self, partition: int | str, batches: int, reason: str) -> None:
        self._log.warning("append refused", partition=partition, batches=batches, reason=reason)

    def cleaning_failed(self, reason: str) -> None:
        self._log.warning("cleaning failed", reason=reason)

    def disconnected(self, client: str, reason: str | None) -> None:
        if reason is not None:
            self._log.warning("connection ended", client=client, reason=reason)

    def connection_refused(self, client: str, reason: str) -> None:
        self._log.warning("connection refused", client=client, reason=reason)

    def bug(self, where: str, error: BaseException) -> None:
        self._log.error("unexpected error", where=where, error=f"{type(error).__name__}: {error}")

    def recovered(self, task: str, failures: int) -> None:
        self._log.info("background task recovered", task=task, failures=failures)
