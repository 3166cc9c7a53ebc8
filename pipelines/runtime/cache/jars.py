"""Jars from Maven repositories, downloaded once into the cache folder by the Ivy that ships with PySpark."""

import fcntl
import importlib.util
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipelines.runtime.cache.folder import cache_root, forget, hold, lock, remove_unused, unfinished
from pipelines.runtime.cache.ivy import JarsError, ivy_cache, retrieve
from pipelines.runtime.cache.java import java_executable
from pipelines.runtime.progress import Progress

KIND = "jars"
COMPLETE_MARKER = "COMPLETE"


def cache_folder() -> Path:
    """Folder of all jars in the cache."""
    return cache_root() / KIND


def resolved_jars(
    name: str,
    dependencies: tuple[str, ...],
    *,
    transitive: bool = True,
    cache: Path | None = None,
    progress: Progress | None = None,
) -> Path:
    """Folder `name` of the cache with `dependencies` and, if `transitive`, their run-time dependencies.

    Several processes can call this at the same time: one of them downloads, and the folder appears only when it is complete.
    It is locked against removal until this process ends (`pipelines.runtime.cache.folder`).
    Raises JavaError without Java, and JarsError if PySpark is missing or a dependency does not resolve.
    """
    folder = (cache or cache_folder()) / name
    hold(folder)
    if not _is_complete(folder, dependencies):
        try:
            java, ivy = java_executable(), _ivy_jar()
            with _alone(progress):
                if not _is_complete(folder, dependencies):
                    _download(java, ivy, folder, dependencies, transitive, progress)
        except BaseException:
            forget(folder)
            raise
    return folder


@contextmanager
def _alone(progress: Progress | None) -> Iterator[None]:
    """Let one process download at a time: Ivy's cache is not safe for two, and the second may need no download."""
    cache = ivy_cache()
    descriptor = lock(cache, fcntl.LOCK_EX | fcntl.LOCK_NB)
    if descriptor is None:
        if progress:
            progress("waiting for another process to finish downloading jars")
        descriptor = lock(cache, fcntl.LOCK_EX)
    try:
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _download(
    java: str, ivy: Path, folder: Path, dependencies: tuple[str, ...], transitive: bool, progress: Progress | None
) -> None:
    partial = unfinished(folder)
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        for dependency in dependencies:
            if progress:
                progress(f"downloading {dependency} (once; kept in {folder})")
            retrieve(java, ivy, dependency, partial, transitive=transitive, progress=progress)
        (partial / COMPLETE_MARKER).write_text(_marker_text(dependencies))
        shutil.rmtree(folder, ignore_errors=True)
        partial.rename(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    remove_unused(KIND)


def is_resolved(name: str, dependencies: tuple[str, ...]) -> bool:
    """True if the folder of `resolved_jars` is complete, so that it would download nothing."""
    return _is_complete(cache_folder() / name, dependencies)


def _marker_text(dependencies: tuple[str, ...]) -> str:
    return "".join(f"{dependency}\n" for dependency in dependencies)


def _is_complete(folder: Path, dependencies: tuple[str, ...]) -> bool:
    marker = folder / COMPLETE_MARKER
    return marker.exists() and marker.read_text() == _marker_text(dependencies)


def spark_folder() -> Path | None:
    """The folder of the installed PySpark, found without importing it."""
    spec = importlib.util.find_spec("pyspark")
    folders = list(spec.submodule_search_locations or ()) if spec else []
    return Path(folders[0]) if folders else None


def spark_jars(home: Path | None = None) -> list[Path]:
    """The jars in a folder from which Spark starts, by default those that ship with PySpark."""
    home = home or spark_folder()
    return sorted(home.glob("jars/*.jar")) if home else []


def without_spark_jars(folder: Path) -> list[Path]:
    """The jars in `folder` except those whose artifact ships with PySpark, in whichever version."""
    shipped = {_artifact(jar) for jar in spark_jars()}
    return sorted(jar for jar in folder.glob("*.jar") if _artifact(jar) not in shipped)


def _artifact(jar: Path) -> str:
    return re.sub(r"-\d[\w.\-]*$", "", jar.stem)


def _ivy_jar() -> Path:
    jars = [jar for jar in spark_jars() if _artifact(jar) == "ivy"]
    if not jars:
        raise JarsError("PySpark's Ivy jar was not found: install pyspark in this environment")
    return jars[-1]
