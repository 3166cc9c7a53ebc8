"""Options of the server, checked before it starts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coordinator_core.service.net.addresses import ListenAddress
from pipelines.alerts.rules_file import load_owners
from pipelines.alerts.states import OwnerTeam
from pipelines.dashboard.security.settings import SecuritySettings, security_settings
from pipelines.dashboard.sql.settings import SqlSettings, sql_settings
from pipelines.metrics.settings import MetricsSettings, metrics_settings
from pipelines.runtime.errors import UsageError
from pipelines.runtime.listen_address import listen_address
from pipelines.tables.location import parse_roots


@dataclass(frozen=True)
class DashboardOptions:
    """Options of a server. `roots` has the folder of each cluster by name, `has_mcp` switches `/mcp` on."""

    roots: Mapping[str, str]
    listen: ListenAddress
    poll_seconds: float
    sample_seconds: int
    metrics: MetricsSettings
    max_streams: int
    max_user_streams: int
    memory_bytes: int
    security: SecuritySettings
    sql: SqlSettings
    has_mcp: bool
    mcp_seconds: int
    owners: tuple[OwnerTeam, ...] = ()


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
    text, given_by = (listen, flag) if listen else (dashboard["listen"], "dashboard.listen")
    endpoint = listen_address(text, given_by)
    for name in ("poll_ms", "memory_mb", "max_streams", "max_user_streams", "mcp_seconds"):
        if dashboard[name] < 1:
            raise UsageError(f"dashboard.{name} is {dashboard[name]}: must be 1 or more")
    return DashboardOptions(
        roots=parse_roots(tables),
        listen=endpoint,
        poll_seconds=dashboard["poll_ms"] / 1000,
        sample_seconds=lag["interval_seconds"],
        metrics=metrics_settings(metrics),
        max_streams=dashboard["max_streams"],
        max_user_streams=dashboard["max_user_streams"],
        memory_bytes=dashboard["memory_mb"] * 1_000_000,
        security=security_settings(dashboard, endpoint),
        sql=sql_settings(dashboard),
        has_mcp=dashboard["mcp"],
        mcp_seconds=dashboard["mcp_seconds"],
        owners=load_owners(dashboard["owners_file"]) if dashboard["owners_file"] else (),
    )


def in_words(options: DashboardOptions) -> str:
    """Address, encryption and authentication of a server."""
    access = "with" if options.security.has_authentication else "without"
    return f"{options.listen}: {'HTTPS' if options.security.tls else 'HTTP'}, {access} authentication"
