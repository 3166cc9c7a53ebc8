"""`grouplake coordinator`: opens the log and runs the service, from configuration and addresses."""

import asyncio
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any, TextIO

import uvloop

from coordinator_core.group_coordinator.config import CoordinatorConfig
from coordinator_core.log.compression import Compression
from coordinator_core.log.errors import LogError
from coordinator_core.producers.rules import RULES
from coordinator_core.protocol.internal_topics import OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC
from coordinator_core.segment_log.segment_log import SegmentLog
from coordinator_core.segment_log.settings import SegmentLogSettings
from coordinator_core.segment_log.topic_store import TopicStore
from coordinator_core.service.net.addresses import ListenAddress, parse_listen_address
from coordinator_core.service.node.event_log import LEVELS, EventLog
from coordinator_core.service.node.process import Addresses, CannotListen, Until, raise_file_limit, serve, signalled
from coordinator_core.service.settings import Fsync, ServiceSettings
from coordinator_core.service.topics.topic_kernels import load_topic_kernels
from coordinator_core.service.transactions.producer_id_file import ProducerIdFile
from coordinator_core.service.transactions.transaction_service import TransactionLogConfig
from coordinator_core.service.transactions.used_producer_ids import highest_in_logs, highest_in_snapshots
from coordinator_core.transaction_coordinator.behaviour import TRANSACTION_BEHAVIOURS
from coordinator_core.transaction_coordinator.config import TransactionConfig
from pipelines.runtime.configuration import OF_ERA
from pipelines.runtime.errors import GrouplakeError, UsageError
from pipelines.runtime.service_manager import notify_ready, notify_stopping


class CoordinatorError(GrouplakeError):
    """The coordinator cannot start: another process holds its folder, its log is unreadable, or its address is in use."""


@dataclass(frozen=True)
class CoordinatorOptions:
    """Options of a coordinator from command line and configuration, checked before anything is opened."""

    directory: str
    config: CoordinatorConfig
    #: None in eras without transactions.
    transactions: TransactionConfig | None
    settings: ServiceSettings
    log: SegmentLogSettings
    transaction_log: SegmentLogSettings
    addresses: Addresses
    log_level: str


def coordinator_options(listen: str, directory: str, section: Mapping[str, Any]) -> CoordinatorOptions:
    """Check the section `[coordinator]` of the configuration. Raises UsageError for an invalid value or address."""
    if section["log_level"] not in LEVELS:
        raise UsageError(f"coordinator.log_level is {section['log_level']!r}: must be one of {', '.join(LEVELS)}")
    return CoordinatorOptions(
        directory,
        coordinator_config(section),
        _transaction_config(section),
        _checked(ServiceSettings, {**section, "fsync": _fsync(section["fsync"])}),
        _log_settings(section),
        _transaction_log_settings(section),
        Addresses(
            _address(listen, "listen address"),
            _address(section["advertised_listener"], "coordinator.advertised_listener")
            if section["advertised_listener"]
            else None,
            _address(section["admin_listen"], "coordinator.admin_listen") if section["admin_listen"] else None,
        ),
        section["log_level"],
    )


def coordinator_config(section: Mapping[str, Any]) -> CoordinatorConfig:
    """Settings of the pure coordinator in `[coordinator]`. A key with the value "era" takes its default from `ERA_DEFAULTS`.

    Raises UsageError for a value out of range.
    """
    config: CoordinatorConfig = _checked(CoordinatorConfig, {key: value for key, value in section.items() if value != OF_ERA})
    return config


def run_coordinator(options: CoordinatorOptions, until: Until, stream: TextIO | None = None) -> None:
    """Serve until `until` returns, and log to `stream` (None: standard error), one JSON object per line.

    Raises CoordinatorError if the log or an address is not available, and any exception of `until`.
    """
    event_log = EventLog(stream or sys.stderr, options.log_level)
    raise_file_limit()
    in_snapshots = highest_in_snapshots(options.directory)
    log = open_offsets_log(options, event_log)
    try:
        store = _open_topics(options, event_log)
        try:
            with _transaction_log(options, log, store, in_snapshots, event_log) as transactions:
                serving = serve(log, store, options.config, options.settings, options.addresses, event_log, until, transactions)
                with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                    runner.run(serving)
        except CannotListen as error:
            raise CoordinatorError(str(error)) from error
        finally:
            store.close()
    finally:
        log.close()


async def until_signalled(address: ListenAddress, admin: ListenAddress | None) -> str:
    """Print the ready line, then wait for SIGTERM or SIGINT. Returns the name of the signal."""
    signal_name = signalled()
    print_ready_line(address, admin)
    received = await signal_name
    notify_stopping()
    return received


def print_ready_line(address: ListenAddress, admin: ListenAddress | None) -> None:
    """Report that connections are accepted: to systemd, and by the line on standard output that a supervisor waits for."""
    where = "" if admin is None else f", http://{admin}/health and /metrics"
    print(f"listening on {address}{where}", flush=True)
    notify_ready()


