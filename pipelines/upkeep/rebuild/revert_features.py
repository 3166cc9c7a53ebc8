"""`grouplake rebuild --revert-features`: tables whose protocol another program has raised become readable again, in place.

Each of them gets a further version with the rows, columns and properties of the version that the last batch names, and with the
protocol that Grouplake gives its tables. The files of that version are still there, so no row is written anew, and the log of
Kafka is not needed. Delta's RESTORE does the same for data; it has no way back from every feature, so in a local folder the entry
of the log is written here (docs/adr/0056).
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable
from deltalake.exceptions import CommitFailedError, DeltaError

from pipelines.batch.without_records import finish_batch
from pipelines.runtime.errors import TablesError, UsageError
from pipelines.runtime.failpoints import failpoint
from pipelines.runtime.phases import Phases
from pipelines.runtime.progress import Progress
from pipelines.runtime.timestamps import now_ms
from pipelines.tables import definitions
from pipelines.tables.containment import expect_own_log
from pipelines.tables.damage import damaged_tables
from pipelines.tables.foreign_commits.commit import STAMP, Commit
from pipelines.tables.foreign_commits.features import TableProtocol
from pipelines.tables.foreign_commits.log import (
    commit_of,
    commits_after,
    describe_foreign_feature,
    newest_version,
    origin,
    protocol_of,
    state_of,
)
from pipelines.tables.foreign_commits.rules import PLAIN_NAME, TableState, is_kept_property, reverted_lines, review
from pipelines.tables.location import local_folder
from pipelines.tables.object_stores import reason_of
from pipelines.tables.sorted_files.sorted_files import create_entry
from pipelines.tables.store import TableStore
from pipelines.tables.writer import CommitConflict, TablesWriter
from pipelines.tables.writer_lock import writer_lock

_USER_METADATA = f"{STAMP} 0, batch 0, features reverted"

#: The protocol of Grouplake's tables.
_OWN = TableProtocol()


def revert_features(root: str, progress: Progress) -> list[str]:
    """Revert the tables under `root` that have a protocol which Grouplake or delta-rs cannot handle. Returns their names.

    Raises:
        UsageError: there are no tables.
        AnotherWriter: a job is writing them.
        TablesError: a file or an entry of a log that is needed is missing; the table is unchanged.
    """
    store = TableStore(root)
    if not store.exists():
        raise UsageError(f"no table batches under {store.root}: is this a folder that `grouplake run` wrote?")
    with writer_lock(root, "grouplake rebuild"):
        reverted = [name for name in ("batches", *definitions.ALERTS) if store.has(name) and _is_foreign(store.path(name), None)]
        for name in reverted:
            _revert(store, name, None, progress)
        store = TableStore(root)
        last = store.last_batch()
        replaced: dict[str, int] = {}
        # before the first batch, tables are as they were created
        named = dict.fromkeys(filter(store.has, definitions.WRITE_ORDER[:-1]), 0) if last is None else last.versions
        for name, version in named.items():
            uri = store.path(name)
            if _is_foreign(uri, None) or (_is_foreign(uri, version) and not _is_reverted(uri)):
                replaced[name] = _revert(store, name, version, progress)
                failpoint(f"reverted:{name}")
            elif _is_foreign(uri, version):
                # an earlier command was interrupted before its batch
                replaced[name] = newest_version(uri) or version
        if last is not None and replaced:
            # names the new versions: that of the last batch may have such a protocol too
            writer = TablesWriter.claim(TableStore(root), replaced=replaced)
            writer.begin()
            phases = Phases(datetime.now(UTC))
            batch = finish_batch(writer, last, phases, datetime.now(UTC))
            progress(f"batch {batch.batch_id}: features reverted; the job continues at its position")
    names = [*reverted, *replaced]
    if not names:
        progress(f"no table under {store.root} has a feature to revert")
    return names


def _is_foreign(uri: str, version: int | None) -> bool:
    try:
        return protocol_of(DeltaTable(uri, version=version)).problem is not None
    except DeltaError:
        # delta-rs does not open a table with a feature that it does not know
        return describe_foreign_feature(uri, version) is not None


def _is_reverted(uri: str) -> bool:
    newest = newest_version(uri)
    commit = None if newest is None else commit_of(uri, newest)
    return commit is not None and commit.info.get("userMetadata") == _USER_METADATA


def _revert(store: TableStore, name: str, named: int | None, progress: Progress) -> int:
    """Make a table again what it was at the version `named`; None: the newest that can be handled. Returns the new version."""
    uri = store.path(name)
    newest = newest_version(uri)
    if newest is None:
        raise TablesError(f"table {name} under {store.root} has no log")
    version = _last_sound(uri, newest) if named is None else named
    commits = list(commits_after(uri, version, newest))
    try:
        expect_own_log(uri, version)
        table = DeltaTable(uri, version=version)
        before = state_of(table)
    except (DeltaError, UsageError, ValueError) as error:
        raise _cannot(store, name, f"version {version} cannot be read: {reason_of(error)}") from error
    if local_folder(uri) is None:
        _restore_in_store(store, name, version)
    else:
        _append_entry(store, name, table, before, commits)
    reverted = DeltaTable(uri)
    # readers begin with it, and so do not see the entries with deletion vectors
    reverted.create_checkpoint()
    for line in reverted_lines(name, store.root, review(commits, before, version)):
        progress(line)
    protocol = protocol_of(reverted)
    with_protocol = f"with protocol {protocol.reader}/{protocol.writer}"
    progress(f"table {name} under {store.root}: version {reverted.version()} is what version {version} was, {with_protocol}")
    return reverted.version()


def _last_sound(uri: str, newest: int) -> int:
    """The version before the protocol was raised; the newest if rows were written since then."""
    _, raised = origin(uri, newest)
    if raised is None or any(any(commit.of("add", "remove")) for commit in commits_after(uri, raised.version, newest)):
        return newest
    return raised.version - 1


def _append_entry(store: TableStore, name: str, table: DeltaTable, state: TableState, commits: Sequence[Commit]) -> None:
    """Write the entry of the next version: its actions lead from the newest version to that of `table`."""
    uri = store.path(name)
    folder = local_folder(uri)
    assert folder is not None, "a local table"
    version = table.version() + len(commits)
    try:
        removed, added = _file_actions(table, commits)
        metadata = _metadata_action(name, table, is_sound=state.protocol.problem is None)
    except ValueError as error:
        raise _cannot(store, name, str(error)) from error
    for path in (each["path"] for each in _adds(table)):
        if not PLAIN_NAME.fullmatch(path):
            # of delta-rs with column mapping, in a version that a job has gone on with
            raise _cannot(store, name, f"it names the file {path!r}")
        if not (folder / path).exists():
            raise damaged_tables(f"file {name}/{path} is missing", store.root)
    info: dict[str, Any] = {
        "timestamp": now_ms(),
        "operation": "RESTORE",
        "operationParameters": {"version": str(table.version())},
        "readVersion": version,
        "userMetadata": _USER_METADATA,
    }
    actions: list[dict[str, Any]] = [
        {"commitInfo": info},
        {"protocol": _protocol_action(state.protocol)},
        {"metaData": metadata},
        *({"remove": each} for each in removed),
        *({"add": each} for each in added),
    ]
    entries = [actions]
    if any("deletionVector" in each for each in removed):
        # readers reject a log that names a deletion vector; the checkpoint after this entry does not name any
        entries.append([{"commitInfo": info | {"readVersion": version + 1}}])
    for number, entry in enumerate(entries, version + 1):
        text = "".join(f"{json.dumps(action, ensure_ascii=False, separators=(',', ':'))}\n" for action in entry)
        try:
            create_entry(folder / "_delta_log" / f"{number:020}.json", text)
        except CommitConflict as error:
            raise TablesError(f"another program keeps writing to {uri}: stop it and run again") from error


def _file_actions(table: DeltaTable, commits: Sequence[Commit]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The files to remove and to add, so that the files of `table` result after `commits`. Raises ValueError for lost entries.

    A file with a deletion vector is another one than the file without it.
    """
    ours = {(each["path"], ""): each for each in _adds(table)}
    present: dict[tuple[str, str], Mapping[str, Any]] = dict(ours)
    for commit in commits:
        if any(kind == "unknown" for kind, _ in commit.actions):
            raise ValueError(f"the entry of version {commit.version} is missing in its log")
        for action in commit.of("remove"):
            present.pop(_file_key(action), None)
        present |= {_file_key(action): action for action in commit.of("add")}
    removed = [
        {
            "path": action["path"],
            # checkpoints name removed files for some days: not one with a deletion vector, which readers reject
            "deletionTimestamp": 0 if action.get("deletionVector") else now_ms(),
            "dataChange": True,
            "size": action.get("size"),
            "partitionValues": action.get("partitionValues") or {},
            **({"deletionVector": action["deletionVector"]} if action.get("deletionVector") else {}),
        }
        for key, action in present.items()
        if key not in ours
    ]
    return removed, [each for key, each in ours.items() if key not in present]


