"""Batches as traces: a trace per batch, with a span per phase."""

import threading

from opentelemetry.context import Context
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.trace import Span, Status, StatusCode, set_span_in_context

from pipelines.runtime.phases import EndedBatch
from pipelines.runtime.terminal_text import masked

#: Spans that wait for the next export; about a hundred batches.
_WAITING = 2_000
_MESSAGE_CHARACTERS = 1_000


class WaitingSpans(SpanProcessor):
    """Ended spans until the next export, a bounded number of them. For any number of threads."""

    def __init__(self, most: int = _WAITING) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._spans: list[ReadableSpan] = []
        self._dropped = 0

    def on_end(self, span: ReadableSpan) -> None:
        """Keep a span, or count it as dropped."""
        if span.context is None or not span.context.trace_flags.sampled:
            return
        with self._lock:
            if len(self._spans) < self._most:
                self._spans.append(span)
            else:
                self._dropped += 1

    def take(self) -> tuple[list[ReadableSpan], int]:
        """The spans that wait, and the number of those that were dropped since the last call."""
        with self._lock:
            spans, dropped = self._spans, self._dropped
            self._spans, self._dropped = [], 0
            return spans, dropped


class BatchSpans:
    """Makes the spans of ended batches."""

    def __init__(self, resource: Resource, version: str) -> None:
        self.waiting = WaitingSpans()
        # without limits of time: the spans of a batch are made when it has ended
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(self.waiting)
        self._tracer = self._provider.get_tracer("grouplake", version)

    def add(self, batch: EndedBatch) -> None:
        """Make the trace of a batch. It takes about a tenth of a millisecond per phase, in the thread of the batch."""
        root = self._tracer.start_span("batch", Context(), start_time=batch.started_ns)
        if batch.batch_id is not None:
            root.set_attribute("grouplake.batch_id", batch.batch_id)
            root.set_attribute("grouplake.records_read", batch.records_read)
            root.set_attribute("grouplake.records_kept", batch.records_kept)
        inside = set_span_in_context(root, Context())
        for phase in batch.phases:
            span = self._tracer.start_span(phase.name, inside, start_time=phase.started_ns)
            if phase.rows is not None:
                span.set_attribute("grouplake.rows", phase.rows)
            if phase.has_failed and batch.error is not None:
                _record(span, batch.error, phase.ended_ns)
            span.end(phase.ended_ns)
        if batch.error is not None:
            _record(root, batch.error, batch.ended_ns)
        root.end(batch.ended_ns)


def _record(span: Span, error: BaseException, at_ns: int) -> None:
    """Record an error by its type and message, as `record_exception` does, but bounded and without a stack."""
    text = masked(" ".join(str(error).split()))[:_MESSAGE_CHARACTERS]
    event = {"exception.type": type(error).__qualname__, "exception.message": text}
    span.add_event("exception", event, at_ns)
    span.set_status(Status(StatusCode.ERROR, text))
