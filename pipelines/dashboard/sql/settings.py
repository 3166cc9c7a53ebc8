"""Limits of queries from the network."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipelines.runtime.errors import UsageError

#: Characters of a query.
LONGEST_QUERY = 16_384


@dataclass(frozen=True)
class SqlSettings:
    """Whether queries are answered, and their limits."""

    is_on: bool
    seconds: int
    memory_mb: int
    rows: int
    processes: int


def sql_settings(section: Mapping[str, Any]) -> SqlSettings:
    """Settings from the section `[dashboard]`. Raises UsageError for a limit of 0."""
    names = ("sql_seconds", "sql_memory_mb", "sql_rows", "sql_processes")
    for name in names:
        if not section[name]:
            raise UsageError(f"dashboard.{name} is 0: must be 1 or more")
    return SqlSettings(section["sql"], *(section[name] for name in names))