def _file_key(action: Mapping[str, Any]) -> tuple[str, str]:
    """Identity of a file in a log: its path and its deletion vector (Delta's PROTOCOL.md, "Action Reconciliation")."""
    vector = action.get("deletionVector")
    parts = ("storageType", "pathOrInlineDv", "offset")
    return str(action.get("path")), str([vector.get(part) for part in parts]) if isinstance(vector, dict) else ""


def _adds(table: DeltaTable) -> Iterator[dict[str, Any]]:
    for row in pa.table(table.get_add_actions()).to_pylist():
        stats = {
            "numRecords": row["num_records"],
            "minValues": _values(row.get("min")),
            "maxValues": _values(row.get("max")),
            "nullCount": {key: count for key, count in (row.get("null_count") or {}).items() if isinstance(count, int)},
        }
        yield {
            "path": row["path"],
            "partitionValues": {},
            "size": row["size_bytes"],
            "modificationTime": row["modification_time"],
            "dataChange": True,
            "stats": json.dumps(stats, ensure_ascii=False, separators=(",", ":")),
        }


def _values(found: Mapping[str, Any] | None) -> dict[str, Any]:
    """Statistics of texts and numbers, as sorted files have them."""
    return {key: value for key, value in (found or {}).items() if isinstance(value, (str, int)) and not isinstance(value, date)}


