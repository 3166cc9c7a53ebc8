"""Results of queries in files: Parquet, CSV or JSON lines, by the suffix of the name."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

import pyarrow as pa

from pipelines.query.arrow_types import in_table_types
from pipelines.query.output import write_csv, write_json
from pipelines.runtime.errors import UsageError

_TEXT: dict[str, Callable[[pa.Table, TextIO], None]] = {".csv": write_csv, ".json": write_json, ".jsonl": write_json}
SUFFIXES = (".parquet", *_TEXT)


def expect_suffix(path: str) -> None:
    """Raise UsageError unless the name has the suffix of a format."""
    if Path(path).suffix not in SUFFIXES:
        raise UsageError(f"unknown format of {path!r}: end the name with one of {', '.join(SUFFIXES)}")


def write_file(rows: pa.Table, path: str) -> None:
    """Write the rows to a new file, which then takes the place of a file of this name.

    Raises:
        UsageError: the suffix is unknown, or the file cannot be written.
    """
    expect_suffix(path)
    # the suffix remains: the name of a partial file shows its format
    partial = Path(path).with_name(f".{os.getpid()}.{Path(path).name}")
    try:
        try:
            _write(rows, partial)
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
    except (OSError, pa.ArrowException) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error).splitlines()[0]
        raise UsageError(f"cannot write {path}: {reason}") from error


def _write(rows: pa.Table, path: Path) -> None:
    if path.suffix == ".parquet":
        from pyarrow import parquet

        parquet.write_table(in_table_types(rows), path, compression="zstd")
        return
    with path.open("w", encoding="utf-8", newline="") as out:
        _TEXT[path.suffix](rows, out)
