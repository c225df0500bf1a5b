"""Makes spans of the work of a process on frames and events (`pipeline/traces.py`)."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from camgraph.pipeline.items import Item
from camgraph.pipeline.messages import Event, Message
from camgraph.pipeline.monitoring.metrics import Counters
from camgraph.pipeline.stage import Logger
from camgraph.pipeline.traces import Step, is_sampled, root_span, steps_of, trace_id, with_steps


class Span(NamedTuple):
    """A span of a trace. `parent`: the number of the span around it, "" for the root; `number`: its own, "" for any."""

    name: str
    trace: str
    number: str
    parent: str
    begun_ns: int
    ended_ns: int
    attributes: Mapping[str, str | int]


class SpanExporter(Protocol):
    """Takes spans, and must not block."""

    def add(self, span: Span) -> None: ...

    def close(self) -> None: ...


class Tracer:
    """Makes spans of the calls, commits and deliveries of a process. May be used from several threads."""

    def __init__(self, share: float, exporter: SpanExporter | None) -> None:
        """`exporter`: None in a process without events."""
        self._share, self._exporter = share, exporter

    def called(self, stage: str, items: Sequence[Item], outputs: list[Message], took_ns: int) -> None:
        """A call of a stage has ended: note it in its outputs, and export the spans of its events."""
        ended_ns = time.time_ns()
        step = Step(stage, ended_ns - took_ns, ended_ns)
        before = {item.stamp[:3]: steps_of(item.payload) for item in items if not isinstance(item.payload, Event)}
        for number, output in enumerate(outputs):
            steps = (*before.get(output.stamp[:3], ()), step)
            if isinstance(output, Event):
                self._export(_of_event(output, steps))
            else:
                outputs[number] = with_steps(output, steps)
        for item in items:
            if isinstance(item.payload, Event):
                self._export([_behind(item.payload, f"deliver {stage}", step)])

    def made(self, stage: str, outputs: Iterable[Message]) -> None:
        """Begin the traces of events that come from time and not from a frame."""
        now_ns = time.time_ns()
        for output in outputs:
            if isinstance(output, Event):
                self._export(_of_event(output, [Step(stage, now_ns, now_ns)]))

    def committed(self, items: Sequence[Item], took_ns: int) -> None:
        """Export the commits of these events by the outbox."""
        ended_ns = time.time_ns()
        step = Step("outbox", ended_ns - took_ns, ended_ns)
        for item in items:
            if isinstance(item.payload, Event):
                self._export([_behind(item.payload, "commit", step)])

    def _export(self, spans: Iterable[Span]) -> None:
        if self._exporter is not None:
            for span in spans:
                if is_sampled(span.trace, self._share):
                    self._exporter.add(span)

    def close(self) -> None:
        """Export the remaining spans, within a moment."""
        if self._exporter is not None:
            self._exporter.close()


class TraceReports:
    """Counts spans, and logs once if they do not arrive, and once when they arrive again."""

    def __init__(self, counters: Counters, log: Logger) -> None:
        self._counters, self._log = counters, log
        self._lost = 0

    def report(self, spans: int, arrived: bool) -> None:
        """Count spans that were sent, and spans that were lost."""
        self._counters.add("spans_sent" if arrived else "spans_lost", "", spans)
        if arrived and self._lost:
            self._log.info("traces_arrive_again", lost=self._lost)
        elif not arrived and not self._lost:
            self._log.warning("traces_do_not_arrive", then="events go on; spans are lost until the collector answers")
        self._lost = 0 if arrived else self._lost + spans


def _of_event(event: Event, steps: Sequence[Step]) -> Iterator[Span]:
    """The spans of an event: the root, and the steps within it."""
    trace, root = trace_id(event.own_id), root_span(event.own_id)
    facts: dict[str, str | int] = {
        "camgraph.camera": event.stamp.camera,
        "camgraph.incident": event.incident,
        "camgraph.phase": event.phase,
        "camgraph.frame": event.stamp.seq,
        "camgraph.epoch": event.stamp.epoch,
    }
    yield Span("event", trace, root, "", steps[0].begun_ns, steps[-1].ended_ns, facts)
    for step in steps:
        yield Span(step.stage, trace, "", root, step.begun_ns, step.ended_ns, {"camgraph.stage": step.stage})


def _behind(event: Event, name: str, step: Step) -> Span:
    facts: dict[str, str | int] = {"camgraph.stage": step.stage, "camgraph.camera": event.stamp.camera}
    if event.committed_ns:
        facts["camgraph.waited_ms"] = max(0, step.begun_ns - event.committed_ns) // 1_000_000
    return Span(name, trace_id(event.own_id), "", root_span(event.own_id), step.begun_ns, step.ended_ns, facts)
