"""Versions of files that may be replaced while the server runs."""

import os

FileVersion = tuple[int, int, int] | None


def file_version(path: str) -> FileVersion:
    """A value that differs once the file has been replaced or changed; None for a missing file."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
