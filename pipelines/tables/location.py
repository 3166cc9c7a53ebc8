"""Location of a folder of tables, and the name of its cluster."""

import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

from pipelines.runtime.errors import UsageError

#: DataFusion has no schema with a dot in its name, so a cluster has none either.
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,99}")


@lru_cache
def local_folder(uri: str) -> Path | None:
    """Return the folder of a path or of a `file:` URI, None for an object store."""
    if "://" not in uri and not uri.lower().startswith("file:"):
        return Path(uri)
    parts = urlsplit(uri)
    return Path(unquote(parts.path)) if parts.scheme == "file" else None


def cluster_name(root: str) -> str:
    """Name of the cluster of a folder of tables, where none is given: the name of the folder."""
    return root.rstrip("/").rpartition("/")[2] or "tables"


def expect_cluster_name(name: str) -> None:
    """Raise UsageError unless `name` may be the schema of a cluster."""
    if not _NAME.fullmatch(name):
        raise UsageError(f"invalid cluster name {name!r}: use 1–100 letters, digits, '_' or '-', as in --tables NAME=DIR")


def parse_roots(given: Sequence[str]) -> dict[str, str]:
    """Cluster → folder, from values `DIR` or `NAME=DIR` of `--tables`. A folder whose own name has "=" is given with a slash.

    Raises:
        UsageError: an invalid name, a name without a folder, or two clusters with one name.
    """
    roots: dict[str, str] = {}
    for text in given:
        name, root = cluster_name(text), text
        if is_named(text):
            name, _, root = text.partition("=")
            expect_cluster_name(name)
        if not root.strip():
            raise UsageError(f"cluster {name!r} has no folder: use NAME=DIR")
        if name in roots:
            raise UsageError(f"two folders for cluster {name!r}, {roots[name]} and {root}: name them with --tables NAME=DIR")
        roots[name] = root
    return roots


def is_named(text: str) -> bool:
    """True for `NAME=DIR`, False for `DIR`."""
    return "=" in text and "/" not in text.partition("=")[0]
