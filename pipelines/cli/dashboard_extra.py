"""The extra `dashboard`, for the commands that serve the page."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

from pipelines.runtime.errors import UsageError

if TYPE_CHECKING:
    from argparse import _ActionsContainer

    from pipelines.metrics.site import Site
    from pipelines.runtime.configuration import Configuration
    from pipelines.runtime.progress import Progress


def add_dashboard(parser: "_ActionsContainer", what: str) -> None:
    """Add `--dashboard [HOST:PORT]`."""
    parser.add_argument(
        "--dashboard",
        nargs="?",
        const="",
        metavar="HOST:PORT",
        help=f"{what} (default: dashboard.listen, 127.0.0.1:8080); needs the extra `dashboard`",
    )


@contextmanager
def dashboard_extra(command: str) -> Iterator[None]:
    """Around the imports of the extra: raises UsageError with its name if it is not installed."""
    try:
        yield
    except ImportError as error:
        raise UsageError(f"{command} needs the package {error.name}: pip install 'grouplake[dashboard]'") from error


def dashboard_of_job(
    command: str, listen: str | None, tables: str, configuration: "Configuration", progress: "Progress"
) -> "AbstractContextManager[Site | None]":
    """The page beside a job that writes `tables`; nothing if `listen` is None, which is the value of `--dashboard`.

    Raises:
        UsageError: an invalid address or setting, or the extra is not installed.
    """
    if listen is None:
        return nullcontext()
    from pipelines.dashboard.options import dashboard_options
    from pipelines.tables.location import cluster_name

    with dashboard_extra(f"{command} --dashboard"):
        from pipelines.dashboard.server.beside_job import dashboard_beside
    options = dashboard_options(
        [], listen or None, configuration.dashboard, configuration.metrics, configuration.lag, flag="--dashboard"
    )
    return dashboard_beside(replace(options, roots={cluster_name(tables): tables}), progress)
