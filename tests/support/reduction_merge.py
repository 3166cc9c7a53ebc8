"""The tables' side of a reduction, as dicts: the whole contract between the two, small enough to read."""

from collections.abc import Sequence
from typing import Any

from loaded_logs import replay
from offset_logs import Cuts, Key, pieces, reduced

from coordinator_core.log.entries import LogRecord
from coordinator_core.reduction.partition_reduction import Reduction
from coordinator_core.state.offsets import CommittedOffset

Row = dict[str, Any]
Commit = tuple[Any, ...]
#: Committed by key, and pending by producer and key.
Offsets = tuple[dict[Key, Commit], dict[tuple[int, Key], Commit]]


def key_of(row: Row) -> Key:
    return Key(row["group_id"], row["topic"], row["partition"])


def merge(committed: dict[Key, Row], pending: dict[tuple[int, Key], Row], reduction: Reduction) -> None:
    """Apply a reduction to the committed and pending offsets."""
    commits = {key_of(row): row for row in reduction.commits.to_pylist()}
    removed_at = {key_of(row): row["log_offset"] for row in reduction.tombstones.to_pylist()}
    markers = {row["producer_id"]: row for row in reduction.markers.to_pylist()}
    removals = {(row["producer_id"], key_of(row)) for row in reduction.pending_tombstones.to_pylist()}
    materialised: dict[Key, Row] = {}
    for producer_id, key in list(pending):
        marker = markers.get(producer_id)
        hit = not removals.isdisjoint({(producer_id, key), (None, key)})
        if not hit and marker is None:
            continue
        row = pending.pop((producer_id, key))
        if hit or marker is None or marker["type"] == "ABORT" or removed_at.get(key, -1) > marker["log_offset"]:
            continue
        if key not in materialised or materialised[key]["log_offset"] < row["log_offset"]:
            materialised[key] = row
    for key in removed_at:
        committed.pop(key, None)
    for key, row in materialised.items():
        if key not in committed or committed[key]["log_offset"] < row["log_offset"]:
            committed[key] = row
    committed.update(commits)
    pending.update({(row["producer_id"], key_of(row)): row for row in reduction.pending.to_pylist()})


def merged(records: Sequence[LogRecord], era: str, range_cuts: Cuts, chunk_cuts: Cuts = ()) -> Offsets:
    """Committed and pending offsets after merging range after range."""
    committed: dict[Key, Row] = {}
    pending: dict[tuple[int, Key], Row] = {}
    for piece in pieces(records, range_cuts):
        merge(committed, pending, reduced(piece, era, chunk_cuts))
    return {k: _of_row(row) for k, row in committed.items()}, {k: _of_row(row) for k, row in pending.items()}


def loaded(records: Sequence[LogRecord], era: str) -> Offsets:
    """Committed and pending offsets after the scalar replay."""
    offsets = replay(records, era)[0].offsets
    committed = {Key(g, *tp): _of_state(commit) for g, commits in offsets.committed.items() for tp, commit in commits.items()}
    pending = {
        (producer.producer_id, Key(g, *tp)): _of_state(commit)
        for producer, groups in offsets.pending.items()
        for g, commits in groups.items()
        for tp, commit in commits.items()
    }
    return committed, pending


def _of_state(commit: CommittedOffset) -> Commit:
    return commit.log_offset, commit.offset, commit.leader_epoch, commit.metadata, commit.commit_timestamp


def _of_row(row: Row) -> Commit:
    epoch = None if row["leader_epoch"] == -1 else row["leader_epoch"]
    return row["log_offset"], row["committed_offset"], epoch, row["metadata"], row["commit_timestamp"]
