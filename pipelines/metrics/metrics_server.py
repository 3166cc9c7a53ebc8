"""HTTP server of /metrics, /health and /ready in a thread, for the job."""

from collections.abc import Callable
from email.message import Message

from coordinator_core.service.net.addresses import ListenAddress
from pipelines.metrics.http_answer import metrics_answer
from pipelines.metrics.metrics_text import MetricsBody
from pipelines.runtime.errors import GrouplakeError
from pipelines.runtime.probe_server import HttpAnswer, ProbeServer, health

_NEGOTIATED = ("If-None-Match", "Accept-Encoding", "Accept")


class MetricsServerError(GrouplakeError):
    """The address of `--metrics` cannot be used."""


class MetricsServer(ProbeServer):
    """Serves what `metrics` returns, between `start` and `close`."""

    def __init__(
        self, listen: ListenAddress, metrics: Callable[[], MetricsBody], unready: Callable[[], str | None] = lambda: None
    ) -> None:
        """Bind the address; `unready` is the reason for a 503 at `/ready`. Raises MetricsServerError if that is not possible."""

        def answer(headers: Message) -> HttpAnswer:
            return metrics_answer(metrics(), *(headers.get(name, "") for name in _NEGOTIATED))

        try:
            super().__init__(listen, {"/metrics": answer, "/health": health(lambda: None), "/ready": health(unready)})
        except OSError as error:
            raise MetricsServerError(f"cannot listen on {listen}: {error.strerror or error}") from error
