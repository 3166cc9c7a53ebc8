"""The exporters of OpenTelemetry, opened with the settings; what these leave out, they read from the standard variables."""

import os
from typing import Any

from pipelines.otlp.channel import Exporter
from pipelines.otlp.failure_reason import reason_of_error
from pipelines.otlp.rejections import CountingClient, Rejections, counting_session
from pipelines.otlp.settings import OtlpProtocol, Signal, SignalSettings
from pipelines.runtime.errors import UsageError


def open_exporter(settings: SignalSettings, rejections: Rejections) -> Exporter:
    """Open the exporter of a signal. It connects with the first export, and adds to `rejections`.

    Raises:
        UsageError: a variable has an invalid value.
    """
    given: dict[str, Any] = {"endpoint": settings.endpoint, "headers": dict(settings.headers) or None}
    open_one = _open_grpc if settings.protocol is OtlpProtocol.GRPC else _open_http
    try:
        exporter: Exporter = open_one(settings.signal, rejections, given)
    except Exception as error:  # whatever the exporter does with a variable that it cannot read
        raise UsageError(
            f"the exporter of OpenTelemetry for {settings.signal} cannot be opened ({reason_of_error(error)}): "
            "check the variables OTEL_EXPORTER_OTLP_…"
        ) from error
    return exporter


# each import of an exporter takes tenths of a second, and that of gRPC some megabytes


def _open_grpc(signal: Signal, rejections: Rejections, given: dict[str, Any]) -> Any:
    from opentelemetry.exporter.otlp.proto.grpc.exporter import logger

    # they drop repetitions of a message, whatever its arguments: the reason of a second signal would be lost
    for each in tuple(logger.filters):
        logger.removeFilter(each)
    if signal is Signal.METRICS:
        from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter as GrpcMetricExporter

        return _counting_class(GrpcMetricExporter, rejections)(**given)
    from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcSpanExporter

    return _counting_class(GrpcSpanExporter, rejections)(**given)


def _counting_class(exporter_class: Any, rejections: Rejections) -> Any:
    class CountingExporter(exporter_class):  # type: ignore[misc]  # one of two classes
        """The exporter, whose client adds rejections."""

        _client: Any

        def _initialize_channel_and_stub(self) -> None:
            """Open a connection, which the exporter does again after some errors."""
            super()._initialize_channel_and_stub()
            self._client = CountingClient(self._client, rejections)

    return CountingExporter


def _open_http(signal: Signal, rejections: Rejections, given: dict[str, Any]) -> Any:
    names = (f"OTEL_PYTHON_EXPORTER_OTLP_HTTP_{part}CREDENTIAL_PROVIDER" for part in (f"{signal.upper()}_", ""))
    has_provider = any(os.environ.get(name) for name in names)

    def session(response_type: Any) -> Any:
        # the exporter opens the session of such a provider only in the place of another one
        return None if has_provider else counting_session(rejections, response_type)

    if signal is Signal.METRICS:
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse

        return OTLPMetricExporter(**given, session=session(ExportMetricsServiceResponse))
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

    return OTLPSpanExporter(**given, session=session(ExportTraceServiceResponse))
