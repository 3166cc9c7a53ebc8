"""A collector on loopback, made of the protocol's own definitions: gRPC and HTTP with Protobuf."""

import gzip
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import grpc
from metrics_text import Labels
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsPartialSuccess,
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2_grpc import (
    MetricsServiceServicer,
    add_MetricsServiceServicer_to_server,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import TraceServiceServicer, add_TraceServiceServicer_to_server


@dataclass
class Received:
    """The requests of all clients, in their order, with their headers."""

    metrics: list[ExportMetricsServiceRequest] = field(default_factory=list)
    traces: list[ExportTraceServiceRequest] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    #: Whether requests are refused, as a collector does that is misconfigured.
    is_refusing: bool = False
    #: Items that each response rejects of its request.
    rejected: int = 0
    address: str = ""

    def metrics_response(self) -> ExportMetricsServiceResponse:
        """The response to a request of metrics."""
        return ExportMetricsServiceResponse(partial_success=ExportMetricsPartialSuccess(rejected_data_points=self.rejected))

    def traces_response(self) -> ExportTraceServiceResponse:
        """The response to a request of traces."""
        return ExportTraceServiceResponse(partial_success=ExportTracePartialSuccess(rejected_spans=self.rejected))

    def spans(self) -> list[Any]:
        """All spans."""
        return [
            span for request in self.traces for of in request.resource_spans for scope in of.scope_spans for span in scope.spans
        ]


def attributes(values: Any) -> dict[str, Any]:
    """Attributes of the protocol as a dictionary."""
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in values}


def points(requests: list[ExportMetricsServiceRequest]) -> tuple[dict[str, dict[Labels, float]], list[dict[str, Any]]]:
    """Name → labels → value, as of `metrics_text.series`, and the resources. AssertionError for a point that occurs twice."""
    found: dict[str, dict[Labels, float]] = {}
    resources = []
    for request in requests:
        for of in request.resource_metrics:
            resources.append(attributes(of.resource.attributes))
            for metric in (metric for scope in of.scope_metrics for metric in scope.metrics):
                of_name = found.setdefault(metric.name, {})
                for point in metric.gauge.data_points:
                    labels = tuple(sorted(attributes(point.attributes).items()))
                    assert labels not in of_name, f"twice: {metric.name} {labels}"
                    of_name[labels] = getattr(point, point.WhichOneof("value"))
    return found, resources


@contextmanager
def http_receiver(port: int = 0) -> Iterator[Received]:
    """A receiver of http/protobuf."""
    received = Received()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            received.headers.append({name.lower(): value for name, value in self.headers.items()})
            answer = b""
            if not received.is_refusing:
                answer = self._received(body)
            self.send_response(401 if received.is_refusing else 200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def _received(self, body: bytes) -> bytes:
            if self.path == "/v1/metrics":
                received.metrics.append(ExportMetricsServiceRequest.FromString(body))
                return bytes(received.metrics_response().SerializeToString())
            assert self.path == "/v1/traces", self.path
            received.traces.append(ExportTraceServiceRequest.FromString(body))
            return bytes(received.traces_response().SerializeToString())

        def log_message(self, format: str, *args: object) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    server.block_on_close = False
    received.address = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield received
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def grpc_receiver() -> Iterator[Received]:
    """A receiver of gRPC."""
    received = Received()

    def note(context: grpc.ServicerContext) -> None:
        received.headers.append({key: str(value) for key, value in context.invocation_metadata()})
        if received.is_refusing:
            context.abort(grpc.StatusCode.UNAUTHENTICATED, "not you")

    class Metrics(MetricsServiceServicer):
        def Export(self, request: Any, context: grpc.ServicerContext) -> ExportMetricsServiceResponse:  # noqa: N802
            note(context)
            received.metrics.append(request)
            return received.metrics_response()

    class Traces(TraceServiceServicer):
        def Export(self, request: Any, context: grpc.ServicerContext) -> ExportTraceServiceResponse:  # noqa: N802
            note(context)
            received.traces.append(request)
            return received.traces_response()

    server = grpc.server(ThreadPoolExecutor(2))
    add_MetricsServiceServicer_to_server(Metrics(), server)  # type: ignore[no-untyped-call]  # generated
    add_TraceServiceServicer_to_server(Traces(), server)  # type: ignore[no-untyped-call]  # generated
    received.address = f"http://127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    try:
        yield received
    finally:
        server.stop(None).wait()
