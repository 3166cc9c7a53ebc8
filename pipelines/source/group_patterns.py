"""`[groups] include, exclude`: which groups a `kafka-groups://` source reads, by regular expressions for whole names."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pipelines.runtime.errors import UsageError


@dataclass(frozen=True, slots=True)
class GroupPatterns:
    """A group is read if a pattern of `include` matches its whole name, or there is none, and no pattern of `exclude` does."""

    include: tuple[re.Pattern[str], ...] = ()
    exclude: tuple[re.Pattern[str], ...] = ()

    @staticmethod
    def of(include: Sequence[object], exclude: Sequence[object]) -> "GroupPatterns":
        """Compile the values of the section. Raises UsageError for one that is not a regular expression."""
        return GroupPatterns(_compiled("include", include), _compiled("exclude", exclude))

    def __bool__(self) -> bool:
        """False if every group is read."""
        return bool(self.include or self.exclude)

    def reads(self, group_id: str) -> bool:
        """True for a group that is read."""
        return (not self.include or _matches(self.include, group_id)) and not _matches(self.exclude, group_id)


def _matches(patterns: tuple[re.Pattern[str], ...], group_id: str) -> bool:
    return any(pattern.fullmatch(group_id) for pattern in patterns)


def _compiled(key: str, patterns: Sequence[object]) -> tuple[re.Pattern[str], ...]:
    found = []
    for pattern in patterns:
        if not isinstance(pattern, str):
            raise UsageError(f"groups.{key} has {pattern!r}: use regular expressions, as strings")
        try:
            found.append(re.compile(pattern, re.DOTALL))
        except re.error as error:
            raise UsageError(f"groups.{key} has {pattern!r}: not a regular expression: {error}") from error
    return tuple(found)
