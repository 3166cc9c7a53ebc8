"""Texts with placeholders such as `{group}`. Inserted values stay plain text: they are not searched for placeholders again."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

_PLACEHOLDER = re.compile(r"\{([a-zA-Z_][a-zA-Z0-9_]*)\}")


@dataclass(frozen=True)
class Template:
    """A text with placeholders."""

    text: str

    @property
    def names(self) -> frozenset[str]:
        """Names of the placeholders."""
        return frozenset(_PLACEHOLDER.findall(self.text))

    def filled(self, values: Mapping[str, str]) -> str:
        """The text with the values; a placeholder without a value becomes empty."""
        return _PLACEHOLDER.sub(lambda found: values.get(found[1], ""), self.text)
