"""Traces, as a collector gets them: one of each event, with the steps of its frame and of its delivery."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from camgraph_test_stages.collector import Collector
from camgraph_test_stages.waiting import until
from structlog.testing import capture_logs

from camgraph.pipeline.errors import GraphError
from camgraph.pipeline.graph import load_plan
from camgraph.pipeline.messages import Message
from camgraph.pipeline.monitoring.trace_export import OtlpExporter
from camgraph.pipeline.monitoring.tracer import Span
from camgraph.pipeline.plan import RunPlan
from camgraph.pipeline.testing import run_graph, stamp
from camgraph.pipeline.traces import (
    MOST_STEPS,
    Step,
    captured,
    is_sampled,
    root_span,
    steps_from_wire,
    steps_of,
    trace_id,
    traceparent,
    with_steps,
)
from camgraph.stages.events import digest
from camgraph.tools.lab.blinking import write_clip
from camgraph.tools.lab.light_model import SIDE, write_model

GRAPH = """
version: 1
name: traced
processes: PLACEMENT
tracing: {endpoint: "http://127.0.0.1:PORT", share: SHARE, headers: {X-Token: a token of the collector}}
cameras: {hall: {url: cam.mp4}}
stages:
  capture: {use: capture}
  prepare: {use: preprocess, from: capture, with: {size: [SIDE, SIDE]}}
  infer: {use: infer, from: prepare, with: {model: light.onnx}}
  people: {use: decode_yolo_pose, from: infer}
  tracks: {use: track, from: people, with: {confirm_s: 0}}
  actions: {use: rules, from: tracks, with: {rules: [{id: seen, when: score > 0.3, hold: 0.2s}]}}
  log: {use: sink_jsonl, from: actions, with: {path: log.jsonl}}
