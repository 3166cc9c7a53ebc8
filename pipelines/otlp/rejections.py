"""Items that a collector rejects of a request that it takes (`partial_success` of its response).

The exporters of OpenTelemetry return no response, so it is read on its way to them, by the protocol's own definitions.
"""

from typing import Any

from google.protobuf.message import DecodeError  # type: ignore[import-untyped]  # without types

from pipelines.otlp.settings import Signal

_FIELDS = {Signal.METRICS: "rejected_data_points", Signal.TRACES: "rejected_spans"}
_OK = 200


class Rejections:
    """The rejected items of one exporter. For one thread at a time."""

    def __init__(self, signal: Signal) -> None:
        self._field = _FIELDS[signal]
        self._count = 0

    def add(self, response: Any) -> None:
        """Add those of a response of the signal."""
        self._count += max(0, getattr(response.partial_success, self._field))

    def take(self) -> int:
        """The rejected items since the last call."""
        count, self._count = self._count, 0
        return count


def counting_session(rejections: Rejections, response_type: Any) -> Any:
    """A session for the exporter of HTTP that adds the rejections of every response."""
    import requests

    def add(response: Any, **_: object) -> None:
        if response.status_code != _OK:
            return
        try:
            message = response_type.FromString(response.content)
        except DecodeError:
            # of a server that takes data, but does not speak the protocol
            return
        rejections.add(message)

    session = requests.Session()
    session.hooks["response"].append(add)
    return session


class CountingClient:
    """A client of gRPC that adds the rejections of every response."""

    def __init__(self, client: Any, rejections: Rejections) -> None:
        self._client = client
        self._rejections = rejections

    def Export(self, **call: Any) -> Any:  # noqa: N802 - the name of the protocol
        """Send a request."""
        response = self._client.Export(**call)
        self._rejections.add(response)
        return response
