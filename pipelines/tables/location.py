"""Location of a folder of tables."""

from pathlib import Path
from urllib.parse import unquote, urlsplit


def local_folder(uri: str) -> Path | None:
    """Return the folder of a path or of a `file:` URI, None for an object store."""
    if "://" not in uri and not uri.lower().startswith("file:"):
        return Path(uri)
    parts = urlsplit(uri)
    return Path(unquote(parts.path)) if parts.scheme == "file" else None


def cluster_name(root: str) -> str:
    """Name of the cluster of a folder of tables, where none is given: the name of the folder."""
    return root.rstrip("/").rpartition("/")[2] or "tables"