""".replace("SIDE", str(SIDE))
WAY = ["capture", "prepare", "infer", "people", "tracks", "actions"]


@pytest.fixture(autouse=True)
def no_thread_stays() -> Iterator[None]:
    """That of a collector that does not answer ends as well, a few seconds after its run.

    The library's retries take numbers of `random`, which tests of Hypothesis afterwards would notice.
    """
    yield
    until(lambda: all(thread.name != "traces" for thread in threading.enumerate()))


@pytest.fixture
def collector() -> Iterator[Collector]:
    one = Collector()
    yield one
    one.end()


def written(folder: Path, port: int, *, placement: str = "separate", share: float = 1) -> Path:
    write_clip(folder / "cam.mp4")
    write_model(folder / "light.onnx", bright=110.0)
    text = GRAPH.replace("PORT", str(port)).replace("PLACEMENT", placement).replace("SHARE", str(share))
    (folder / "graph.yaml").write_text(text)
    return folder / "graph.yaml"


def plan_of(folder: Path, port: int, **more: Any) -> RunPlan:
    return load_plan(written(folder, port, **more))


def events_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("placement", ["separate", "compact", "one"])
def test_a_trace_leads_from_the_packet_to_the_sink(tmp_path: Path, collector: Collector, placement: str) -> None:
    run_graph(plan_of(tmp_path, collector.port, placement=placement))
    events = events_of(tmp_path)
    assert len(events) >= 2
    found = collector.traces()
    assert found.keys() == {event["id"] for event in events}
    for event in events:
        spans = found[event["id"]]
        assert event["traceparent"] == f"00-{event['id']}-{spans['event'].span_id.hex()}-01"
        assert not spans["event"].parent_span_id
        inside = {name: span for name, span in spans.items() if name != "event"}
        assert {span.parent_span_id for span in inside.values()} == {spans["event"].span_id}
        assert {"commit", "deliver log"} <= inside.keys()
        way = [inside[name] for name in WAY if name in inside]
        if event["data"]["phase"] == "start":
            assert len(way) == len(WAY)
        moments = [moment for span in way for moment in (span.start_time_unix_nano, span.end_time_unix_nano)]
        assert moments == sorted(moments)
        assert spans["event"].start_time_unix_nano == moments[0]
        facts = {one.key: one.value for one in spans["event"].attributes}
        assert facts["camgraph.camera"].string_value == "hall"
        assert facts["camgraph.incident"].string_value == event["data"]["incident"]
    assert all(headers["X-Token"] == "a token of the collector" for headers in collector.headers)


def test_of_some_events_there_are_traces_and_each_tells_whether(tmp_path: Path, collector: Collector) -> None:
    run_graph(plan_of(tmp_path, collector.port, share=0.5))
    flags = {event["id"]: event["traceparent"][-2:] for event in events_of(tmp_path)}
    assert collector.traces().keys() == {event for event, flag in flags.items() if flag == "01"}


def test_without_tracing_nothing_is_told(tmp_path: Path, collector: Collector) -> None:
    path = written(tmp_path, collector.port)
    path.write_text("\n".join(line for line in path.read_text().splitlines() if not line.startswith("tracing")))
    run_graph(load_plan(path))
    assert all("traceparent" not in event for event in events_of(tmp_path))
    assert collector.headers == []


@pytest.mark.parametrize(("status", "placement"), [(503, "one"), (0, "separate"), (0, "one")])
def test_a_collector_that_does_not_take_them_costs_no_event(tmp_path: Path, status: int, placement: str) -> None:
    collector = Collector(status)
    try:
        with capture_logs() as logs:
            outcome, _ = run_graph(plan_of(tmp_path, collector.port, placement=placement))
    finally:
        collector.end()
    assert outcome.status == 0
    assert len(events_of(tmp_path)) >= 2
    assert collector.asked.is_set()
    if placement == "one":
        assert [one["event"] for one in logs].count("traces_do_not_arrive") == 1
    assert "a token of the collector" not in str(logs)


def test_nobody_at_the_address_costs_no_event(tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        outcome, _ = run_graph(plan_of(tmp_path, probe.getsockname()[1], placement="one"))
    assert outcome.status == 0
    assert len(events_of(tmp_path)) >= 2


def test_more_spans_than_wait_are_left_out_and_told() -> None:
    collector, told = Collector(0), []
    exporter = OtlpExporter(f"http://127.0.0.1:{collector.port}", {}, "site", "p", lambda *values: told.append(values))
    span = Span("event", digest(1), digest(1)[:16], "", 1, 2, {})
    exporter.add(span)
    collector.asked.wait()
    for _ in range(2100):
        exporter.add(span)
    assert told == [(1, False)] * (2100 - 2048)
    exporter.close()
    assert told[-1] == (2049, False)
    collector.end()


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ("endpoint: localhost:4318", "tracing.endpoint"),
        ('endpoint: "http://user:password@host"', "tracing.endpoint"),
        ('{endpoint: "http://host", share: 2}', "tracing.share"),
        ('{endpoint: "http://host", shares: 1}', "shares"),
        ("{}", "`endpoint` is missing"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, values: str, why: str) -> None:
    path = written(tmp_path, 1)
    lines = path.read_text().splitlines()
    values = values if values.startswith("{") else f"{{{values}}}"
    path.write_text("\n".join(f"tracing: {values}" if line.startswith("tracing") else line for line in lines))
    with pytest.raises(GraphError) as caught:
        load_plan(path)
    assert why in str(caught.value)
    assert "password" not in str(caught.value)


def test_the_trace_of_an_event_has_its_id() -> None:
    event = digest("any")
    assert trace_id(event) == event
    assert root_span(event) == event[:16]
    for other in ("", "0" * 32, "A" * 32, "any id of others", "x" * 5000):
        assert len(trace_id(other)) == 32
        assert int(trace_id(other), 16)
        assert int(root_span(other), 16)
    assert root_span("0" * 16 + "1" * 16) != "0" * 16
    assert traceparent(event, 1) == f"00-{event}-{event[:16]}-01"


def test_a_share_of_the_events_is_sampled() -> None:
    ids = [digest(number) for number in range(4000)]
    assert all(is_sampled(one, 1) for one in ids)
    assert 0.2 < sum(is_sampled(one, 0.25) for one in ids) / len(ids) < 0.3


def test_who_passes_a_message_on_does_not_change_that_of_others() -> None:
    first = with_steps(Message(stamp()), [Step("a", 1, 2)])
    second = with_steps(first, [*steps_of(first), Step("b", 3, 4)])
    assert [step.stage for step in steps_of(first)] == ["a"]
    assert [step.stage for step in steps_of({"x": first, "y": second})] == ["a", "b"]
    many = with_steps(Message(stamp()), [Step(str(number), number, number) for number in range(200)])
    assert len(steps_of(many)) == MOST_STEPS


def test_a_frame_begins_when_its_packet_came() -> None:
    [step] = steps_of(captured(Message(stamp()), "capture"))
    assert (step.stage, step.begun_ns < step.ended_ns) == ("capture", True)


@pytest.mark.parametrize(
    "wrong", [1, "x", [1], [["a", 1]], [["a", 1, 2.0]], [[1, 1, 1]], [["a", 1, True]], [["a", 1, 2]] * 65]
)
def test_what_are_no_steps_is_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match="no step"):
        steps_from_wire(wrong)
