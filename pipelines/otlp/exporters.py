"""The exporters of OpenTelemetry, opened with the settings; what these leave out, they read from the standard variables."""

from typing import Any

from pipelines.otlp.channel import Exporter
from pipelines.otlp.failure_reason import reason_of_error
from pipelines.otlp.settings import OtlpProtocol, Signal, SignalSettings
from pipelines.runtime.errors import UsageError


def open_exporter(settings: SignalSettings) -> Exporter:
    """Open the exporter of a signal. It connects with the first export.

    Raises:
        UsageError: a variable has an invalid value.
    """
    given: dict[str, Any] = {"endpoint": settings.endpoint, "headers": dict(settings.headers) or None}
    try:
        exporter: Exporter = _exporter_class(settings)(**given)
    except Exception as error:  # whatever the exporter does with a variable that it cannot read
        raise UsageError(
            f"the exporter of OpenTelemetry for {settings.signal} cannot be opened ({reason_of_error(error)}): "
            "check the variables OTEL_EXPORTER_OTLP_…"
        ) from error
    return exporter


def _exporter_class(settings: SignalSettings) -> Any:
    # each import takes tenths of a second, and that of gRPC some megabytes
    if settings.protocol is OtlpProtocol.GRPC:
        from opentelemetry.exporter.otlp.proto.grpc.exporter import logger

        # they drop repetitions of a message, whatever its arguments: the reason of a second signal would be lost
        for each in tuple(logger.filters):
            logger.removeFilter(each)
        if settings.signal is Signal.METRICS:
            from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter as GrpcMetricExporter

            return GrpcMetricExporter
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcSpanExporter

        return GrpcSpanExporter
    if settings.signal is Signal.METRICS:
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter

        return OTLPMetricExporter
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    return OTLPSpanExporter
