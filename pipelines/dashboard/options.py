"""Options of the server, checked before it starts."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coordinator_core.service.addresses import Endpoint, parse_listen_address
from pipelines.dashboard.security.settings import SecuritySettings, security_settings
from pipelines.dashboard.sql.settings import SqlSettings, sql_settings
from pipelines.errors import UsageError
from pipelines.metrics.settings import MetricsSettings, metrics_settings
from pipelines.tables.location import cluster_name

#: `NAME=DIR`; a folder whose name has "=" is given as a path.
_NAMED = re.compile(r"(?P<name>[A-Za-z0-9_][A-Za-z0-9_.-]{0,99})=(?P<root>.+)")


@dataclass(frozen=True)
class DashboardOptions:
    """Options of a server. `roots` has the folder of each cluster by name."""

    roots: Mapping[str, str]
    listen: Endpoint
    poll_seconds: float
    sample_seconds: int
    metrics: MetricsSettings
    max_streams: int
    memory_bytes: int
    security: SecuritySettings
    sql: SqlSettings


def dashboard_options(
    tables: Sequence[str],
    listen: str | None,
    dashboard: Mapping[str, Any],
    metrics: Mapping[str, Any],
    lag: Mapping[str, Any],
    *,
    flag: str = "--listen",
) -> DashboardOptions:
    """Options from the command line and the sections of the configuration. Raises UsageError for an invalid value.

    `flag` is the name of the argument with `listen`.
    """
    try:
        endpoint = parse_listen_address(listen or dashboard["listen"])
    except ValueError as error:
        raise UsageError(f"{flag if listen else 'dashboard.listen'}: {error}") from error
    for name in ("poll_ms", "memory_mb", "max_streams"):
        if dashboard[name] < 1:
            raise UsageError(f"dashboard.{name} is {dashboard[name]}: must be 1 or more")
    return DashboardOptions(
        roots=named_roots(tables),
        listen=endpoint,
        poll_seconds=dashboard["poll_ms"] / 1000,
        sample_seconds=lag["interval_seconds"],
        metrics=metrics_settings(metrics),
        max_streams=dashboard["max_streams"],
        memory_bytes=dashboard["memory_mb"] * 1_000_000,
        security=security_settings(dashboard, endpoint),
        sql=sql_settings(dashboard),
    )


def named_roots(tables: Sequence[str]) -> dict[str, str]:
    """Cluster → folder, from values `DIR` or `NAME=DIR`. Raises UsageError if two clusters have one name."""
    roots: dict[str, str] = {}
    for text in tables:
        found = _NAMED.fullmatch(text)
        name, root = (found["name"], found["root"]) if found else (cluster_name(text), text)
        if name in roots:
            raise UsageError(f"two folders for cluster {name!r}, {roots[name]} and {root}: name them with --tables NAME=DIR")
        roots[name] = root
    return roots
