"""The export of a process: a thread that sends the series of a site, and the batches of a job, at an interval."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext

from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from pipelines.metrics.metric import Family, Level, Metric, Source
from pipelines.metrics.metric_series import MetricSeries
from pipelines.metrics.site import Site
from pipelines.otlp.batch_spans import BatchSpans
from pipelines.otlp.channel import Channel
from pipelines.otlp.data_points import metrics_requests
from pipelines.otlp.exporters import open_exporter
from pipelines.otlp.failure_reason import failure_reasons
from pipelines.otlp.rejections import Rejections
from pipelines.otlp.resources import resources
from pipelines.otlp.settings import OtlpSettings, Signal
from pipelines.runtime.errors import UsageError
from pipelines.runtime.phases import observe_batches
from pipelines.runtime.progress import Progress
from pipelines.runtime.version import build_version

#: Spans of a request.
_SPANS = 500
#: The last export of a process that ends has this time.
_END_SECONDS = 5
#: After that time, requests are aborted, which takes less than this one.
_ABORT_SECONDS = 1


def _dropped(noun: str, text: str) -> Metric:
    return Metric(f"grouplake_otlp_dropped_{noun}", text, Family.OWN, Level.CLUSTER, "dropped", {}, Source.JOB)


_DROPPED = {
    Signal.METRICS: _dropped("points", "Data points that the collector of OpenTelemetry did not take"),
    Signal.TRACES: _dropped("spans", "Spans that the collector of OpenTelemetry did not take"),
}


@contextmanager
def otlp_export(site: Site, settings: OtlpSettings, progress: Progress, *, has_batches: bool) -> Iterator[None]:
    """Export the series of `site` meanwhile and, with `has_batches`, the batches of this process as traces.

    At the end what is new is exported once more, for some seconds at most.

    Raises:
        UsageError: a variable of OpenTelemetry has an invalid value.
    """
    with ExitStack() as opened:
        reasons = opened.enter_context(failure_reasons())
        channels = {
            each.signal: Channel(each, open_exporter(each, rejections := Rejections(each.signal)), rejections, reasons, progress)
            for each in settings.signals
            if has_batches or each.signal is not Signal.TRACES
        }
        if not channels:
            yield
            return
        try:
            export = _Export(site, channels, settings.interval_seconds, "job" if has_batches else "page", progress)
        except ValueError as error:  # such as a limit of spans that is no number
            raise UsageError(f"a variable OTEL_… is invalid: {error}") from error
        shown = ", ".join(dict.fromkeys(each.shown for each in settings.signals if each.signal in channels))
        progress(f"otlp: {' and '.join(channels)} to {shown}, every {settings.interval_seconds:g} s")
        opened.enter_context(export.observed())
        export.start()
        try:
            yield
        finally:
            export.close()


class _Export:
    """The thread, between `start` and `close`."""

    def __init__(
        self, site: Site, channels: Mapping[Signal, Channel], interval_seconds: float, role: str, progress: Progress
    ) -> None:
        self._site = site
        self._progress = progress
        self._reported = ""
        self._channels = channels
        self._interval = interval_seconds
        self._scope = InstrumentationScope("grouplake", build_version())
        self._resources = resources(site.roots, role)
        cluster = next(iter(site.roots)) if len(site.roots) == 1 else None
        self._spans = BatchSpans(self._resources[cluster], build_version()) if Signal.TRACES in channels else None
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="otlp", daemon=True)
        site.add_series(self._dropped_series)

    def observed(self) -> AbstractContextManager[None]:
        """Make spans of batches meanwhile."""
        return nullcontext() if self._spans is None else observe_batches(self._spans.add)

    def start(self) -> None:
        """Start the thread, which exports first after an interval."""
        self._thread.start()

    def close(self) -> None:
        """Export what is new, and end."""
        self._stopped.set()
        self._thread.join(_END_SECONDS)
        for channel in self._channels.values():
            # aborts the retries of a thread that is not done
            channel.close()
        self._thread.join(_ABORT_SECONDS)
        for channel in self._channels.values():
            channel.report_end()

    def _run(self) -> None:
        while not self._stopped.wait(self._interval):
            self._export()
        # the batches of a run since the last export
        self._export()

    def _export(self) -> None:
        parts: dict[Signal, Callable[[Channel], None]] = {Signal.METRICS: self._send_metrics, Signal.TRACES: self._send_spans}
        for signal, channel in self._channels.items():
            try:
                parts[signal](channel)
                channel.end_pass()
            except Exception as error:  # a thread that ends would export nothing more
                reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
                if reason != self._reported:
                    self._reported = reason
                    self._progress(f"otlp: {signal} cannot be exported: {reason}")

    def _send_metrics(self, channel: Channel) -> None:
        self._site.refresh()
        found = [(self._resources[cluster], series) for cluster, series in self._site.series() if series]
        left = sum(len(each) for _, series in found for each in series)
        for request, count in metrics_requests(found, self._scope, time.time_ns()):
            if not channel.send(request):
                break
            left -= count
        # the rest of a snapshot is not tried: the next one has newer values
        channel.drop(left)

    def _send_spans(self, channel: Channel) -> None:
        assert self._spans is not None, "its channel is made with it"
        spans, overflown = self._spans.waiting.take()
        channel.drop(overflown)
        for start in range(0, len(spans), _SPANS):
            if not channel.send(spans[start : start + _SPANS]):
                channel.drop(len(spans) - start)
                break

    def _dropped_series(self) -> Iterator[MetricSeries]:
        for signal, channel in self._channels.items():
            yield MetricSeries.of(_DROPPED[signal], {}, (channel.dropped,))
