"""The page beside a command that writes tables: its option, and its server."""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

from pipelines.cli.extras import DASHBOARD, MCP

if TYPE_CHECKING:
    from argparse import _ActionsContainer

    from pipelines.metrics.site import Site
    from pipelines.runtime.configuration import Configuration
    from pipelines.runtime.progress import Progress, RecentProgress


def add_dashboard(parser: "_ActionsContainer", what: str) -> None:
    """Add `--dashboard [HOST:PORT]`."""
    parser.add_argument(
        "--dashboard",
        nargs="?",
        const="",
        metavar="HOST:PORT",
        help=f"{what} (default: dashboard.listen, 127.0.0.1:8080); needs the extra `dashboard`",
    )


def dashboard_of_job(
    command: str, listen: str | None, tables: str, configuration: "Configuration", progress: "Progress", job: "RecentProgress"
) -> "AbstractContextManager[Site | None]":
    """The page beside a job that writes `tables`; nothing if `listen` is None, which is the value of `--dashboard`.

    The page's own lines go to `progress`; it shows those of `job` until there is a batch.

    Raises:
        UsageError: an invalid address or setting, or the extra is not installed.
    """
    if listen is None:
        return nullcontext()
    DASHBOARD.expect(f"{command} --dashboard")
    from pipelines.dashboard.options import dashboard_options
    from pipelines.dashboard.server.beside_job import dashboard_beside
    from pipelines.tables.location import cluster_name

    options = dashboard_options(
        [], listen or None, configuration.dashboard, configuration.metrics, configuration.lag, flag="--dashboard"
    )
    if options.has_mcp:
        MCP.expect("dashboard.mcp = true")
    return dashboard_beside(replace(options, roots={cluster_name(tables): tables}), progress, job.lines)
