"""Keys of another program's configuration: each is translated once, or named with the reason why it is not."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from pipelines.runtime.errors import UsageError

_UNKNOWN = "not a key that this command knows"
_TYPE = "its value has another form than in the documentation of the program"
_UNITS = {
    1: ("ms", "milli", "millis", "millisecond", "milliseconds"),
    1_000: ("s", "sec", "secs", "second", "seconds"),
    60_000: ("m", "min", "mins", "minute", "minutes"),
    3_600_000: ("h", "hr", "hour", "hours"),
    86_400_000: ("d", "day", "days"),
}
_UNIT_MS = {name: factor for factor, names in _UNITS.items() for name in names}
_DURATION = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,6})?) ?([a-z]{0,12})")
_MAX_DEPTH = 100
_TRUTH = {"true": True, "false": False}


@dataclass(frozen=True)
class Remark:
    """A key of the file, and what its reader has to know about it. Neither has a value of the file."""

    key: str
    reason: str


class PeerKeys:
    """The leaves of a tree by dotted key. A method that returns the value of a key also removes it."""

    def __init__(self, tree: Mapping[Any, Any], prefix: str = "", remarks: list[Remark] | None = None) -> None:
        self._leaves = dict(_leaves(tree, ()))
        self._all = dict(self._leaves)
        self._parent: tuple[PeerKeys, str] | None = None
        self._prefix = prefix
        self.remarks: list[Remark] = [] if remarks is None else remarks

    def __contains__(self, key: str) -> bool:
        return key in self._leaves

    def remark(self, key: str, reason: str) -> None:
        """Name a key, with the reason."""
        self.remarks.append(Remark(self._prefix + key, reason))

    def text(self, key: str) -> str | None:
        """A text that is not empty, or a number as text; None without it."""
        value = self._pop(key)
        if value is None or value == "":
            return None
        if isinstance(value, str):
            return value
        if isinstance(value, int | float) and not isinstance(value, bool):
            return str(value)
        self._of_another_type(key)
        return None

    def texts(self, key: str) -> list[str]:
        """A list of texts, or a text with commas."""
        value = self._pop(key)
        if value is None:
            return []
        parts = value.split(",") if isinstance(value, str) else value
        if not isinstance(parts, list) or not all(isinstance(part, str) for part in parts):
            self._of_another_type(key)
            return []
        return [part.strip() for part in parts if part.strip()]

    def items(self, key: str) -> list[str]:
        """A list of texts, whose commas are part of them."""
        value = self._pop(key)
        parts = [value] if isinstance(value, str) and value else value or []
        if not isinstance(parts, list) or not all(isinstance(part, str) for part in parts):
            self._of_another_type(key)
            return []
        return parts

    def number(self, key: str) -> float | None:
        """A number that is not negative."""
        value = self._pop(key)
        if isinstance(value, str) and re.fullmatch(r"[0-9]{1,15}(\.[0-9]{1,9})?", value):
            value = float(value)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1e15:
            self._of_another_type(key)
            return None
        return value

    def flag(self, key: str) -> bool | None:
        """True or false, also as text."""
        value = self._pop(key)
        if isinstance(value, str):
            value = _TRUTH.get(value.lower(), value)
        if value is None or isinstance(value, bool):
            return value
        self._of_another_type(key)
        return None

    def milliseconds(self, key: str, unit: str = "ms") -> int | None:
        """A duration such as `30s`, `30 seconds`, or a number of `unit`."""
        value = self.text(key)
        if value is None:
            return None
        match = _DURATION.fullmatch(value.strip().lower())
        factor = None if match is None else _UNIT_MS.get(match[2] or unit)
        if match is None or factor is None:
            self._of_another_type(key)
            return None
        return round(float(match[1]) * factor)

    def drop(self, key: str, reason: str) -> None:
        """Remove a key that has no counterpart; without effect if the file does not have it."""
        if self._pop(key) is not None:
            self.remark(key, reason)

    def remark_rest(self, reasons: Iterable[tuple[str, str]]) -> None:
        """Name every key that is left: with the reason of the first pattern that matches it."""
        table = list(reasons)
        for key in self._leaves:
            self.remark(key, next((reason for pattern, reason in table if fnmatchcase(key, pattern)), _UNKNOWN))
        self._leaves.clear()

    def under(self, prefix: str) -> list[str]:
        """The keys that begin with the prefix."""
        return [key for key in self._leaves if key.startswith(prefix)]

    def copy_under(self, prefix: str) -> "PeerKeys":
        """The keys that begin with the prefix, of a section that several clusters may use, whether it was translated or not.

        A key that is taken from the copy is removed here too.
        """
        found = PeerKeys({}, self._prefix + prefix, self.remarks)
        found._leaves = {key.removeprefix(prefix): value for key, value in self._all.items() if key.startswith(prefix)}
        found._parent = self, prefix
        return found

    def forget_under(self, key: str) -> None:
        """Remove a section whose keys were translated as names."""
        for name in [key, *self.under(f"{key}.")]:
            self._pop(name)

    def restore(self, key: str, value: str | None) -> None:
        """Put back a value, so that it is named."""
        self._leaves[key] = value

    def peek(self, key: str) -> Any:
        """The value of a key, which stays."""
        return self._leaves.get(key)

    def _pop(self, key: str) -> Any:
        if self._parent is not None:
            parent, prefix = self._parent
            parent._pop(prefix + key)
        return self._leaves.pop(key, None)

    def _of_another_type(self, key: str) -> None:
        self.remark(key, _TYPE)


def _leaves(tree: Mapping[Any, Any], path: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    if len(path) > _MAX_DEPTH:
        raise UsageError(f"the file is nested more than {_MAX_DEPTH} times")
    for name, value in tree.items():
        here = (*path, str(name))
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, here)
        else:
            yield ".".join(here), value


def by_reason(remarks: Sequence[Remark]) -> dict[str, list[str]]:
    """Keys by reason, in the order in which they were found."""
    found: dict[str, list[str]] = {}
    for remark in remarks:
        keys = found.setdefault(remark.reason, [])
        if remark.key not in keys:
            keys.append(remark.key)
    return found
