"""A commit in the log of a Delta table: its author and its actions."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from pipelines.runtime.terminal_text import masked

#: Start of the stamp of every commit of Grouplake (`TablesWriter`), as `userMetadata` of its commit information.
STAMP = "grouplake generation"

_STAMP = re.compile(rf"{STAMP} [0-9]+, batch [0-9]+.*")
#: Application ids of the transactions of Grouplake: claims, rows of `batches`, alerts.
_APPLICATIONS = re.compile(r"grouplake(-[a-z]+)?")
_LONGEST_NAME = 80


@dataclass(frozen=True)
class Commit:
    """A commit: its version, `commitInfo`, and the other actions as pairs of name and content."""

    version: int
    info: Mapping[str, Any] = field(default_factory=dict)
    actions: Sequence[tuple[str, Mapping[str, Any]]] = ()

    @classmethod
    def parsed(cls, version: int, content: bytes) -> "Commit":
        """Parse the entry of a log, one JSON object a line. Raises ValueError for another content."""
        info: Mapping[str, Any] = {}
        actions: list[tuple[str, Mapping[str, Any]]] = []
        for line in content.decode().splitlines():
            if not line.strip():
                continue
            for name, action in dict(json.loads(line)).items():
                if action is None:
                    continue
                if not isinstance(action, dict):
                    raise ValueError(f"action {name} of version {version} is not an object")
                if name == "commitInfo":
                    info = action
                else:
                    actions.append((name, action))
        return cls(version, info, actions)

    def of(self, *names: str) -> Iterator[Mapping[str, Any]]:
        """The actions of these names, in order."""
        return (action for name, action in self.actions if name in names)

    @property
    def is_ours(self) -> bool:
        """True for a commit of Grouplake: it has the stamp of a writer, or a transaction of one."""
        if _STAMP.fullmatch(str(self.info.get("userMetadata"))):
            return True
        return any(_APPLICATIONS.fullmatch(str(action.get("appId"))) for action in self.of("txn"))

    def __str__(self) -> str:
        """The commit in words: "version 7 (DELETE by alice at 2026-03-01T10:00:00Z)"."""
        operation = _name(self.info.get("operation")) or "unknown operation"
        return f"version {self.version} ({operation} by {self._user()}{self._time()})"

    def _user(self) -> str:
        user = _name(self.info.get("userName")) or _name(self.info.get("userId"))
        program = _name(self.info.get("engineInfo"))
        return user or (f"an unnamed user of {program}" if program else "an unnamed user")

    def _time(self) -> str:
        stamp = self.info.get("timestamp")
        try:
            return f" at {datetime.fromtimestamp(stamp / 1000, UTC):%Y-%m-%dT%H:%M:%SZ}" if isinstance(stamp, int) else ""
        except (ValueError, OverflowError, OSError):
            return ""


def _name(value: object) -> str:
    """A name from a log, which may come from anywhere: printable and short."""
    return masked(value)[:_LONGEST_NAME] if isinstance(value, str) else ""
