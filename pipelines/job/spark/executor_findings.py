"""Differences between the environment of executors and that of the driver, as one line with the remedy."""

import json
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pipelines.job.spark.executor_probe import MARK
from pipelines.runtime.version import version_text

ENVIRONMENT_REMEDY = "bring this environment to every node and name its Python in PYSPARK_PYTHON (docs/deploy-cluster.md)"
_STORAGE = "the executors need it at the same path: use a shared file system, or an object store for tables"


@dataclass(frozen=True)
class ExecutorReport:
    """The environment of one executor. `error` is that of an import, `files` are paths with problems."""

    host: str
    python: str = ""
    executable: str = ""
    grouplake: str = ""
    pyspark: str = ""
    error: str = ""
    files: Mapping[str, str] = field(default_factory=dict)


def parse_report(lines: Iterable[str]) -> ExecutorReport | None:
    """The report among the lines that the probe printed; None if there is none."""
    for line in lines:
        if line.startswith(MARK):
            found: dict[str, Any] = json.loads(line.removeprefix(MARK))
            return ExecutorReport(**found)
    return None


@dataclass(frozen=True)
class DriverEnvironment:
    """The environment that executors must have."""

    python: str
    grouplake: str
    pyspark: str

    @classmethod
    def current(cls) -> "DriverEnvironment":
        """That of this process."""
        import pyspark

        return cls(platform.python_version(), version_text(), pyspark.__version__)


def first_problem(reports: Sequence[ExecutorReport], driver: DriverEnvironment) -> str | None:
    """One line about the first executor with a problem and the number of all executors with one; None without problems."""
    problems = [(report.host, problem) for report in reports if (problem := _problem(report, driver))]
    if not problems:
        return None
    host, problem = problems[0]
    more = f"; {len(problems)} of {len(reports)} executors have problems" if len(reports) > 1 else ""
    return f"executor on {host}: {problem}{more}"


def _problem(report: ExecutorReport, driver: DriverEnvironment) -> str | None:
    if not report.python:
        return f"{report.error}: {ENVIRONMENT_REMEDY}"
    interpreter = f"{report.executable} (Python {report.python})"
    if _minor(report.python) != _minor(driver.python):
        return f"{interpreter}, but the driver has Python {driver.python}: use the same minor version; {ENVIRONMENT_REMEDY}"
    if not report.grouplake:
        return f"{interpreter} has no grouplake ({report.error}): {ENVIRONMENT_REMEDY}"
    if report.grouplake != driver.grouplake:
        return f"{interpreter} has {report.grouplake}, the driver {driver.grouplake}: use the same version; {ENVIRONMENT_REMEDY}"
    if report.error:
        return f"{interpreter} cannot read logs ({report.error}): {ENVIRONMENT_REMEDY}"
    if report.pyspark != driver.pyspark:
        return f"PySpark {report.pyspark}, but the driver has {driver.pyspark}: use the same version of Spark on every node"
    for path, problem in report.files.items():
        return f"{path} is {problem} there: {_STORAGE}"
    return None


def _minor(version: str) -> list[str]:
    return version.split(".")[:2]
