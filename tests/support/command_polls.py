"""Polls of the tables by the real commands: `grouplake sql` and `grouplake check` in processes of their own."""

import hashlib
import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa

from pipelines.query.engine import Snapshot
from pipelines.tables import definitions

_COMMAND = "import sys; from pipelines.cli import main; sys.exit(main())"
_LIMIT_SECONDS = 300

#: Neither text nor the same in runs whose batches have other numbers.
_LEFT_OUT = ("batch_id",)


def _line(table: str) -> str:
    columns = [f for f in definitions.table(table).schema if f.name not in _LEFT_OUT]
    shown = [
        f"coalesce(CAST({f.name} AS VARCHAR), '-')" for f in columns if not (pa.types.is_nested(f.type) or f.type == pa.binary())
    ]
    return f"SELECT '{table}' AS name, concat_ws('|', {', '.join(shown)}) AS line FROM {table}"


#: Every row of every table in one statement, so that one process sees one state. Rows of `batches` have times: those stay out.
EVERYTHING = " UNION ALL ".join(
    [
        *map(_line, definitions.WRITE_ORDER[:-1]),
        "SELECT 'batches' AS name, concat_ws('|', records_read, records_kept) AS line FROM batches "
        "WHERE records_read > 0 OR records_kept > 0",
    ]
)


def answer_of(snapshot: Snapshot) -> str:
    """A short name for what the statement says of an open snapshot."""
    return _short(snapshot.query(EVERYTHING).to_pylist())


def asked(tables: Path) -> tuple[str | None, str]:
    """What `grouplake sql --format json` answers, as in `answer_of`; None and what it says where it fails."""
    ended = _ended("sql", "--tables", str(tables), "--format", "json", EVERYTHING)
    if ended.returncode:
        return None, ended.stderr
    return _short(map(json.loads, ended.stdout.splitlines())), ""


def checked(tables: Path) -> str:
    """What `grouplake check` finds, or fails with; empty where all rules hold."""
    ended = _ended("check", "--tables", str(tables))
    return ended.stdout + ended.stderr if ended.returncode else ""


def _short(rows: Iterable[dict[str, str]]) -> str:
    return hashlib.sha1(repr(sorted((row["name"], row["line"]) for row in rows)).encode()).hexdigest()


def _ended(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", _COMMAND, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT_SECONDS, check=False)
