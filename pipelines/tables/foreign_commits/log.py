"""Entries of the log of a table, and the state of its metadata."""

import re
from collections.abc import Iterator

from deltalake import DeltaTable

from pipelines.runtime.errors import ForeignFeature, TablesError
from pipelines.tables.folder_files import FolderFiles
from pipelines.tables.foreign_commits.commit import Commit
from pipelines.tables.foreign_commits.features import TableProtocol
from pipelines.tables.foreign_commits.rules import TableState
from pipelines.tables.location import local_folder

#: Entries that are read to find the origin of a protocol.
_MOST_ENTRIES = 2_000

_ENTRY = re.compile(r"(?:.*/)?([0-9]{20})\.json")


def commit_of(uri: str, version: int) -> Commit | None:
    """The commit of a version of the table at `uri`; None if its entry is missing or cannot be read."""
    try:
        content = FolderFiles(uri).read(f"_delta_log/{version:020}.json")
        return None if content is None else Commit.parsed(version, content)
    except (TablesError, ValueError, TypeError, RecursionError):
        return None


def has_later_commit(uri: str, version: int) -> bool:
    """Whether a table in a local folder has a commit after a version; False in an object store.

    Takes microseconds; opening a table takes milliseconds, and a batch has more than twenty.
    """
    folder = local_folder(uri)
    return folder is not None and (folder / f"_delta_log/{version + 1:020}.json").exists()


def ends_at(uri: str, version: int) -> bool:
    """Whether the log of a table in a local folder ends at a version, without opening it; False in an object store.

    Log cleanup removes the oldest entries, so an existing entry without a next one is the last.
    """
    folder = local_folder(uri)
    return folder is not None and (folder / f"_delta_log/{version:020}.json").exists() and not has_later_commit(uri, version)


def commits_after(uri: str, version: int, newest: int) -> Iterator[Commit]:
    """The commits after a version, up to the newest one. One whose entry is missing has an action that no rule knows."""
    for number in range(version + 1, newest + 1):
        yield commit_of(uri, number) or Commit(number, {}, (("unknown", {}),))


def state_of(table: DeltaTable) -> TableState:
    """The metadata of an opened table."""
    metadata = table.metadata()
    return TableState.of(table.schema().to_json(), metadata.partition_columns, metadata.configuration, protocol_of(table))


def protocol_of(table: DeltaTable) -> TableProtocol:
    """The protocol of an opened table."""
    found = table.protocol()
    return TableProtocol(
        found.min_reader_version,
        found.min_writer_version,
        frozenset(found.reader_features or ()),
        frozenset(found.writer_features or ()),
    )


def origin(uri: str, newest: int) -> tuple[TableProtocol, Commit | None]:
    """The protocol at version `newest`, and the commit since which Grouplake cannot handle the table; None for a missing entry.

    The entries are read backwards, up to a protocol that Grouplake can handle: a RESTORE may have repeated the other one.
    """
    found: tuple[TableProtocol, Commit | None] | None = None
    for version in range(newest, max(-1, newest - _MOST_ENTRIES), -1):
        commit = commit_of(uri, version)
        if commit is None:
            break
        for action in commit.of("protocol"):
            protocol = TableProtocol.of_action(action)
            if protocol.problem is None:
                return found or (protocol, None)
            found = (protocol if found is None else found[0], commit)
    return found or (TableProtocol(), None)


def describe_foreign_feature(uri: str, version: int | None, protocol: TableProtocol | None = None) -> str | None:
    """One line about the protocol of the table at `uri` if Grouplake cannot handle it, with the commit that has raised it.

    `version` None stands for the newest. `protocol` is that of the version, if it is known.
    """
    newest = newest_version(uri) if version is None else version
    logged, commit = (TableProtocol(), None) if newest is None else origin(uri, newest)
    found = protocol or logged
    if found.problem is None:
        return None
    root, _, name = uri.rstrip("/").rpartition("/")
    folder = re.sub(r"/_rebuilt-[0-9]+$", "", root)
    since = "" if commit is None else f" since {commit}"
    kind = "read" if found.unreadable else "write"
    return (
        f"table {name} under {root}: {found.problem}{since}, which Grouplake and delta-rs cannot {kind}; stop the job and run "
        f"`grouplake rebuild --tables {folder} --revert-features`"
    )


def newest_version(uri: str) -> int | None:
    """The newest version in the log of the table at `uri`, without opening it; None without a log of regular folders."""
    folder = local_folder(uri)
    if folder is not None and (folder.is_symlink() or (folder / "_delta_log").is_symlink()):
        return None
    try:
        found = [_ENTRY.fullmatch(path) for path in FolderFiles(uri).sizes("_delta_log")]
    except (TablesError, FileNotFoundError):
        return None
    return max((int(match[1]) for match in found if match), default=None)


def expect_writable_protocol(uri: str, table: DeltaTable) -> None:
    """Raise ForeignFeature, with the commit that has raised the protocol, unless delta-rs can write the opened table."""
    protocol = protocol_of(table)
    if protocol.problem is not None:
        raise ForeignFeature(describe_foreign_feature(uri, table.version(), protocol) or uri)
