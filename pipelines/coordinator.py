"""`grouplake coordinator`: configuration and addresses → a log, and the service on top of it."""

import asyncio
import sys
import time
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from coordinator_core.coordinator.config import CoordinatorConfig
from coordinator_core.log.compression import Compression
from coordinator_core.log.errors import LogError
from coordinator_core.segment_log.segment_log import SegmentLog
from coordinator_core.segment_log.settings import SegmentLogSettings
from coordinator_core.service.addresses import Address, parse_listen_address
from coordinator_core.service.cluster import OFFSETS_TOPIC
from coordinator_core.service.event_log import LEVELS, EventLog
from coordinator_core.service.process import Addresses, CannotListen, raise_file_limit, serve
from coordinator_core.service.settings import Fsync, ServiceSettings
from pipelines.errors import GrouplakeError, UsageError

_SEGMENTS = "segments:"


class CoordinatorError(GrouplakeError):
    """The coordinator cannot begin: its folder is another's, its log cannot be read, its address is taken."""


def run_coordinator(listen: str, log_address: str, section: Mapping[str, Any]) -> None:
    """Serves until it is told to end. `section` is `[coordinator]` of the configuration.

    Raises UsageError for what is not as it must be written, CoordinatorError for what is not to be had.
    """
    config = _checked(CoordinatorConfig, section)
    settings = _checked(ServiceSettings, {**section, "fsync": _fsync(section["fsync"])})
    log_settings = _log_settings(section)
    addresses = Addresses(
        _address(listen, "--listen"),
        _address(section["advertised_listener"], "coordinator.advertised_listener") if section["advertised_listener"] else None,
        _address(section["admin_listen"], "coordinator.admin_listen") if section["admin_listen"] else None,
    )
    if section["log_level"] not in LEVELS:
        raise UsageError(f"coordinator.log_level is {section['log_level']!r}, and must be one of {', '.join(LEVELS)}")
    event_log = EventLog(sys.stderr, section["log_level"])
    raise_file_limit()
    log = _open(log_address, config.offsets_topic_num_partitions, log_settings, event_log)
    try:
        asyncio.run(serve(log, config, settings, addresses, event_log, _ready))
    except CannotListen as error:
        raise CoordinatorError(str(error)) from error
    finally:
        log.close()


def _open(address: str, partitions: int, settings: SegmentLogSettings, event_log: EventLog) -> SegmentLog:
    if not address.startswith(_SEGMENTS) or not address.removeprefix(_SEGMENTS):
        raise UsageError(f"--log {address!r}: the log is a folder, {_SEGMENTS}DIR")
    started = time.perf_counter()
    try:
        log = SegmentLog.open(address.removeprefix(_SEGMENTS), OFFSETS_TOPIC, partitions, settings)
    except LogError as error:
        raise CoordinatorError(str(error)) from error
    except OSError as error:
        raise CoordinatorError(f"{address}: {error}") from error
    for tail in log.cut_tails():
        event_log.warn("tail cut off", what=str(tail))
    seconds = round(time.perf_counter() - started, 3)
    event_log.say("log opened", directory=str(log.directory), partitions=log.partitions, seconds=seconds)
    return log


def _ready(address: Address, admin: Address | None) -> None:
    where = "" if admin is None else f", http://{admin}/health and /metrics"
    print(f"listening on {address}{where}", flush=True)


def _checked(kind: Any, section: Mapping[str, Any]) -> Any:
    """The settings of this kind that are in the section; their ValueError is the user's."""
    names = {field.name for field in fields(kind)}
    return _usage(kind, **{name: value for name, value in section.items() if name in names})


def _log_settings(section: Mapping[str, Any]) -> SegmentLogSettings:
    codec = section["offsets_topic_compression_codec"]
    if codec not in list(Compression):
        raise UsageError(f"coordinator.offsets_topic_compression_codec is {codec}, which no codec is")
    settings: SegmentLogSettings = _usage(
        SegmentLogSettings,
        segment_bytes=section["offsets_topic_segment_bytes"],
        compression=Compression(codec),
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
        raise UsageError(f"coordinator.fsync is {text!r}, and must be one of {', '.join(Fsync)}") from error


def _address(text: str, name: str) -> Address:
    try:
        return parse_listen_address(text)
    except ValueError as error:
        raise UsageError(f"{name}: {error}") from error
