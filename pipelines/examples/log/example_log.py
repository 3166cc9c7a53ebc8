"""`grouplake example`: unpacks the example log."""

import tarfile
from importlib import resources
from pathlib import Path

from pipelines.runtime.errors import UsageError

_ARCHIVE = "kafka-4.1.1.segments.tar.gz"


def write_example_log(directory: str) -> str:
    """Write the log directory of the broker to `directory`, and return its source address.

    Raises UsageError if `directory` is not empty or cannot be written.
    """
    target = Path(directory)
    try:
        if target.exists() and any(target.iterdir()):
            raise UsageError(f"cannot write the example log to {target}: the folder is not empty; name a new or empty one")
        target.mkdir(parents=True, exist_ok=True)
        with (
            resources.files("pipelines.examples.log").joinpath(_ARCHIVE).open("rb") as file,
            tarfile.open(fileobj=file) as archive,
        ):
            unpack(archive, target)
    except OSError as error:
        raise UsageError(f"cannot write the example log to {target}: {error.strerror or error}") from error
    return f"segments:{target}"


def unpack(archive: tarfile.TarFile, target: Path) -> None:
    """Extract an archive of ours. Python 3.11.2, that of Debian 12, has no filters; without one, later versions warn."""
    if hasattr(tarfile, "data_filter"):
        archive.extractall(target, filter="data")
    else:
        archive.extractall(target)
