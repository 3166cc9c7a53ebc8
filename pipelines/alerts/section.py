"""Sections of a TOML file of rules: typed keys, and one line for every mistake."""

import os
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

from coordinator_core.health.durations import parse_duration_ms
from pipelines.alerts.states import Labels, is_label_name, labels_of
from pipelines.runtime.credentials import is_kept_elsewhere, resolve
from pipelines.runtime.errors import UsageError

T = TypeVar("T")


class Section:
    """A section that is read key by key. `where` names it in messages, such as `alerts.toml: rule "GroupStopped"`."""

    def __init__(self, where: str, values: object, environment: Mapping[str, str] = os.environ) -> None:
        if not isinstance(values, dict):
            raise UsageError(f"{where} is a section, not a value")
        self.where = where
        #: Values that are kept elsewhere, which no message may contain.
        self.secrets: list[str] = []
        self._values: dict[str, Any] = values
        self._environment = environment
        self._read: list[str] = []

    def fail(self, key: str, message: str) -> UsageError:
        """The error about a value."""
        return UsageError(f"{self.where}: {key} {message}")

    def has(self, key: str) -> bool:
        """Whether the section has the key."""
        return key in self._values

    def end(self) -> None:
        """Refuse the keys that were not read."""
        unknown = sorted(set(self._values) - set(self._read))
        if unknown:
            raise UsageError(f"{self.where}: unknown key {unknown[0]} (known: {', '.join(dict.fromkeys(self._read))})")

    def raw(self, key: str) -> Any:
        """The value of a key of any type; None without it."""
        self._read.append(key)
        return self._values.get(key)

    def text(self, key: str, default: str | None = None) -> str:
        """A text; required without a default, and not empty unless the default is. References are resolved."""
        value = self.raw(key)
        if value is None:
            if default is None:
                raise self.fail(key, "is missing")
            return default
        if not isinstance(value, str) or not (value or default == ""):
            raise self.fail(key, f"must be a text, not {value!r}")
        return self._resolved(key, value)

    def _resolved(self, key: str, value: str) -> str:
        try:
            found = resolve(key, value, self._environment)
        except ValueError as error:
            raise self.fail(key, f"cannot be resolved: {error}") from error
        if found and is_kept_elsewhere(value):
            self.secrets.append(found)
        return found

    def choice(self, key: str, choices: tuple[str, ...], default: str | None = None) -> str:
        """One of `choices`."""
        value = self.text(key, default)
        if value not in choices:
            raise self.fail(key, f"is {value!r}: must be one of {', '.join(choices)}")
        return value

    def duration_ms(self, key: str, default_ms: int) -> int:
        """A duration, in milliseconds."""
        value = self.raw(key)
        if value is None:
            return default_ms
        try:
            if isinstance(value, str):
                return parse_duration_ms(value)
        except ValueError:
            pass
        raise self.fail(key, f"is {value!r}: must be a duration such as 90s, 5m or 1h30m")

    def positive_duration_ms(self, key: str, default_ms: int) -> int:
        """A duration above 0, in milliseconds."""
        found = self.duration_ms(key, default_ms)
        if found <= 0:
            raise self.fail(key, "must be above 0")
        return found

    def flag(self, key: str, default: bool) -> bool:
        """True or false."""
        return self._typed(key, default, bool, "true or false")

    def number(self, key: str, default: int, lowest: int, highest: int) -> int:
        """A whole number within bounds."""
        value = self._typed(key, default, int, "a whole number")
        if isinstance(value, bool) or not lowest <= value <= highest:
            raise self.fail(key, f"is {value!r}: must be a whole number from {lowest} to {highest}")
        return value

    def _typed(self, key: str, default: T, kind: type[T], name: str) -> T:
        value = self.raw(key)
        if value is None:
            return default
        if not isinstance(value, kind):
            raise self.fail(key, f"is {value!r}: must be {name}")
        return value

    def names(self, key: str) -> tuple[str, ...] | None:
        """A list of texts that is not empty; None without the key."""
        value = self.raw(key)
        if value is None:
            return None
        if not isinstance(value, list) or not value or not all(isinstance(each, str) and each for each in value):
            raise self.fail(key, f'is {value!r}: must be a list of texts such as ["a", "b"]')
        return tuple(self._resolved(key, each) for each in value)

    def known_names(self, key: str, known: Collection[str], what: str) -> tuple[str, ...] | None:
        """A list of names that occur in `known`; `what` is the noun for them."""
        names = self.names(key)
        for name in names or ():
            if name not in known:
                raise self.fail(key, f"names the {what} {name!r}, which the file does not define")
        return names

    def pattern(self, key: str) -> re.Pattern[str] | None:
        """A regular expression; None without the key."""
        text = self.text(key, "")
        if not text:
            return None
        try:
            return re.compile(text)
        except re.error as error:
            raise self.fail(key, f"is {text!r}, not a regular expression: {error}") from error

    def text_map(self, key: str, resolve: bool = False) -> dict[str, str]:
        """A table of texts, such as `{ team = "payments" }`."""
        value = self.raw(key)
        if value is None:
            return {}
        if not isinstance(value, dict) or not all(isinstance(each, str) for each in value.values()):
            raise self.fail(key, f'is {value!r}: must be a table of texts such as {{ team = "payments" }}')
        return {name: self._resolved(f"{key}.{name}", text) if resolve else text for name, text in value.items()}

    def labels(self, key: str) -> Labels:
        """A table of labels."""
        values = self.text_map(key)
        for name in values:
            if not is_label_name(name):
                raise self.fail(key, f"has the label {name!r}: letters, digits and '_' only, and no digit first")
        return labels_of(values)

    def each(self, key: str, describe: Callable[[int, Mapping[str, Any]], str]) -> list["Section"]:
        """The sections of an array of tables."""
        value = self.raw(key)
        if value is None:
            return []
        if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
            raise self.fail(key, f"is a list of sections: begin each with [[{key}]]")
        return [Section(f"{self.where}: {describe(at, each)}", each, self._environment) for at, each in enumerate(value, 1)]

    def sections(self, key: str, noun: str) -> dict[str, "Section"]:
        """The sections in a section, by name."""
        value = self.raw(key)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise self.fail(key, f"is a section: use [{key}.NAME]")
        return {name: Section(f'{self.where}: {noun} "{name}"', each, self._environment) for name, each in value.items()}

    def section(self, key: str) -> "Section":
        """A section; empty if it is missing."""
        value = self.raw(key)
        return Section(f"{self.where}: [{key}]", {} if value is None else value, self._environment)
