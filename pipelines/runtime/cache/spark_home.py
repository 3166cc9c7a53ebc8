"""A folder from which Spark starts that is the same for every environment with the same Spark.

A class archive is valid for one class path, and the installed jars have another path in every environment. The folder has hard
links to them. It lacks Spark's copy of the Python packages: workers of a local session find those of this environment, which are
compiled.
"""

import errno
import hashlib
import os
import shutil
from pathlib import Path

from pipelines.runtime.cache.entry import make_once
from pipelines.runtime.cache.folder import cache_root, remove_unused
from pipelines.runtime.cache.jars import spark_folder

KIND = "spark"
SPARK_HOME = "SPARK_HOME"

#: Folders of an installed PySpark with settings or another Spark.
_CHANGED = ("conf", "spark-distribution")
#: The end of a jar is a part of its directory, which has the checksums of its classes.
_END_BYTES = 4096


def shared_home() -> Path | None:
    """The folder for the installed PySpark, made if the cache lacks it; None if this environment's own must be used.

    That is so if SPARK_HOME names another Spark, if settings were added to the installed one, or if the cache cannot have links.
    """
    installed = spark_folder()
    if installed is None or SPARK_HOME in os.environ or any((installed / name).exists() for name in _CHANGED):
        return None
    try:
        return make_once(cache_root() / KIND / _key(installed), lambda folder: _link(installed, folder))
    except OSError:
        return None


def _key(installed: Path) -> str:
    digest = hashlib.sha256()
    for file in _files(installed):
        with file.open("rb") as content:
            size = content.seek(0, os.SEEK_END)
            content.seek(max(0, size - _END_BYTES))
            digest.update(f"{file.relative_to(installed)} {size}\n".encode() + content.read())
    return digest.hexdigest()[:24]


def _files(installed: Path) -> list[Path]:
    return sorted(file for pattern in ("bin/*", "jars/*.jar") for file in installed.glob(pattern) if file.is_file())


def _link(installed: Path, folder: Path) -> None:
    for file in _files(installed):
        linked = folder / file.relative_to(installed)
        linked.parent.mkdir(exist_ok=True)
        try:
            os.link(file.resolve(), linked)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            shutil.copy2(file, linked)
    remove_unused(KIND)
