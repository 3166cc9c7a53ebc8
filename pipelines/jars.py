"""Jars from Maven repositories, resolved with the Ivy that ships inside PySpark, once, into a cache folder."""

import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from pipelines.errors import GrouplakeError
from pipelines.progress import Progress

COMPLETE_MARKER = "COMPLETE"
RESOLVE_LIMIT_SECONDS = 900


class JarsError(GrouplakeError):
    """Java is missing, or a dependency does not resolve; the message says what to do."""


def java_executable() -> str:
    """Path of `java`: `JAVA_HOME` first, then `PATH`. Raises JarsError when there is none."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home) / "bin")) if home else None
    found = found or shutil.which("java")
    if found is None:
        raise JarsError("grouplake needs Java 17, and there is no `java` in JAVA_HOME or PATH: install a JRE")
    return found


def cache_root() -> Path:
    """Where everything is kept that can be made again: `$GROUPLAKE_CACHE`, by default `~/.cache/grouplake`."""
    root = os.environ.get("GROUPLAKE_CACHE")
    return Path(root) if root else Path.home() / ".cache" / "grouplake"


def cache_folder() -> Path:
    """Where jars are kept."""
    return cache_root() / "jars"


def resolved_jars(
    name: str,
    dependencies: tuple[str, ...],
    *,
    transitive: bool = True,
    cache: Path | None = None,
    progress: Progress | None = None,
) -> Path:
    """Folder `name` of the cache with `dependencies` and, if `transitive`, all that they need at run time.

    Safe against other processes that do the same at the same time: the folder appears complete or not at all.
    Raises JarsError when Java or PySpark is missing or a dependency does not resolve.
    """
    folder = (cache or cache_folder()) / name
    if _is_complete(folder, dependencies):
        return folder
    java, ivy = java_executable(), _ivy_jar()
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=folder.parent))
    try:
        for dependency in dependencies:
            if progress:
                progress(f"resolving {dependency} (once; kept in {folder})")
            _retrieve(java, ivy, dependency, partial, transitive)
        (partial / COMPLETE_MARKER).write_text(_marker_text(dependencies))
        _publish(partial, folder, dependencies)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return folder


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


def _retrieve(java: str, ivy: Path, dependency: str, target: Path, transitive: bool) -> None:
    pattern = f"{target}/[artifact]-[revision].[ext]"
    command = [java, "-jar", str(ivy), "-dependency", *dependency.split(":"), "-confs", "default", "runtime", "master", "compile"]
    command += ["-types", "jar", "bundle", "-retrieve", pattern, *([] if transitive else ["-notransitive"])]
    before = set(target.iterdir())
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=RESOLVE_LIMIT_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise JarsError(
            f"resolving {dependency} took longer than {RESOLVE_LIMIT_SECONDS} s: is a Maven repository reachable?"
        ) from None
    if run.returncode != 0 or set(target.iterdir()) == before:
        raise JarsError(f"{dependency} does not resolve: {_reason(run.stdout + run.stderr)}")


def _reason(output: str) -> str:
    """The lines of Ivy's report that name a cause, or its last line."""
    lines = [line.strip(": \t") for line in output.splitlines() if line.strip(": \t")]
    telling = [line for line in lines if "UNRESOLVED" in line or "not found" in line or "Exception" in line or "ERROR" in line]
    return "; ".join(dict.fromkeys(telling[:3])) or (lines[-1] if lines else "Ivy said nothing")


def _publish(partial: Path, folder: Path, dependencies: tuple[str, ...]) -> None:
    if not _is_complete(folder, dependencies):
        shutil.rmtree(folder, ignore_errors=True)
    partial.chmod(0o755)
    try:
        partial.rename(folder)
    except OSError:
        # Another process was quicker; its folder is as good as ours.
        if not _is_complete(folder, dependencies):
            raise
