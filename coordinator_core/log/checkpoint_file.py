"""Kafka's checkpoint files: a version, a count, and that many lines (`CheckpointFile`)."""

from pathlib import Path

from coordinator_core.log.force import force

_VERSION = 0


def read_lines(path: Path) -> list[str]:
    """The lines of a checkpoint. A file that is missing or cannot be understood has none."""
    try:
        lines = path.read_text(errors="replace").splitlines()
    except OSError:
        return []
    return lines[2:] if lines[:1] == [str(_VERSION)] else []


def write_lines(path: Path, lines: list[str], *, durable: bool) -> None:
    """Replaces the file. `durable`: with its contents on disk; that it has its name is for who syncs the folder."""
    temporary = path.with_name(path.name + ".tmp")
    with temporary.open("w") as file:
        file.write("\n".join([str(_VERSION), str(len(lines)), *lines, ""]))
        if durable:
            file.flush()
            force(file.fileno())
    temporary.replace(path)
