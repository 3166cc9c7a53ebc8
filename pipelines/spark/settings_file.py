"""Settings of Spark that reach its JVM without standing on a command line.

PySpark hands every setting to `spark-submit` as an argument, and every user of a machine may read the arguments of its processes.
What comes from the configuration may be the key of an object store. It goes into a file instead that only its owner can read, and
that is gone once the JVM runs.
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
    """While it is open, a JVM that PySpark starts takes those of `settings` that begin with `spark.`.

    Yields the names that must not become arguments: all of them, or none where the JVM runs already and gets its settings without
    a command line, or has a file of settings of its own, beside which it takes no other. Names that do not begin with `spark.`
    can only be set once the session is there.
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
    """As `java.util.Properties` reads it."""
    return text.translate(_ESCAPES)
