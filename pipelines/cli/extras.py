"""Extras of the distribution: the packages that a command imports beside those of every installation."""

from dataclasses import dataclass
from importlib.util import find_spec

from pipelines.runtime.errors import UsageError


@dataclass(frozen=True)
class Extra:
    """An extra of pyproject.toml, and the names by which a command imports the packages that it needs of it."""

    name: str
    packages: tuple[str, ...]

    def expect(self, command: str) -> None:
        """Raise UsageError if a package is not installed; `command` is the beginning of its message."""
        for package in self.packages:
            if not _is_installed(package):
                raise UsageError(f"{command} needs the package {package}: pip install 'grouplake[{self.name}]'")

    @property
    def is_installed(self) -> bool:
        """Whether all packages are installed."""
        return all(map(_is_installed, self.packages))


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:
        # of a package around it
        return False


_LOG_PACKAGES = ("numba", "kafka", "cramjam", "crc32c")
_JOB_PACKAGES = ("pyspark", "pandas", *_LOG_PACKAGES)
_COORDINATOR_PACKAGES = (*_LOG_PACKAGES, "uvloop", "structlog", "prometheus_client")

JOB = Extra("job", _JOB_PACKAGES)
#: Of a command that reads a log but never starts Spark.
LOG = Extra("job", _LOG_PACKAGES)
COORDINATOR = Extra("coordinator", _COORDINATOR_PACKAGES)
DEMO = Extra("demo", tuple(dict.fromkeys((*_JOB_PACKAGES, *_COORDINATOR_PACKAGES))))
DASHBOARD = Extra("dashboard", ("fastapi", "uvicorn", "jinja2", "authlib", "httpx", "itsdangerous", "cachetools"))
OTLP = Extra("otlp", ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.grpc", "opentelemetry.exporter.otlp.proto.http"))
MCP = Extra("mcp", ("mcp", "cachetools"))
