"""Spark settings for the JVM that do not appear on a command line.

PySpark passes every setting to `spark-submit` as an argument, and every user of a machine can read the arguments of its
processes. Settings from the configuration may contain keys of an object store, so they are passed in a file instead, which only
its owner can read and which is removed once the JVM runs.
"""

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark import SparkContext

SPARK = "spark."

_ARGUMENTS = "PYSPARK_SUBMIT_ARGS"
_OPTION = "--properties-file"
_ESCAPES = str.maketrans({"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "=": "\\=", ":": "\\:", " ": "\\ "})


@contextmanager
def settings_file(settings: Mapping[str, Any]) -> Iterator[frozenset[str]]:
    """Within the context, a JVM that PySpark starts gets those of `settings` whose names begin with `spark.` from a file.

    Yields the names that must not become arguments. That is every name, with two exceptions in which it is the empty set: a JVM
    that runs already gets its settings without a command line, and a `--properties-file` in PYSPARK_SUBMIT_ARGS excludes a second
    one. Names that do not begin with `spark.` can only be set on the session.
    """
    before = os.environ.get(_ARGUMENTS)
    runs = SparkContext._gateway is not None or "PYSPARK_GATEWAY_PORT" in os.environ
    if runs or not settings or _OPTION in (before or ""):
        yield frozenset()
        return
    number, path = tempfile.mkstemp(prefix="grouplake-", suffix=".conf")
    try:
        with os.fdopen(number, "w", encoding="utf-8") as file:
            for name, value in settings.items():
                if name.startswith(SPARK):
                    file.write(f"{_escaped(name)}={_escaped(_text(value))}\n")
        os.environ[_ARGUMENTS] = f"--load-spark-defaults {_OPTION} {path} {before or 'pyspark-shell'}"
        yield frozenset(settings)
    finally:
        Path(path).unlink(missing_ok=True)
        if before is None:
            os.environ.pop(_ARGUMENTS, None)
        else:
            os.environ[_ARGUMENTS] = before


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _escaped(text: str) -> str:
    """Escape for `java.util.Properties`."""
    return text.translate(_ESCAPES)
