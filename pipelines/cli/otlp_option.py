"""The export to a collector of OpenTelemetry beside a command: off unless the configuration or a variable names a collector."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from pipelines.cli.extras import OTLP

if TYPE_CHECKING:
    from pipelines.metrics.site import Site
    from pipelines.runtime.configuration import Configuration
    from pipelines.runtime.progress import Progress


def otlp_export_of(
    configuration: "Configuration", progress: "Progress", *, has_batches: bool
) -> "Callable[[Site], AbstractContextManager[None]] | None":
    """What exports the series of a site and, with `has_batches`, the batches of this process; None without a collector.

    Raises:
        UsageError: an invalid setting, or an endpoint in the configuration without the extra.
    """
    from pipelines.otlp.settings import otlp_settings

    settings = otlp_settings(configuration.otlp)
    if settings is None:
        return None
    if configuration.otlp["endpoint"]:
        OTLP.expect("otlp.endpoint")
    elif not OTLP.is_installed:
        # the variable may be there for other programs
        progress("otlp: OTEL_EXPORTER_OTLP_ENDPOINT is set, but nothing is exported without the extra `otlp`")
        return None
    found = settings

    def export(site: "Site") -> AbstractContextManager[None]:
        from pipelines.otlp.export import otlp_export

        return otlp_export(site, found, progress, has_batches=has_batches)

    return export
