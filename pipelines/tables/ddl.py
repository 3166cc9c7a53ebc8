"""Parser of the statements in `schemas/tables`: the part of Spark's DDL that they use.

    CREATE TABLE name (
      column TYPE [NOT NULL] COMMENT 'text',
      …
    )
    USING DELTA
    COMMENT 'text'
    TBLPROPERTIES ('name' = 'value', …);

A type is a primitive one, `ARRAY<TYPE>`, `MAP<TYPE, TYPE>` or `STRUCT<name: TYPE, …>`. Spark runs the same text. A general parser
of SQL takes longer to import than a command that reads tables takes in all, and a test compares the results.
"""

import re
from collections.abc import Callable
from typing import NamedTuple, TypeVar

import pyarrow as pa

from pipelines.runtime.timestamps import TIMESTAMP

_TOKEN = re.compile(r"\s*(?:(?P<text>'(?:[^'\\]|\\.)*')|(?P<word>\w+)|(?P<sign>[(),<>:=;]))")

_PRIMITIVES = {
    "STRING": pa.string(),
    "DOUBLE": pa.float64(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "BOOLEAN": pa.bool_(),
    "BINARY": pa.binary(),
    "TIMESTAMP": TIMESTAMP,
}

T = TypeVar("T")


class Column(NamedTuple):
    """A column with its comment."""

    field: pa.Field
    comment: str


class CreateTable(NamedTuple):
    """A parsed statement."""

    name: str
    columns: tuple[Column, ...]
    comment: str
    properties: dict[str, str]


def parse_create_table(statement: str) -> CreateTable:
    """Parse a statement.

    Raises:
        ValueError: it does not have the form in the module docstring.
    """
    return _DdlParser(statement).create_table()


class _DdlParser:
    def __init__(self, statement: str) -> None:
        self._statement = statement
        self._position = 0

    def create_table(self) -> CreateTable:
        self._expect("CREATE", "TABLE")
        name = self._next()
        columns = self._listed("(", self._column, ")")
        self._expect("USING", "DELTA", "COMMENT")
        comment = self._text()
        self._expect("TBLPROPERTIES")
        properties = dict(self._listed("(", self._property, ")"))
        self._expect(";")
        if self._statement[self._position :].strip():
            raise self._error("the end of the statement", self._statement[self._position :].strip())
        return CreateTable(name, tuple(columns), comment, properties)

    def _column(self) -> Column:
        name, kind = self._next(), self._type()
        nullable = not self._skipped("NOT")
        if not nullable:
            self._expect("NULL")
        self._expect("COMMENT")
        return Column(pa.field(name, kind, nullable=nullable), self._text())

    def _type(self) -> pa.DataType:
        match name := self._next():
            case "ARRAY":
                (element,) = self._listed("<", self._type, ">")
                return pa.list_(pa.field("element", element))
            case "MAP":
                key, value = self._listed("<", self._type, ">")
                return pa.map_(key, value)
            case "STRUCT":
                return pa.struct(self._listed("<", self._member, ">"))
        if name not in _PRIMITIVES:
            raise self._error(f"one of the types {', '.join(_PRIMITIVES)}", name)
        return _PRIMITIVES[name]

    def _member(self) -> pa.Field:
        name = self._next()
        self._expect(":")
        return pa.field(name, self._type())

    def _property(self) -> tuple[str, str]:
        name = self._text()
        self._expect("=")
        return name, self._text()

    def _listed(self, begin: str, item: Callable[[], T], end: str) -> list[T]:
        self._expect(begin)
        items = [item()]
        while self._skipped(","):
            items.append(item())
        self._expect(end)
        return items

    def _text(self) -> str:
        token = self._next()
        if not token.startswith("'"):
            raise self._error("a text in quotes", token)
        return re.sub(r"\\(.)", r"\1", token[1:-1])

    def _expect(self, *tokens: str) -> None:
        for token in tokens:
            if (found := self._next()) != token:
                raise self._error(token, found)

    def _skipped(self, token: str) -> bool:
        """Whether the next token is this one, which is then skipped."""
        before = self._position
        if self._next() == token:
            return True
        self._position = before
        return False

    def _next(self) -> str:
        found = _TOKEN.match(self._statement, self._position)
        if found is None:
            raise self._error("a word, a text or a sign", self._statement[self._position : self._position + 20])
        self._position = found.end()
        return found[0].strip()

    def _error(self, expected: str, found: str) -> ValueError:
        line = self._statement.count("\n", 0, self._position) + 1
        return ValueError(f"line {line} of a table's DDL has {found!r} in the place of {expected}")
