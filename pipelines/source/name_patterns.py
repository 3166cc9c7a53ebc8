"""`include` and `exclude` of the sections `[groups]` and `[topics]`: what a `kafka-groups://` source reads, by whole names."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipelines.runtime.errors import UsageError


@dataclass(frozen=True, slots=True)
class NamePatterns:
    """A name is read if a pattern of `include` matches all of it, or there is none, and no pattern of `exclude` does."""

    include: tuple[re.Pattern[str], ...] = ()
    exclude: tuple[re.Pattern[str], ...] = ()

    @staticmethod
    def of(section: str, values: Mapping[str, Any]) -> "NamePatterns":
        """Compile the values of a section. Raises UsageError for one that is not a regular expression."""
        return NamePatterns(*(_compiled(f"{section}.{key}", values[key]) for key in ("include", "exclude")))

    def __bool__(self) -> bool:
        """False if every name is read."""
        return bool(self.include or self.exclude)

    def reads(self, name: str) -> bool:
        """True for a name that is read."""
        return (not self.include or _matches(self.include, name)) and not _matches(self.exclude, name)


def _matches(patterns: tuple[re.Pattern[str], ...], name: str) -> bool:
    return any(pattern.fullmatch(name) for pattern in patterns)


def _compiled(key: str, patterns: Sequence[object]) -> tuple[re.Pattern[str], ...]:
    found = []
    for pattern in patterns:
        if not isinstance(pattern, str):
            raise UsageError(f"{key} has {pattern!r}: use regular expressions, as strings")
        try:
            found.append(re.compile(pattern, re.DOTALL))
        except re.error as error:
            raise UsageError(f"{key} has {pattern!r}: not a regular expression: {error}") from error
    return tuple(found)
