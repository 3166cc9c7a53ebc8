"""Rules about commits of other programs: what is harmless stays, everything else is reverted.

The actions of a commit decide, never the name of its operation: an OPTIMIZE that changes rows is not harmless, and an operation
that no one has heard of is harmless if it changes nothing. `REASONS` is the table of what is not harmless.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pipelines.tables.foreign_commits.commit import Commit
from pipelines.tables.foreign_commits.features import TableProtocol

#: Valid names of data files: without separator, escape and scheme, so that every resolution gives a file in the folder.
PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")

#: Properties that change neither the rows nor how Grouplake reads and writes them. A name that ends with a dot is a prefix.
KEPT_PROPERTIES = (
    "delta.autoOptimize.",
    "delta.checkpoint.writeStatsAsJson",
    "delta.checkpoint.writeStatsAsStruct",
    "delta.checkpointInterval",
    "delta.dataSkippingNumIndexedCols",
    "delta.dataSkippingStatsColumns",
    "delta.deletedFileRetentionDuration",
    "delta.enableChangeDataFeed",
    "delta.isolationLevel",
    "delta.logRetentionDuration",
    "delta.targetFileSize",
    "delta.tuneFileSizesForRewrites",
)

#: Namespaces of properties with a meaning for Delta or Grouplake; names outside of them are labels of a team.
_RESERVED = ("delta.", "grouplake.")
#: Actions without effect on what is read, or with rules of their own below.
_KNOWN_ACTIONS = frozenset({"add", "remove", "cdc", "metaData", "protocol", "txn"})


@dataclass(frozen=True)
class TableState:
    """The parts of a table's metadata that rules compare. `fields` are the columns as JSON, without their comments."""

    fields: tuple[str, ...] = ()
    partition_columns: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    protocol: TableProtocol = field(default_factory=TableProtocol)

    @classmethod
    def of(
        cls, schema: str, partition_columns: Iterable[str], properties: Mapping[str, str], protocol: TableProtocol
    ) -> "TableState":
        """The state with a schema in Delta's JSON. Raises ValueError for another text."""
        found = json.loads(schema)
        columns = found.get("fields") if isinstance(found, dict) else None
        if not isinstance(columns, list):
            raise ValueError("a schema without fields")
        texts = tuple(json.dumps(_without_comments(column), sort_keys=True) for column in columns)
        return cls(texts, tuple(partition_columns), dict(properties), protocol)

    def after(self, commit: Commit) -> "TableState":
        """The state after a commit. Raises ValueError for a schema that is none."""
        state = self
        for action in commit.of("metaData"):
            schema, columns = str(action.get("schemaString")), action.get("partitionColumns") or ()
            state = self.of(schema, columns, action.get("configuration") or {}, state.protocol)
        for action in commit.of("protocol"):
            state = replace(state, protocol=TableProtocol.of_action(action))
        return state


def reason_to_revert(commit: Commit, before: TableState) -> str | None:
    """Why a commit to a table in the state `before` is not harmless, as the end of a sentence; None for a harmless one."""
    return _first_reason(commit, before, REASONS)


def _first_reason(commit: Commit, before: TableState, rules: "Iterable[Rule]") -> str | None:
    try:
        after = before.after(commit)
    except (ValueError, TypeError, AttributeError):
        return "its metadata cannot be read"
    return next((reason for rule in rules if (reason := rule(commit, before, after)) is not None), None)


def _protocol(_commit: Commit, before: TableState, after: TableState) -> str | None:
    return after.protocol.problem if after.protocol != before.protocol else None


def _rows(commit: Commit, _before: TableState, _after: TableState) -> str | None:
    # `dataChange` is required: without it, the worst is assumed
    is_changed = any(action.get("dataChange", True) is not False for action in commit.of("add", "remove"))
    return "it changes rows" if is_changed or any(commit.of("cdc")) else None


def _files(commit: Commit, _before: TableState, _after: TableState) -> str | None:
    if any(action.get("deletionVector") is not None for action in commit.of("add", "remove")):
        return "it has a deletion vector"
    outside = next((str(each.get("path")) for each in commit.of("add") if not PLAIN_NAME.fullmatch(str(each.get("path")))), None)
    return None if outside is None else f"it names the file {outside[:80]!r}"


