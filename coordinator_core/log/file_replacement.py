"""Replacement of a file: after a kill it has the old contents or the new ones."""

from pathlib import Path

from coordinator_core.log.force import force


def replace_file(path: Path, data: bytes, *, durable: bool = True) -> None:
    """Replace a file. `durable` syncs the contents; the caller must sync the folder to make the new name durable."""
    temporary = path.with_name(path.name + ".tmp")
    with temporary.open("wb") as file:
        file.write(data)
        if durable:
            file.flush()
            force(file.fileno())
    temporary.replace(path)
