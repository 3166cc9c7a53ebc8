"""Filters of groups of other programs as values of `[groups]`: regular expressions for whole names."""

import re
from collections.abc import Callable, Iterable

from pipelines.doctor.migration.migrated_cluster import MigratedCluster
from pipelines.doctor.migration.peer_keys import PeerKeys

_NOT_OURS = "has a regular expression that Python does not know, or a variable: not copied, so more or other groups are read"
_EVERY = {"", ".*", "(?s:.*)", ".+"}
#: Longest expression that is copied.
_MAX_LENGTH = 2_000


def found_anywhere(expression: str) -> str:
    """An expression that another program looks for anywhere in a name."""
    if "|" in expression or "\\" in expression:
        return expression if expression in _EVERY else f".*(?:{expression}).*"
    start = "" if expression.startswith("^") else ".*"
    end = "" if expression.endswith("$") else ".*"
    return f"{start}{expression.removeprefix('^').removesuffix('$')}{end}" if expression not in _EVERY else expression


def found_at_start(expression: str) -> str:
    """An expression that another program matches with the beginning of a name."""
    return expression if expression in _EVERY else f"(?:{expression}).*"


def whole_name(expression: str) -> str:
    """An expression that another program matches with whole names."""
    return expression


def glob(pattern: str) -> str:
    """A pattern with `*` and `?`."""
    return "".join(".*" if char == "*" else "." if char == "?" else re.escape(char) for char in pattern)


def put_groups(
    cluster: MigratedCluster, key: str, patterns: Iterable[str], translate: Callable[[str], str], keys: PeerKeys, name: str
) -> None:
    """Set `groups.KEY`. Expressions that Python does not know are left out, and named. An `include` of all groups is left out."""
    found = []
    for pattern in patterns:
        expression = translate(pattern)
        if "${" in expression or len(expression) > _MAX_LENGTH or not _is_known(expression):
            keys.remark(name, _NOT_OURS)
        else:
            found.append(expression)
    if key == "include" and any(expression in _EVERY for expression in found):
        return
    if found:
        cluster.put("groups", key, found)


def _is_known(expression: str) -> bool:
    try:
        re.compile(expression, re.DOTALL)
    except (re.error, OverflowError, RecursionError):
        return False
    return True