def _protocol_action(protocol: TableProtocol) -> dict[str, Any]:
    kept = _OWN if protocol.problem else protocol
    lists: dict[str, Any] = {}
    if kept.writer >= 7:
        lists["writerFeatures"] = sorted(kept.writer_features)
    if kept.reader >= 3:
        lists["readerFeatures"] = sorted(kept.reader_features)
    return {"minReaderVersion": kept.reader, "minWriterVersion": kept.writer, **lists}


def _metadata_action(name: str, table: DeltaTable, *, is_sound: bool) -> dict[str, Any]:
    """The metadata of a version; if that is not sound, without properties and column ids of features."""
    metadata = table.metadata()
    schema, properties = json.loads(table.schema().to_json()), dict(metadata.configuration)
    if not is_sound:
        kept = {key: value for key, value in properties.items() if is_kept_property(key) or key.startswith("grouplake.")}
        schema, properties = _plain(schema), {**definitions.table(name).properties, **kept}
    return {
        "id": str(metadata.id),
        "name": metadata.name,
        "description": metadata.description,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps(schema, ensure_ascii=False),
        "partitionColumns": list(metadata.partition_columns),
        "createdTime": metadata.created_time,
        "configuration": properties,
    }


def _plain(part: Any) -> Any:
    """A part of a schema whose columns have no metadata but their comments. Raises ValueError for a renamed column."""
    if isinstance(part, list):
        return [_plain(each) for each in part]
    if not isinstance(part, dict):
        return part
    found = {key: _plain(value) for key, value in part.items()}
    metadata = part.get("metadata")
    if isinstance(metadata, dict):
        if metadata.get("delta.columnMapping.physicalName", part.get("name")) != part.get("name"):
            raise ValueError(f"column {part.get('name')} has another name in the files")
        found["metadata"] = {key: value for key, value in metadata.items() if key == "comment"}
    return found


def _restore_in_store(store: TableStore, name: str, version: int) -> None:
    properties = CommitProperties(custom_metadata={"userMetadata": _USER_METADATA}, max_commit_retries=0)
    try:
        table = DeltaTable(store.path(name))
        table.restore(version, protocol_downgrade_allowed=True, commit_properties=properties)
    except (DeltaError, CommitFailedError) as error:
        raise _cannot(store, name, reason_of(error)) from error
    if protocol_of(table).problem is not None:
        raise _cannot(store, name, f"version {version} has the protocol already")


def _cannot(store: TableStore, name: str, reason: str) -> TablesError:
    return TablesError(
        f"cannot revert table {name} under {store.root}: {reason}; "
        "restore a backup, or write all tables anew with `grouplake rebuild` (with --source if that cannot read it either)"
    )
