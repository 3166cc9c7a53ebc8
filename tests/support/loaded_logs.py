"""The genuine logs of tests/data, loaded into a GroupState as their broker would."""

import tarfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any
from uuid import UUID

from genuine import DATA
from scalar_logs import read_log

from coordinator_core.codec import decode
from coordinator_core.log.entries import LogRecord
from coordinator_core.log.partition_metadata import parse_topic_id, partition_of
from coordinator_core.state.anomaly import Anomaly
from coordinator_core.state.era import Era
from coordinator_core.state.group_state import GroupState

#: Version of the broker that wrote a log → era that loads it.
ERA_OF_LOG = {"0.10.2.2": "0.10", "2.8.2": "3", "4.1.1": "4", "4.3.0-share-streams": "4"}
NOW_MS = 1_795_300_000_000


@cache
def log_records(version: str) -> tuple[LogRecord, ...]:
    """Every record of the segments, control records included, partition by partition."""
    found = []
    for path, data in sorted(_files(version).items()):
        partition = partition_of(path.parent.name)
        if path.suffix == ".log" and partition is not None and partition[0] == "__consumer_offsets":
            found += [item for item in read_log(data, partition[1]) if isinstance(item, LogRecord)]
    return tuple(found)


@cache
def topic_ids(version: str) -> dict[UUID, str]:
    """Topic ids from the `partition.metadata` files."""
    named = {}
    for path, data in _files(version).items():
        partition, topic_id = partition_of(path.parent.name), parse_topic_id(data.decode(errors="replace"))
        if path.name == "partition.metadata" and partition is not None and topic_id is not None:
            named[topic_id] = partition[0]
    return named


def load(version: str, era: str | None = None) -> tuple[GroupState, list[Anomaly]]:
    """State and anomalies after the whole log, with the era of its broker or another one."""
    return replay(log_records(version), era or ERA_OF_LOG[version])


def replay(records: Iterable[LogRecord], era: str, now_ms: int = NOW_MS) -> tuple[GroupState, list[Anomaly]]:
    """A state with these records applied in the order given."""
    state = GroupState(Era.named(era), now_ms)
    anomalies = [anomaly for record in records for anomaly in state.apply(record, _decoded(record))]
    return state, anomalies + list(state.finish_load())


def _decoded(record: LogRecord) -> Any:
    return None if record.is_control else decode(record.key, record.value)


@cache
def _files(version: str) -> dict[Path, bytes]:
    with tarfile.open(DATA / f"kafka-{version}.segments.tar.gz") as archive:
        members = {member.name: archive.extractfile(member) for member in archive.getmembers() if member.isfile()}
        return {Path(name): file.read() for name, file in members.items() if file is not None}
