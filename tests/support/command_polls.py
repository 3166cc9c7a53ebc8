"""Polls of the tables by the real commands: `grouplake sql` and `grouplake check`, each in its own process."""

import hashlib
import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
from patience import LIMIT_SECONDS

from pipelines.query.engine import Snapshot
from pipelines.tables import definitions

_COMMAND = "import sys; from pipelines.cli import main; sys.exit(main())"

#: Neither text nor equal in runs whose batch ids differ.
_LEFT_OUT = ("batch_id",)


def _line(table: str) -> str:
    columns = [f for f in definitions.table(table).schema if f.name not in _LEFT_OUT]
    shown = [
        f"coalesce(CAST({f.name} AS VARCHAR), '-')" for f in columns if not (pa.types.is_nested(f.type) or f.type == pa.binary())
    ]
    return f"SELECT '{table}' AS name, concat_ws('|', {', '.join(shown)}) AS line FROM {table}"


#: Every row of every table in one statement, so that one process sees one state, without rows of `batches`: they have times.
EVERYTHING = " UNION ALL ".join(
    [
        *map(_line, definitions.WRITE_ORDER[:-1]),
        "SELECT 'batches' AS name, concat_ws('|', records_read, records_kept) AS line FROM batches "
        "WHERE records_read > 0 OR records_kept > 0",
    ]
)


def answer_of(snapshot: Snapshot) -> str:
    """A short name for the statement's result over an open snapshot."""
    return _short(snapshot.query(EVERYTHING).to_pylist())


def queried(tables: Path) -> tuple[str | None, str]:
    """The result of `grouplake sql --format json` as in `answer_of`; if it fails, None and its output."""
    ended = _ended("sql", "--tables", str(tables), "--format", "json", EVERYTHING)
    if ended.returncode:
        return None, ended.stderr
    return _short(map(json.loads, ended.stdout.splitlines())), ""


def checked(tables: Path) -> str:
    """The findings or the error of `grouplake check`; empty if all rules hold."""
    ended = _ended("check", "--tables", str(tables))
    return ended.stdout + ended.stderr if ended.returncode else ""


def _short(rows: Iterable[dict[str, str]]) -> str:
    return hashlib.sha1(repr(sorted((row["name"], row["line"]) for row in rows)).encode()).hexdigest()


def _ended(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", _COMMAND, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False)
