"""HOCON, as far as configurations of kafka-lag-exporter use it.

It has objects with and without `=` before the brace, dotted keys, lists with commas or line breaks, quoted, triple-quoted and
unquoted values, comments, and repeated objects, which are merged. A substitution stays as written, `${?NAME}`. It replaces no
earlier value of its key: only the environment of the other program has the variable. `include` and `+=` are refused.
pyhocon, the library for Python, reads included files and URLs and the environment: no file may make a command do so.
"""

import re
from typing import Any

_MAX_DEPTH = 50
_TOKEN = re.compile(
    r'(?P<skip>[ \t\r\ufeff\xa0]+|(?:#|//)[^\n]*)|(?P<newline>\n)|(?P<triple>"""(?P<raw>.*?)"""(?!"))'
    r'|"(?P<quoted>(?:[^"\\\n]|\\.)*)"'
    r"|(?P<substitution>\$\{\??[\w.\-]+\})|(?P<append>\+=)|(?P<mark>[{}\[\]=:,])|(?P<plain>(?:(?!//)[^\s{}\[\]=:,#\"+$])+)",
    re.DOTALL,
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_SUBSTITUTION = re.compile(r"\$\{\??[\w.\-]+\}")

_Token = tuple[str, str, bool]


class HoconError(ValueError):
    """Text that is not HOCON, or HOCON of a kind that is not read."""


def parse_hocon(text: str) -> dict[str, Any]:
    """The object of a HOCON file: strings, lists and objects.

    Raises:
        HoconError: other text.
    """
    return _Reader(text).document()


class _Reader:
    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._at = 0
        self._depth = 0

    def document(self) -> dict[str, Any]:
        self._skip_lines()
        braces = self._accept("{")
        found = self._members("}" if braces else "")
        self._skip_lines()
        if self._at < len(self._tokens):
            raise HoconError(f"not HOCON: {self._tokens[self._at][1]!r} after the end of the object")
        return found

    def _members(self, end: str) -> dict[str, Any]:
        """The members of an object up to the mark `end`, which is read too."""
        found: dict[str, Any] = {}
        while True:
            self._skip_lines(commas=True)
            if self._at == len(self._tokens) and not end:
                return found
            if end and self._accept(end):
                return found
            path = self._key()
            if self._peek() == ("mark", "{"):
                value = self._value()
            elif self._accept("=") or self._accept(":"):
                self._skip_lines()
                value = self._value()
            else:
                raise HoconError(f"not HOCON: no value for the key {'.'.join(path)!r}")
            _put(found, path, value)

    def _key(self) -> list[str]:
        parts, spaced = [""], False
        while self._at < len(self._tokens):
            kind, text, space_before = self._tokens[self._at]
            if kind not in ("plain", "quoted"):
                break
            if kind == "plain" and parts == [""] and text == "include":
                raise HoconError("it has include, which is not read: put the included settings into the file")
            spaced = spaced or (space_before and parts != [""])
            if kind == "quoted":
                parts[-1] += text
            else:
                first, *others = text.split(".")
                parts[-1] += first
                parts += others
            self._at += 1
        if self._peek()[0] == "append":
            raise HoconError("it has +=, which is not read: write the list out")
        if len(parts) > _MAX_DEPTH:
            raise HoconError(f"a key has more than {_MAX_DEPTH} parts")
        if not all(parts) or spaced:
            raise HoconError(f"not HOCON: {self._peek()[1]!r} in the place of a key")
        return parts

    def _value(self) -> Any:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise HoconError(f"it is nested more than {_MAX_DEPTH} times")
        try:
            if self._accept("{"):
                return self._members("}")
            if self._accept("["):
                return self._items()
            return self._text()
        finally:
            self._depth -= 1

    def _items(self) -> list[Any]:
        found: list[Any] = []
        while True:
            self._skip_lines(commas=True)
            if self._accept("]"):
                return found
            if self._at == len(self._tokens):
                raise HoconError("not HOCON: a list without its end")
            found.append(self._value())

    def _text(self) -> str:
        """A value of one line: its parts, with a space where the file has some between them."""
        parts: list[str] = []
        while self._at < len(self._tokens):
            kind, text, space_before = self._tokens[self._at]
            if kind in ("newline", "append") or (kind == "mark" and text != ":"):
                break
            parts.append((" " if parts and space_before else "") + text)
            self._at += 1
        if not parts:
            raise HoconError(f"not HOCON: {self._peek()[1]!r} in the place of a value")
        return "".join(parts)

    def _peek(self) -> tuple[str, str]:
        return self._tokens[self._at][:2] if self._at < len(self._tokens) else ("end", "the end of the file")

    def _accept(self, mark: str) -> bool:
        if self._peek() != ("mark", mark):
            return False
        self._at += 1
        return True

    def _skip_lines(self, *, commas: bool = False) -> None:
        while self._peek()[0] == "newline" or (commas and self._peek() == ("mark", ",")):
            self._at += 1


def _tokens(text: str) -> list[_Token]:
    """Kind and text of each token, and whether there is a space before it."""
    found: list[_Token] = []
    position, space = 0, False
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            line = text.count("\n", 0, position) + 1
            raise HoconError(f"not HOCON: line {line} has {text[position]!r}")
        position, kind = match.end(), match.lastgroup or ""
        if match["skip"] is not None:
            space = True
            continue
        if match["raw"] is not None:
            found.append(("quoted", match["raw"], space))
        elif kind == "quoted":
            found.append((kind, re.sub(r"\\(u[0-9a-fA-F]{4}|.)", _unescaped, match["quoted"], flags=re.DOTALL), space))
        else:
            found.append((kind, match[0], space))
        space = False
    return found


def _unescaped(match: re.Match[str]) -> str:
    code = match[1]
    if len(code) == 5:
        return chr(int(code[1:], 16))
    return _ESCAPES.get(code, code)


def _put(tree: dict[str, Any], path: list[str], value: Any) -> None:
    *parents, last = path
    for part in parents:
        child = tree.get(part)
        if not isinstance(child, dict):
            child = tree[part] = {}
        tree = child
    before = tree.get(last)
    if isinstance(before, dict) and isinstance(value, dict):
        for key, part in value.items():
            _put(before, [key], part)
    elif before is None or not (isinstance(value, str) and _SUBSTITUTION.fullmatch(value)):
        tree[last] = value
