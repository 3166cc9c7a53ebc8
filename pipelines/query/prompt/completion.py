"""Completion of a statement: tables, views, columns, keywords, functions and commands."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pipelines.query.prompt.commands import COMMANDS
from pipelines.query.prompt.source import SnapshotSource
from pipelines.runtime.errors import GrouplakeError

KEYWORDS = (
    "ALL", "AND", "AS", "ASC", "BETWEEN", "BY", "CASE", "CAST", "CROSS", "DESC", "DESCRIBE", "DISTINCT", "ELSE", "END", "EXCEPT",
    "EXISTS", "EXPLAIN", "FALSE", "FROM", "FULL", "GROUP", "HAVING", "ILIKE", "IN", "INTERSECT", "INTERVAL", "IS", "JOIN", "LEFT",
    "LIKE", "LIMIT", "NOT", "NULL", "OFFSET", "ON", "OR", "ORDER", "OVER", "PARTITION", "RIGHT", "SELECT", "THEN", "TRUE",
    "UNION", "USING", "VALUES", "WHEN", "WHERE", "WITH",
)  # fmt: skip
FUNCTIONS = (
    "array_contains", "array_length", "avg", "coalesce", "concat", "count", "date_trunc", "lag", "lead", "lower", "max", "min",
    "now", "regexp_like", "round", "row_number", "sum", "to_timestamp", "unnest", "upper",
)  # fmt: skip

#: Words after which a table or view follows.
_BEFORE_RELATION = {"FROM", "JOIN", "DESCRIBE"}
_QUOTED_OR_COMMENT = re.compile(r"'(?:[^']|'')*'|--[^\n]*|/\*.*?\*/", re.DOTALL)
_NAME = r'(?:"[^"]+"|\w+)'
_FRAGMENT = re.compile(rf"(?:({_NAME})\.)?(\w*)$")
_RELATION = re.compile(rf"\b(?:FROM|JOIN|DESCRIBE)\s+({_NAME}(?:\.{_NAME})?)(?:\s+(?:AS\s+)?(\w+))?", re.IGNORECASE)


@dataclass(frozen=True)
class Candidate:
    """A completion, and what it is: a table, a column of a table, a keyword."""

    text: str
    kind: str


def complete(source: SnapshotSource, before: str, after: str = "") -> tuple[str, list[Candidate]]:
    """The unfinished word before the cursor, and its completions, in alphabetical order by kind."""
    if re.fullmatch(r"\s*\\\S*", before):
        fragment = before.lstrip()
        return fragment, [Candidate(name, each.summary) for name, each in COMMANDS.items() if name.startswith(fragment)]
    found = _FRAGMENT.search(before)
    assert found is not None, "the pattern matches the empty text"
    qualifier, fragment = found[1], found[2]
    rest = _QUOTED_OR_COMMENT.sub(" ", before[: found.start()])
    if "'" in rest:
        # within a text
        return fragment, []
    relations = _relations(source, f"{_QUOTED_OR_COMMENT.sub(' ', before)} {_QUOTED_OR_COMMENT.sub(' ', after)}")
    return fragment, _matching(fragment, _candidates(source, qualifier, fragment, rest, relations))


def _candidates(
    source: SnapshotSource, qualifier: str | None, fragment: str, rest: str, relations: dict[str, str]
) -> Iterator[Candidate]:
    if qualifier is not None:
        if qualifier in map(source.as_schema, source.clusters):
            yield from _relation_candidates(source)
        elif qualifier in relations:
            yield from _column_candidates(source, [relations[qualifier]])
        return
    if _expects_relation(rest):
        yield from _relation_candidates(source)
        yield from (Candidate(f"{source.as_schema(cluster)}.", "cluster") for cluster in source.clusters)
        return
    yield from _column_candidates(source, sorted(set(relations.values())) or source.snapshot.tables)
    yield from (Candidate(alias, relation) for alias, relation in relations.items() if alias != relation)
    yield from (Candidate(word.lower() if fragment.islower() else word, "keyword") for word in KEYWORDS)
    yield from (Candidate(f"{name}(", "function") for name in FUNCTIONS)


def _matching(fragment: str, candidates: Iterable[Candidate]) -> list[Candidate]:
    by_text: dict[str, Candidate] = {}
    for candidate in candidates:
        if candidate.text.lower().startswith(fragment.lower()) and candidate.text != fragment:
            by_text.setdefault(candidate.text, candidate)
    return list(by_text.values())


def _relation_candidates(source: SnapshotSource) -> Iterator[Candidate]:
    yield from (Candidate(name, "table") for name in sorted(source.snapshot.tables))
    yield from (Candidate(name, "view") for name in sorted(source.snapshot.views))


def _column_candidates(source: SnapshotSource, relations: Iterable[str]) -> Iterator[Candidate]:
    for relation in relations:
        try:
            columns = source.columns(relation)
        except GrouplakeError:
            # not a table: a subquery, a name of WITH, or a mistake
            continue
        yield from (Candidate(column, f"column of {relation}") for column in columns)


def _expects_relation(rest: str) -> bool:
    """True if a table or view follows: after FROM, JOIN or `\\d`, or after a comma between tables."""
    words = re.findall(r"\\?\w+|[^\w\s]", rest)
    if not words:
        return False
    if words[-1].upper() in _BEFORE_RELATION or words[-1] == "\\d":
        return True
    clauses = [word.upper() for word in words if word.upper() in {*_BEFORE_RELATION, "SELECT", "WHERE", "BY", "ON", "USING"}]
    return words[-1] == "," and clauses[-1:] == ["FROM"]


def _relations(source: SnapshotSource, text: str) -> dict[str, str]:
    """Name or alias → table or view that the statement names."""
    found = {}
    for relation, alias in _RELATION.findall(text):
        name = relation.rpartition(".")[2].strip('"')
        if name in source.names:
            found[name] = relation
            if alias and alias.upper() not in KEYWORDS:
                found[alias] = relation
    return found
