"""Options of the server, checked before it starts."""

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coordinator_core.service.addresses import Endpoint, parse_listen_address
from pipelines.errors import UsageError
from pipelines.metrics.settings import MetricsSettings, metrics_settings
from pipelines.tables.location import parse_roots


@dataclass(frozen=True)
class DashboardOptions:
    """Options of a server. `roots` has the folder of each cluster by name."""

    roots: Mapping[str, str]
    listen: Endpoint
    allow_remote: bool
    poll_seconds: float
    sample_seconds: int
    metrics: MetricsSettings


def dashboard_options(
    tables: Sequence[str], listen: str | None, dashboard: Mapping[str, Any], metrics: Mapping[str, Any], lag: Mapping[str, Any]
) -> DashboardOptions:
    """Options from the command line and the sections of the configuration. Raises UsageError for an invalid value."""
    try:
        endpoint = parse_listen_address(listen or dashboard["listen"])
    except ValueError as error:
        raise UsageError(f"{'--listen' if listen else 'dashboard.listen'}: {error}") from error
    if not dashboard["allow_remote"] and not is_loopback(endpoint.host):
        raise UsageError(
            f"{endpoint} is not a loopback address, and the server has no authentication: use 127.0.0.1, or set "
            "dashboard.allow_remote = true where only trusted clients reach the address"
        )
    if not dashboard["poll_ms"]:
        raise UsageError("dashboard.poll_ms is 0: must be 1 or more")
    return DashboardOptions(
        roots=parse_roots(tables),
        listen=endpoint,
        allow_remote=dashboard["allow_remote"],
        poll_seconds=dashboard["poll_ms"] / 1000,
        sample_seconds=lag["interval_seconds"],
        metrics=metrics_settings(metrics),
    )


def is_loopback(host: str) -> bool:
    """True for addresses of this machine that no other machine can reach."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False
