"""Options of the server, checked before it starts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coordinator_core.service.addresses import Endpoint
from pipelines.errors import UsageError
from pipelines.metrics.listen_address import listen_address
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
    text, given_by = (listen, "--listen") if listen else (dashboard["listen"], "dashboard.listen")
    endpoint = listen_address(text, given_by, dashboard["allow_remote"], "dashboard.allow_remote")
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
