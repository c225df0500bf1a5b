"""Sends spans to a collector by OTLP over HTTP, with the exporter of OpenTelemetry (the extra `tracing`).

A thread of its own sends them. It keeps so many; those that come while they do not arrive are dropped, counted and
logged, and neither events nor the end of the process wait for them. (The SDK's own batches do not report the spans that
they drop, and wait at the end for as long as the collector takes.)
"""

from __future__ import annotations

import logging
import queue
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.trace import SpanContext, SpanKind, TraceFlags

from camgraph.pipeline.monitoring.tracer import Span

_MOST_WAITING, _MOST_AT_ONCE = 2048, 256
_GATHER_S = 0.5
_TIMEOUT_S = 5
_CLOSE_S = 2.0
_PATH = "/v1/traces"

Report = Callable[[int, bool], None]
"""Called with a number of spans, and whether they have arrived. From any thread."""


class OtlpExporter:
    """Sends spans to a collector. `site` and `process` name the run and the process in each span."""

    def __init__(self, endpoint: str, headers: Mapping[str, str], site: str, process: str, report: Report) -> None:
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)  # `report` says it, once and in our words
        self._resource = Resource({"service.name": "camgraph", "service.namespace": site, "camgraph.process": process})
        url = endpoint.rstrip("/")
        url = url if url.endswith(_PATH) else url + _PATH
        self._exporter = OTLPSpanExporter(url, headers=dict(headers), timeout=_TIMEOUT_S)
        self._report = report
        self._on_the_way = 0
        self._gave_up = False
        self._waiting: queue.Queue[Span | None] = queue.Queue(_MOST_WAITING)
        self._thread = threading.Thread(target=self._send, name="traces", daemon=True)
        self._thread.start()

    def add(self, span: Span) -> None:
        """See `pipeline.monitoring.tracer.SpanExporter`."""
        try:
            self._waiting.put_nowait(span)
        except queue.Full:
            self._report(1, False)

    def close(self) -> None:
        """Send what is left, as far as it goes within two seconds."""
        until_s = time.monotonic() + _CLOSE_S
        with suppress(queue.Full):
            self._waiting.put(None, timeout=_CLOSE_S)
        self._thread.join(max(0.0, until_s - time.monotonic()))
        if self._thread.is_alive():
            self._give_up()

    def _give_up(self) -> None:
        self._gave_up = True
        with self._waiting.mutex:
            left = sum(span is not None for span in self._waiting.queue) + self._on_the_way
        self._exporter.shutdown()  # it tries no more; what is on the way ends after `_TIMEOUT_S`
        if left:
            self._report(left, False)

    # ---- in the thread

    def _send(self) -> None:
        is_open = True
        while is_open and not self._gave_up:
            spans, is_open = self._gathered()
            self._on_the_way = len(spans)
            if spans:
                arrived = self._exporter.export([self._readable(span) for span in spans]) is SpanExportResult.SUCCESS
                if not self._gave_up:
                    self._report(len(spans), arrived)

    def _gathered(self) -> tuple[list[Span], bool]:
        """The next spans, and whether more may come. Waits for the first of them, and for others a moment."""
        found: list[Span] = []
        until_s = 0.0
        while len(found) < _MOST_AT_ONCE:
            try:
                span = self._waiting.get(timeout=max(0.0, until_s - time.monotonic()) if found else None)
            except queue.Empty:
                break
            if span is None:
                return found, False
            until_s = until_s or time.monotonic() + _GATHER_S
            found.append(span)
        return found, True

    def _readable(self, span: Span) -> ReadableSpan:
        trace, number = int(span.trace, 16), int(span.number, 16) if span.number else _any_number()
        facts: dict[str, Any] = dict(span.attributes)
        return ReadableSpan(
            name=span.name,
            context=_context(trace, number),
            parent=_context(trace, int(span.parent, 16)) if span.parent else None,
            resource=self._resource,
            attributes=facts,
            kind=SpanKind.INTERNAL,
            start_time=span.begun_ns,
            end_time=span.ended_ns,
        )


def _any_number() -> int:
    """A number for a span, never 0: that means none."""
    return secrets.randbits(64) or 1


def _context(trace: int, span: int) -> SpanContext:
    return SpanContext(trace, span, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))