def open_offsets_log(
    options: CoordinatorOptions, event_log: EventLog, *, is_locked: bool = False, numbers: Sequence[int] | None = None
) -> SegmentLog:
    """Open the log of the group coordinator, as `SegmentLog.open` does. Raises CoordinatorError."""
    partitions = options.config.offsets_topic_num_partitions
    return _opened(options, event_log, OFFSETS_TOPIC, partitions, options.log, is_locked=is_locked, numbers=numbers)


@contextmanager
def _transaction_log(
    options: CoordinatorOptions, offsets: SegmentLog, store: TopicStore, in_snapshots: int, event_log: EventLog
) -> Iterator[TransactionLogConfig | None]:
    """Open `__transaction_state` in the folder of the other log, and close it; None in eras without transactions."""
    config = options.transactions
    if config is None:
        yield None
        return
    partitions = config.transaction_state_log_num_partitions
    log = _opened(options, event_log, TRANSACTION_STATE_TOPIC, partitions, options.transaction_log, is_locked=True)
    try:
        highest = max(in_snapshots, highest_in_logs(offsets, log, store))
        producer_ids = ProducerIdFile(log.directory, options.settings.node_id, highest)
        yield TransactionLogConfig(log, config, producer_ids.allocate)
    finally:
        log.close()


def _opened(
    options: CoordinatorOptions,
    event_log: EventLog,
    topic: str,
    partitions: int,
    settings: SegmentLogSettings,
    *,
    is_locked: bool = False,
    numbers: Sequence[int] | None = None,
) -> SegmentLog:
    started = time.perf_counter()
    try:
        log = SegmentLog.open(options.directory, topic, partitions, settings, is_locked=is_locked, numbers=numbers)
    except LogError as error:
        raise CoordinatorError(str(error)) from error
    except OSError as error:
        raise CoordinatorError(f"segments:{options.directory}: {error}") from error
    for tail in log.cut_tails():
        event_log.warning("tail cut off", what=str(tail))
    seconds = round(time.perf_counter() - started, 3)
    event_log.info("log opened", directory=str(log.directory), topic=topic, partitions=len(log.numbers), seconds=seconds)
    return log


def _open_topics(options: CoordinatorOptions, event_log: EventLog) -> TopicStore:
    started = time.perf_counter()
    declared = {
        name: (topic.partitions, topic.config) for name, topic in options.settings.declared_topics.items() if topic.has_data
    }
    rules = RULES[options.config.era]
    try:
        store = TopicStore(options.directory, declared, rules, options.settings.producer_id_expiration_ms)
    except LogError as error:
        raise CoordinatorError(str(error)) from error
    except OSError as error:
        raise CoordinatorError(f"segments:{options.directory}: {error}") from error
    partitions = list(store.partitions())
    for partition in partitions:
        if partition.log.cut_tail is not None:
            event_log.warning("tail cut off", what=str(partition.log.cut_tail))
    if partitions:
        load_topic_kernels()
        seconds = round(time.perf_counter() - started, 3)
        event_log.info("topics opened", topics=len(store.topics), partitions=len(partitions), seconds=seconds)
    return store


def _checked(kind: Any, section: Mapping[str, Any]) -> Any:
    """Make settings of class `kind` from the keys of the section. A ValueError becomes a UsageError."""
    names = {field.name for field in fields(kind)}
    return _usage(kind, **{name: value for name, value in section.items() if name in names})


def _log_settings(section: Mapping[str, Any]) -> SegmentLogSettings:
    codec = section["offsets_topic_compression_codec"]
    if codec not in list(Compression):
        raise UsageError(
            f"coordinator.offsets_topic_compression_codec is {codec}: must be 0 (none), 1 (gzip), 2 (snappy), 3 (lz4) or 4 (zstd)"
        )
    settings: SegmentLogSettings = _usage(
        SegmentLogSettings,
        segment_bytes=section["offsets_topic_segment_bytes"],
        compression=Compression(codec),
        min_cleanable_dirty_ratio=section["log_min_cleanable_ratio"],
        delete_retention_ms=section["log_delete_retention_ms"],
    )
    return settings


def _transaction_config(section: Mapping[str, Any]) -> TransactionConfig | None:
    if section["era"] not in TRANSACTION_BEHAVIOURS:
        return None
    config: TransactionConfig = _checked(TransactionConfig, section)
    return config


def _transaction_log_settings(section: Mapping[str, Any]) -> SegmentLogSettings:
    """Brokers force this topic to be uncompressed and compacted."""
    settings: SegmentLogSettings = _usage(
        SegmentLogSettings,
        segment_bytes=section["transaction_state_log_segment_bytes"],
        min_cleanable_dirty_ratio=section["log_min_cleanable_ratio"],
        delete_retention_ms=section["log_delete_retention_ms"],
    )
    return settings


def _usage(kind: Any, **values: Any) -> Any:
    try:
        return kind(**values)
    except ValueError as error:
        raise UsageError(f"coordinator: {error}") from error


def _fsync(text: str) -> Fsync:
    try:
        return Fsync(text)
    except ValueError as error:
        raise UsageError(f"coordinator.fsync is {text!r}: must be one of {', '.join(Fsync)}") from error


def _address(text: str, name: str) -> ListenAddress:
    try:
        return parse_listen_address(text)
    except ValueError as error:
        raise UsageError(f"{name}: {error}") from error