def _columns(_commit: Commit, before: TableState, after: TableState) -> str | None:
    if before.fields == after.fields:
        return None
    changed = sorted({json.loads(text)["name"] for text in {*before.fields} ^ {*after.fields}})
    return f"it changes the columns {', '.join(changed)}" if changed else "it changes the order of columns"


def _partitions(_commit: Commit, before: TableState, after: TableState) -> str | None:
    return "it changes the partitioning" if before.partition_columns != after.partition_columns else None


def _properties(_commit: Commit, before: TableState, after: TableState) -> str | None:
    both = {*before.properties.items()} ^ {*after.properties.items()}
    changed = sorted({name for name, _ in both if not is_kept_property(name)})
    return f"it changes the properties {', '.join(changed)}" if changed else None


def _unknown_actions(commit: Commit, _before: TableState, _after: TableState) -> str | None:
    unknown = sorted({name for name, _ in commit.actions} - _KNOWN_ACTIONS)
    return f"it has the actions {', '.join(unknown)}" if unknown else None


#: Gets a commit and the states before and after it; returns the reason to revert it.
Rule = Callable[[Commit, TableState, TableState], str | None]

#: What is not harmless, in the order in which it is named.
REASONS: tuple[Rule, ...] = (
    _protocol,
    _rows,
    _files,
    _columns,
    _partitions,
    _properties,
    _unknown_actions,
)


def is_kept_property(name: str) -> bool:
    """True if other programs may change the property."""
    if not name.startswith(_RESERVED):
        return True
    return any(name.startswith(kept) if kept.endswith(".") else name == kept for kept in KEPT_PROPERTIES)


@dataclass(frozen=True)
class Review:
    """Commits after a version: the newest version up to which all of them stay, and the others with the reason of each."""

    kept_version: int
    reverted: tuple[tuple[Commit, str], ...] = ()


#: Reason of a commit of Grouplake, whose batch was never finished. It is not reported.
UNFINISHED = "it belongs to a batch that was not finished"


def _own_reason(commit: Commit, before: TableState, is_append_only: bool) -> str | None:
    """Why a commit of Grouplake whose batch was never finished is reverted; None if it only maintains the table.

    Maintenance moves rows to other files. Of an append-only table it also removes old ones, which no batch does. To revert that
    would add rows again, and readers that stream the table would get them twice (docs/adr/0068).
    """
    reason = reason_to_revert(commit, before)
    if reason is not None and is_append_only and any(commit.of("remove")) and not _adds_rows(commit):
        reason = _first_reason(commit, before, (rule for rule in REASONS if rule is not _rows))
    return None if reason is None else UNFINISHED


def _adds_rows(commit: Commit) -> bool:
    return any(action.get("dataChange", True) is not False for action in commit.of("add")) or any(commit.of("cdc"))


def review(commits: Iterable[Commit], before: TableState, version: int, *, is_append_only: bool = False) -> Review:
    """Review the commits that follow `version`, at which a table had the state `before`.

    A RESTORE can only return to a version, so a harmless commit after one that is not is reverted too.
    """
    kept = version
    reverted: list[tuple[Commit, str]] = []
    for commit in commits:
        reason = _own_reason(commit, before, is_append_only) if commit.is_ours else reason_to_revert(commit, before)
        if reverted or reason is not None:
            first = reverted[0][0] if reverted else commit
            reverted.append((commit, reason or f"it follows version {first.version}"))
        else:
            kept, before = commit.version, before.after(commit)
    return Review(kept, tuple(reverted))


def describe_reverted(name: str, root: str, commit: Commit, reason: str) -> str:
    """One line about a reverted commit of another program, for the people who made it."""
    return f"table {name} under {root}: reverted {commit}: {reason}"


def reverted_lines(name: str, root: str, found: Review) -> list[str]:
    """The lines about the reverted commits to a table. A VACUUM has none: nothing of it is reverted."""
    return [
        describe_reverted(name, root, commit, reason)
        for commit, reason in found.reverted
        if not commit.is_ours and (commit.actions or commit == found.reverted[0][0])
    ]


def _without_comments(value: Any) -> Any:
    """A part of a schema without the comments in its metadata."""
    if isinstance(value, list):
        return [_without_comments(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        name: {key: text for key, text in each.items() if key != "comment"}
        if name == "metadata" and isinstance(each, dict)
        else _without_comments(each)
        for name, each in value.items()
    }
