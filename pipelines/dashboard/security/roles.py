"""Roles: name → the groups that viewers of the role may see."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pipelines.dashboard.security.viewer import Viewer
from pipelines.runtime.errors import UsageError

#: The role without a limit. It exists without configuration.
ALL = "all"
_EVERYTHING = ".*"


class Roles:
    """The roles of the section `[dashboard.roles]`."""

    def __init__(self, section: Mapping[str, Any]) -> None:
        """Raises UsageError for an invalid regular expression."""
        self._groups: dict[str, re.Pattern[str] | None] = {ALL: None}
        for role, pattern in section.items():
            self._groups[role] = _pattern(role, pattern)

    def __contains__(self, role: str) -> bool:
        return role in self._groups

    def __iter__(self) -> Iterator[str]:
        return iter(self._groups)

    def viewer(self, name: str, role: str) -> Viewer | None:
        """A viewer with a role; None for an unknown role."""
        return Viewer(name, self._groups[role]) if role in self._groups else None

    def expect(self, role: object, where: str) -> str:
        """`role`, if it exists. Raises UsageError otherwise."""
        if not isinstance(role, str) or role not in self:
            raise UsageError(f"{where}: unknown role {role!r} (roles: {', '.join(self._groups)})")
        return role


def _pattern(role: str, pattern: object) -> re.Pattern[str] | None:
    if not isinstance(pattern, str):
        raise UsageError(f"dashboard.roles.{role} must be a regular expression, not {pattern!r}")
    if pattern == _EVERYTHING:
        return None
    try:
        # a group id may contain line ends
        return re.compile(pattern, re.DOTALL)
    except re.error as error:
        raise UsageError(f"dashboard.roles.{role}: invalid regular expression {pattern!r}: {error}") from error
