"""Location of a folder of tables, and the name of its cluster."""

import re
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from pipelines.errors import UsageError

#: Name of a cluster, which is also a schema of `grouplake sql`.
CLUSTER_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")


def local_folder(uri: str) -> Path | None:
    """Return the folder of a path or of a `file:` URI, None for an object store."""
    if "://" not in uri and not uri.lower().startswith("file:"):
        return Path(uri)
    parts = urlsplit(uri)
    return Path(unquote(parts.path)) if parts.scheme == "file" else None


def cluster_name(root: str) -> str:
    """Name of the cluster of a folder of tables, where none is given: the name of the folder."""
    return root.rstrip("/").rpartition("/")[2] or "tables"


def parse_roots(given: Sequence[str]) -> dict[str, str]:
    """Cluster → folder, from values `DIR` or `NAME=DIR` of `--tables`. A folder whose own name has "=" is given as a path.

    Raises:
        UsageError: a name without a folder, or two clusters with one name.
    """
    roots: dict[str, str] = {}
    for text in given:
        name, root = _name_and_root(text)
        if not root.strip():
            raise UsageError(f"cluster {name!r} has no folder: use NAME=DIR")
        name = name or cluster_name(root)
        if name in roots:
            raise UsageError(f"two folders for cluster {name!r}, {roots[name]} and {root}: name them with --tables NAME=DIR")
        roots[name] = root
    return roots


def is_named(text: str) -> bool:
    """True for `NAME=DIR`, False for `DIR`."""
    return bool(_name_and_root(text)[0])


def _name_and_root(text: str) -> tuple[str, str]:
    name, equals, root = text.partition("=")
    return (name, root) if equals and CLUSTER_NAME.fullmatch(name) else ("", text)
