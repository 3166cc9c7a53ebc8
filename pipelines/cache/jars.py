"""Jars from Maven repositories, resolved with the Ivy that ships inside PySpark, once, into a cache folder."""

import fcntl
import importlib.util
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipelines.cache.folder import cache_root, forget, hold, lock, remove_unused, unfinished
from pipelines.cache.ivy import JarsError, ivy_cache, retrieve
from pipelines.progress import Progress

KIND = "jars"
COMPLETE_MARKER = "COMPLETE"


def java_executable() -> str:
    """Path of `java`: `JAVA_HOME` first, then `PATH`. Raises JarsError when there is none."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home) / "bin")) if home else None
    found = found or shutil.which("java")
    if found is None:
        raise JarsError("grouplake needs Java 17, and there is no `java` in JAVA_HOME or PATH: install a JRE")
    return found


def cache_folder() -> Path:
    """Where jars are kept."""
    return cache_root() / KIND


def resolved_jars(
    name: str,
    dependencies: tuple[str, ...],
    *,
    transitive: bool = True,
    cache: Path | None = None,
    progress: Progress | None = None,
) -> Path:
    """Folder `name` of the cache with `dependencies` and, if `transitive`, all that they need at run time.

    Safe against other processes that do the same at the same time: one downloads, and the folder appears complete or not at all.
    It stays until this process has ended (`pipelines.cache.folder`).
    Raises JarsError when Java or PySpark is missing or a dependency does not resolve.
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
    """One process downloads at a time: Ivy's cache is not made for more, and the next one may find what it needs."""
    cache = ivy_cache()
    descriptor = lock(cache, fcntl.LOCK_EX | fcntl.LOCK_NB)
    if descriptor is None:
        if progress:
            progress("waiting for another process that downloads jars")
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


def _marker_text(dependencies: tuple[str, ...]) -> str:
    return "".join(f"{dependency}\n" for dependency in dependencies)


def _is_complete(folder: Path, dependencies: tuple[str, ...]) -> bool:
    marker = folder / COMPLETE_MARKER
    return marker.exists() and marker.read_text() == _marker_text(dependencies)


def spark_jars() -> list[Path]:
    """The jars that ship inside PySpark, found without importing it."""
    spec = importlib.util.find_spec("pyspark")
    places = list(spec.submodule_search_locations or ()) if spec else []
    return sorted(jar for place in places for jar in Path(place, "jars").glob("*.jar"))


def without_spark_jars(folder: Path) -> list[Path]:
    """The jars in `folder` whose artifact does not ship inside PySpark in a version of its own."""
    shipped = {_artifact(jar) for jar in spark_jars()}
    return sorted(jar for jar in folder.glob("*.jar") if _artifact(jar) not in shipped)


def _artifact(jar: Path) -> str:
    return re.sub(r"-\d[\w.\-]*$", "", jar.stem)


def _ivy_jar() -> Path:
    jars = [jar for jar in spark_jars() if _artifact(jar) == "ivy"]
    if not jars:
        raise JarsError("the Ivy jar of PySpark was not found: is pyspark installed in this environment?")
    return jars[-1]
