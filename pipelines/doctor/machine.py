"""Checks of this machine: Python, Java, jars, memory and cores."""

import importlib.metadata
import os
import platform
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from pipelines.doctor.finding import CheckResult, ok, problem, warning
from pipelines.doctor.subject import Subject
from pipelines.runtime.cache.folder import cache_root
from pipelines.runtime.cache.jars import cache_folder, is_resolved
from pipelines.runtime.cache.java import REMEDY, JavaError, java_version

#: Packages whose versions decide what the job can do.
_PACKAGES = ("grouplake", "pyspark", "delta-spark", "deltalake", "pyarrow", "numba", "kafka-python")
_GIB = 2**30
#: Memory of the driver's Python process and of its workers, beside that of the JVM (docs/benchmarks.md).
_PYTHON_BYTES = 3 * _GIB // 2
_UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
#: Memory limits of the control group of a container, of version 2 and 1.
_LIMIT_FILES = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def python(_subject: Subject) -> Iterator[CheckResult]:
    """Python and the packages of the job."""
    found = f"Python {platform.python_version()} ({sys.executable})"
    versions, missing = [], []
    for name in _PACKAGES:
        try:
            versions.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            missing.append(name)
    if missing:
        yield problem(f"{found}: {', '.join(missing)} not installed", "pip install 'grouplake[job]'")
    else:
        yield ok(f"{found}, {', '.join(versions)}")


def java(_subject: Subject) -> Iterator[CheckResult]:
    """The Java that Spark would start with."""
    try:
        program, version = java_version()
    except JavaError as error:
        yield problem(error.problem, REMEDY)
        return
    if version is None:
        yield warning(f"{program} prints no version that is known", REMEDY)
    else:
        yield ok(f"Java {version} ({program})")


def jars(subject: Subject) -> Iterator[CheckResult]:
    """Delta's jars."""
    from pipelines.job.spark.session import DELTA

    if subject.configuration.spark["delta_jars"] != "cache":
        yield ok("Delta's jars are provided by the class path (spark.delta_jars)")
    elif is_resolved(*DELTA):
        yield ok(f"Delta's jars are in {cache_folder()}")
    else:
        yield warning(
            f"Delta's jars are not in {cache_folder()}",
            "the first run downloads them from Maven Central; on a machine without access copy the cache of another machine and "
            "set GROUPLAKE_CACHE",
        )
    root = cache_root()
    existing = next(folder for folder in (root, *root.absolute().parents) if folder.exists())
    if not os.access(existing, os.W_OK):
        yield warning(f"the cache folder {root} is not writable", "set GROUPLAKE_CACHE to a folder that this user can write")


def memory(subject: Subject) -> Iterator[CheckResult]:
    """Memory of the machine or container, beside `spark.driver_memory`."""
    total = memory_bytes()
    spark = subject.configuration.spark
    if not spark["master"].startswith("local"):
        yield ok(f"{total / _GIB:.1f} GiB of memory, {cores()} cores; executors: those of {spark['master'] or 'spark-submit'}")
        return
    text = str(spark["driver_memory"])
    given = re.fullmatch(r"(\d+)([kmgt]?)b?", text.lower())
    if given is None:
        yield problem(f"spark.driver_memory is {text!r}", 'use a size such as "2g" or "1500m"')
        return
    needed = int(given[1]) * _UNITS[given[2]] + _PYTHON_BYTES
    found = f"{total / _GIB:.1f} GiB of memory, {cores()} cores; a job takes up to {needed / _GIB:.1f} GiB"
    if needed > total:
        yield warning(
            f"{found} (spark.driver_memory is {text})",
            "lower spark.driver_memory, or give the job more memory",
        )
    else:
        yield ok(found)


def memory_bytes() -> int:
    """Memory that this process can use: that of the machine, or of its container."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for file in _LIMIT_FILES:
        try:
            text = file.read_text().strip()
        except OSError:
            continue
        return min(total, int(text)) if text.isdigit() else total
    return total


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
