"""Options of the server, checked before it starts."""

import ipaddress
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coordinator_core.service.addresses import Endpoint, parse_listen_address
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
    allow_remote: bool
    poll_seconds: float
    sample_seconds: int
    metrics: MetricsSettings
    max_streams: int
    memory_bytes: int


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
    if not dashboard["allow_remote"] and not is_loopback(endpoint.host):
        raise UsageError(
            f"{endpoint} is not a loopback address, and the server has no authentication: use 127.0.0.1, or set "
            "dashboard.allow_remote = true where only trusted clients reach the address"
        )
    for name in ("poll_ms", "memory_mb", "max_streams"):
        if dashboard[name] < 1:
            raise UsageError(f"dashboard.{name} is {dashboard[name]}: must be 1 or more")
    return DashboardOptions(
        roots=named_roots(tables),
        listen=endpoint,
        allow_remote=dashboard["allow_remote"],
        poll_seconds=dashboard["poll_ms"] / 1000,
        sample_seconds=lag["interval_seconds"],
        metrics=metrics_settings(metrics),
        max_streams=dashboard["max_streams"],
        memory_bytes=dashboard["memory_mb"] * 1_000_000,
    )


def is_loopback(host: str) -> bool:
    """True for addresses of this machine that no other machine can reach."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False


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
