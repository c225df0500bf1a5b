"""Which stages share a process, whose cameras are whose, and that every message finds its reader."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from camgraph.pipeline.graph import Graph, parse_graph, placement, plan_of
from camgraph.pipeline.plan import EVERY_CAMERA, ProcessPlan, RunPlan, from_wire, to_wire
from camgraph.pipeline.supervision.membership import same_structure
from camgraph.stages.video.capture import Camera, Capture

Parse = Callable[..., Graph]

GRAPH = """\
version: 1
processes: separate
cameras: {a: , b: , c: }
stages:
  count: {use: count_source}
  thin: {use: thin, from: count}
  model: {use: null_model, from: thin, batch: {max: 8}}
  twice: {use: double, from: model}
  sum: {use: running_sum, from: twice}
  actions: {use: emit, from: sum}
  log: {use: collect_events, from: actions, with: {path: x}}
  end: {use: collect, from: twice, with: {path: y}}
"""


def placed(graph: Graph) -> dict[str, tuple[str, str]]:
    """Process -> its stages and its cameras, in short."""
    return {
        process.name: (" ".join(stage.name for stage in process.stages), "".join(process.cameras))
        for process in plan_of(graph).processes
    }


def test_separate_gives_every_stage_its_own(parse: Parse) -> None:
    assert placed(parse(GRAPH)) == {
        "count.a": ("count", "a"),
        "count.b": ("count", "b"),
        "count.c": ("count", "c"),
        "thin.0": ("thin", "abc"),
        "model.0": ("model", "abc"),
        "twice.0": ("twice", "abc"),
        "sum.0": ("sum", "abc"),
        "actions.0": ("actions", "abc"),
        "outbox.0": ("outbox", "abc"),
        "log.0": ("log", "*"),
        "end.0": ("end", "abc"),
    }


def test_compact_makes_chains(parse: Parse) -> None:
    """`thin` runs beside each camera; the model has a thread of its own and begins a chain, which may fork."""
    assert placed(parse(GRAPH.replace("separate", "compact"))) == {
        "count.a": ("count thin", "a"),
        "count.b": ("count thin", "b"),
        "count.c": ("count thin", "c"),
        "model.0": ("model twice sum actions end", "abc"),
        "outbox.0": ("outbox", "abc"),
        "log.0": ("log", "*"),
    }


def test_one_is_one(parse: Parse) -> None:
    plan = plan_of(parse(GRAPH.replace("separate", "one")))
    assert plan.in_process
    (process,) = plan.processes
    assert process.sources == ("count",)
    assert [stage.name for stage in process.stages] == [
        "count", "thin", "model", "twice", "sum", "actions", "end", "outbox", "log"
    ]  # fmt: skip
    assert all(edge.inner for edge in process.edges)
    assert process.routes == {}


@pytest.mark.parametrize("processes", ["separate", "compact"])
def test_cameras_are_dealt_out_in_turn(parse: Parse, processes: str) -> None:
    text = GRAPH.replace("separate", processes).replace("from: thin,", "from: thin, workers: 2,")
    found = placed(parse(text))
    assert (found["model.0"][1], found["model.1"][1]) == ("ac", "b")
    assert found["end.0"] == ("end", "abc"), "a sink does not multiply by itself"


def test_a_chain_takes_on_the_workers_of_its_first_stage(parse: Parse) -> None:
    text = GRAPH.replace("separate", "compact").replace("from: thin,", "from: thin, workers: 2,")
    assert placed(parse(text))["model.1"] == ("model twice sum actions", "b")
    other = text.replace("sum: {use: running_sum,", "sum: {use: running_sum, workers: 1,")
    assert placed(parse(other))["model.1"] == ("model twice", "b")


def test_there_are_never_more_workers_than_cameras(parse: Parse) -> None:
    found = placed(parse(GRAPH.replace("from: thin,", "from: thin, workers: 9,")))
    assert [name for name in found if name.startswith("model")] == ["model.0", "model.1", "model.2"]


def test_a_source_may_share_processes_among_cameras(parse: Parse) -> None:
    found = placed(parse(GRAPH.replace("count_source}", "count_source, workers: 2}")))
    assert (found["count.0"], found["count.1"]) == (("count", "ac"), ("count", "b"))


def test_a_group_is_made_where_the_graph_says(parse: Parse) -> None:
    text = GRAPH.replace("from: model}", "from: model, group: mid}").replace("from: twice}", "from: twice, group: mid}")
    for processes in ("separate", "compact"):
        found = placed(parse(text.replace("separate", processes)))
        assert found["mid.0"] == ("twice sum", "abc")
        assert "actions.0" in found, "a group holds those that name it, and no others"


@pytest.mark.parametrize(
    ("stage", "changed", "expected"),
    [
        (
            "log",
            "group: mid, use",
            "log cannot share the process of mid: a stage that takes Events has a process of its own",
        ),
        (
            "model",
            "group: mid, use",
            "model cannot share the process of mid: it has threads of its own, which only the first stage of a group "
            "can have",
        ),
        (
            "end",
            "group: mid, workers: 2, use",
            "end cannot share the process of mid: it has 2 workers, and the group has a process per camera",
        ),
        (
            "end",
            "group: mid, use",
            "end cannot share the process of mid: it is a sink, and the group has a process per camera",
        ),
        (
            "sum",
            "group: mid, use",
            "sum cannot share the process of mid: it reads from twice, which is not in the group before it",
        ),
        (
            "sum",
            "group: outbox, use",
            "a stage outside of the group is called `outbox`: choose another name",
        ),
        ("sum", "group: end, use", "a stage outside of the group is called `end`: choose another name"),
    ],
)
def test_what_cannot_share_is_told(mistakes: Callable[..., list[str]], stage: str, changed: str, expected: str) -> None:
    grouped = GRAPH.replace("count: {use", "count: {group: mid, use").replace(
        "end: {use: collect, from: twice", "end: {use: collect, from: count"
    )
    line = next(n for n, line in enumerate(grouped.splitlines(), 1) if line.startswith(f"  {stage}:"))
    column = len(f"  {stage}: {{group: ") + 1
    text = grouped.replace(f"{stage}: {{use", f"{stage}: {{{changed}")
    assert mistakes(text) == [f"{line}:{column}: stages.{stage}.group: {expected}"]


# ---- what holds for every graph and placement


@st.composite
def graphs(draw: st.DrawFn) -> dict[str, Any]:
    """Random graphs of counting stages: forks, merges, joins, events, workers, threads and batches."""
    stages: dict[str, Any] = {"count": {"use": "count_source"}}
    if draw(st.booleans()):
        stages["count"]["workers"] = draw(st.integers(1, 4))
    numbers = ["count"]
    events: list[str] = []
    for n in range(draw(st.integers(1, 9))):
        use = draw(st.sampled_from(["double", "thin", "running_sum", "null_model", "pair", "emit"]))
        entry: dict[str, Any] = {"use": use}
        if use == "pair":
            entry["from"] = {"left": draw(st.sampled_from(numbers)), "right": draw(st.sampled_from(numbers))}
        else:
            ends = draw(st.lists(st.sampled_from(numbers), min_size=1, max_size=2, unique=True))
            entry["from"] = ends[0] if len(ends) == 1 else ends
        if draw(st.booleans()):
            entry["workers"] = draw(st.integers(1, 4))
        if use == "null_model":
            entry["threads"] = draw(st.integers(1, 3))
            entry["batch"] = {"max": draw(st.integers(1, 16))}
        stages[f"s{n}"] = entry
        (events if use == "emit" else numbers).append(f"s{n}")
    read = {end for s in stages.values() for end in _ends(s.get("from"))}
    for name in numbers:
        if name not in read:
            stages[f"end_{name}"] = {"use": "collect", "from": name, "with": {"path": "x"}}
    if events:
        order = draw(st.sampled_from(["arrival", "time"]))
        stages["log"] = {"use": "collect_events", "from": "events", "with": {"path": "y", "order": order}}
    cameras = {f"c{n}": {"live": draw(st.just(False))} for n in range(draw(st.integers(1, 5)))}
    processes = draw(st.sampled_from(["separate", "compact", "one"]))
    return {"version": 1, "processes": processes, "cameras": cameras, "stages": stages}


def _ends(given_from: Any) -> list[str]:
    if isinstance(given_from, dict):
        return list(given_from.values())
    return given_from if isinstance(given_from, list) else [given_from] if given_from else []


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(graphs())
def test_every_message_finds_its_reader(tmp_path: Path, data: dict[str, Any]) -> None:
    graph = parse_graph(yaml.safe_dump(data, sort_keys=False), "g.yaml", base_folder=tmp_path, environ={})
    plan = plan_of(graph)
    _each_stage_has_each_camera_once(plan, data)
    by_name = {process.name: process for process in plan.processes}
    for process in plan.processes:
        assert from_wire(to_wire(process)) == process
        assert process.window >= 4
        _stages_are_in_order(process)
        _only_the_first_reads_from_outside(process)
        _routes_lead_to_the_reader(process, by_name)
    reads = {(end, name) for name, stage in data["stages"].items() for end in _ends(stage.get("from"))}
    edges = {(edge.sender, edge.reader) for process in plan.processes for edge in process.edges}
    assert {pair for pair in reads if pair[0] != "events"} == {pair for pair in edges if "outbox" not in pair}


def _each_stage_has_each_camera_once(plan: RunPlan, data: dict[str, Any]) -> None:
    places = [
        (stage.name, camera) for process in plan.processes for stage in process.stages for camera in process.cameras
    ]
    assert len(places) == len(set(places))
    sinks = {"log"} & data["stages"].keys() if not plan.in_process else set()
    names = {*data["stages"], *(["outbox"] if "log" in data["stages"] else [])} - sinks
    expected = {(name, camera) for name in names for camera in data["cameras"]}
    assert set(places) == expected | {(name, EVERY_CAMERA) for name in sinks}


def _stages_are_in_order(process: ProcessPlan) -> None:
    place = {stage.name: n for n, stage in enumerate(process.stages)}
    assert all(place[edge.sender] < place[edge.reader] for edge in process.edges if edge.inner)


def _only_the_first_reads_from_outside(process: ProcessPlan) -> None:
    assert {edge.reader for edge in process.incoming} <= {process.stages[0].name}
    assert all(stage.threads == 1 for stage in process.stages[1:]) or (
        len(process.sources) == 1 and not process.outgoing
    )


def _routes_lead_to_the_reader(process: ProcessPlan, by_name: dict[str, ProcessPlan]) -> None:
    assert set(process.routes) == {edge.name for edge in process.outgoing}
    assert not set(process.routes) & {edge.name for edge in process.edges if edge.inner}
    for edge in process.outgoing:
        route = process.routes[edge.name]
        assert set(route) == ({EVERY_CAMERA} if edge.sender == "outbox" else set(process.cameras))
        for camera, reader in route.items():
            assert edge.reader in {stage.name for stage in by_name[reader].stages}
            assert camera == EVERY_CAMERA or camera in by_name[reader].cameras
            assert edge in by_name[reader].incoming


@pytest.mark.parametrize(
    ("sharing", "live", "processes"),
    [("", False, 2), (", each: cameras", False, 200), (", cameras_per_process: 50", False, 4), ("", True, 200)],
)
def test_two_hundred_cameras(
    parse: Parse, monkeypatch: pytest.MonkeyPatch, sharing: str, live: bool, processes: int
) -> None:
    """Files share as many processes as there are cores, two here, and live cameras have a process each."""
    monkeypatch.setattr(placement, "usable_cores", lambda: 2)
    cameras = "".join(f"  cam{n}: {{frames: {n}, fps: 10, live: {live}}}\n" for n in range(200))
    text = GRAPH.replace("cameras: {a: , b: , c: }", f"cameras:\n{cameras}")
    plan = plan_of(parse(text.replace("use: count_source", f"use: count_source{sharing}")))
    assert len(plan.processes) == 8 + processes
    assert plan.camera_settings["cam199"] == {"frames": 199, "fps": 10, "live": live}


@pytest.mark.parametrize(("before", "after"), [(8, 9), (9, 8), (12, 13), (40, 11)])
def test_a_graph_with_more_or_fewer_files_can_be_reloaded(parse: Parse, before: int, after: int) -> None:
    def plan(files: int, sharing: str = "") -> RunPlan:
        cameras = "".join(f"  cam{n}: {{}}\n" for n in range(files))
        text = GRAPH.replace("cameras: {a: , b: , c: }", f"cameras:\n{cameras}")
        return plan_of(parse(text.replace("use: count_source", f"use: count_source{sharing}")))

    assert same_structure(plan(before), plan(after))
    assert not same_structure(plan(before), plan(after, ", cameras_per_process: 3"))


def test_a_few_files_have_a_process_each(parse: Parse) -> None:
    cameras = "".join(f"  cam{n}: {{}}\n" for n in range(8))
    plan = plan_of(parse(GRAPH.replace("cameras: {a: , b: , c: }", f"cameras:\n{cameras}")))
    assert sum(bool(process.sources) for process in plan.processes) == 8


def test_every_process_knows_the_priorities_of_its_cameras(parse: Parse) -> None:
    text = GRAPH.replace("{a: , b: , c: }", "{a: {priority: 3}, b: , c: {priority: '100'}}")
    plan = plan_of(parse(text.replace("from: thin, batch", "from: thin, workers: 2, batch")))
    known = {process.name: dict(process.priorities) for process in plan.processes}
    assert (known["model.0"], known["model.1"], known["sum.0"]) == ({"a": 3, "c": 100}, {}, {"a": 3, "c": 100})
    assert from_wire(to_wire(plan.processes[-1])) == plan.processes[-1]


@pytest.mark.parametrize(("settings", "waits"), [("", True), (", loop: true", False), (", realtime: true", False)])
def test_files_that_stand_for_cameras_wait_for_no_other(tmp_path: Path, settings: str, waits: bool) -> None:
    """One that begins again never ends: a file behind it would wait for ever."""
    assert Capture.takes_turns(Camera.model_validate(yaml.safe_load(f"{{url: a.mp4{settings}}}"))) == waits
