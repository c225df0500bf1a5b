"""The graph of a trial has nothing that sends or writes, and reads its files as if they were live."""

from __future__ import annotations

import shutil
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camgraph.pipeline.errors import UserError
from camgraph.pipeline.graph import Graph, load_graph, plan_of
from camgraph.pipeline.plan import RunPlan
from camgraph.tools.commands.planning.trial_graph import amend_for_trial, copies_of, require_plannable, sample_of
from camgraph.tools.lab import blinking, light_model

GRAPH = """
version: 1
name: yard
processes: separate
outbox: {keep_days: 2}
camera_defaults: {url: clip.mp4, duration_s: 3, max_fps: 8}
cameras:
  a: {start_s: 1}
  b: {max_fps: 2}
  c: {url: "rtsp://127.0.0.1:9/c", duration_s: 60}
stages:
  capture: {use: capture}
  prepare: {use: preprocess, from: {stage: capture, policy: drop_oldest}, with: {size: [64, 64]}}
  infer: {use: infer, from: prepare, threads: 2, with: {model: light.onnx}}
  people: {use: decode, from: infer, with: {format: yolo_pose, keypoints: 17}}
  tracks: {use: track, from: people}
  actions: {use: rules, from: tracks, with: {rules: [{id: seen, when: score > 0.5}]}}
  more: {use: rules, from: tracks, with: {rules: [{id: also, when: score > 0.6}]}}
  log: {use: sink_jsonl, from: events, with: {path: events.jsonl}}
  footage: {use: sink_footage, from: actions, with: {path: footage}}
  mail: {use: sink_command, from: actions, with: {command: [/bin/false]}}
  page: {use: serve, from: events}
  rows: {use: sink_tracks, from: tracks, with: {path: "{camera}.jsonl"}}
  heat: {use: sink_heatmap, from: tracks, with: {path: "{camera}.json"}}
  videos:
    use: sink_video
    from: {frames: {stage: capture, policy: drop_oldest}, tracks: tracks}
    with: {path: "{camera}.mp4"}
"""


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    light_model.write_model(tmp_path / "light.onnx")
    blinking.write_clip(tmp_path / "clip.mp4")
    (tmp_path / "g.yaml").write_text(GRAPH)
    return load_graph(tmp_path / "g.yaml")


def trial_of(graph: Graph, cameras: dict[str, str], max_fps: float | None = None) -> RunPlan:
    amend = amend_for_trial(graph, cameras, max_fps)
    return plan_of(load_graph(graph.path, name="trial", further=tuple(graph.cameras), amend=amend))


def uses(plan: RunPlan) -> dict[str, str]:
    return {stage.name: stage.use for process in plan.processes for stage in process.stages}


@pytest.mark.processes
def test_every_sink_is_replaced_and_all_else_stays(graph: Graph) -> None:
    found = uses(trial_of(graph, {"a": "a"}))
    sinks = ("log", "footage", "mail", "page", "rows", "heat", "videos")
    assert [found.pop(name) for name in sinks] == ["sink_null"] * len(sinks)
    assert found == {
        **{"capture": "capture", "prepare": "preprocess", "infer": "infer", "people": "decode", "tracks": "track"},
        **{"actions": "rules", "more": "rules"},
    }


@pytest.mark.slow
def test_the_demo(tmp_path: Path) -> None:
    for name in ("demo.yaml", "demo_rules.yaml"):
        shutil.copy(Path(__file__).parents[4] / "configs" / name, tmp_path)
    try:
        graph = load_graph(tmp_path / "demo.yaml")
    except UserError as error:
        pytest.skip(f"nothing is pulled: {error}")
    found = uses(trial_of(graph, {name: name for name in graph.cameras}))
    assert {name for name, use in found.items() if use == "sink_null"} == {"log", "alarm", "videos"}
    assert "outbox" not in found.values()


def test_files_come_as_if_they_were_live(graph: Graph) -> None:
    settings = trial_of(graph, {"a": "a", "b": "b", "c": "c", "copy-0": "a"}).camera_settings
    file = {"url": "clip.mp4", "realtime": True, "loop": True}
    assert settings["a"] == settings["copy-0"] == {**file, "max_fps": 8, "start_s": 1}
    assert settings["b"] == {**file, "max_fps": 2}
    assert settings["c"] == {"url": "rtsp://127.0.0.1:9/c", "duration_s": 60, "max_fps": 8}


def test_max_fps_is_the_most(graph: Graph) -> None:
    settings = trial_of(graph, {"a": "a", "b": "b"}, 4.0).camera_settings
    assert (settings["a"]["max_fps"], settings["b"]["max_fps"]) == (4, 2)


def test_only_files_are_read_several_times(graph: Graph) -> None:
    assert copies_of(graph, ["a", "b"], 5) == {"copy-0": "a", "copy-1": "b", "copy-2": "a"}
    assert copies_of(graph, ["a", "c"], 5) == {}


def test_one_process_is_no_plan(tmp_path: Path, graph: Graph) -> None:
    (tmp_path / "g.yaml").write_text(GRAPH.replace("separate", "one").replace("page: {use: serve, from: events}", ""))
    with pytest.raises(UserError, match="processes: one"):
        require_plannable(load_graph(tmp_path / "g.yaml"))


def test_photographs_have_no_rate(tmp_path: Path, graph: Graph) -> None:
    folder = tmp_path / "photographs"
    folder.mkdir()
    shutil.copy(Path(__file__).parents[4] / "docs" / "cost_curves.png", folder / "one.png")
    (tmp_path / "g.yaml").write_text(
        GRAPH.replace("a: {start_s: 1}", "a: {url: photographs}").replace("duration_s: 3, ", "")
    )
    with pytest.raises(UserError, match="a is a folder of photographs"):
        require_plannable(load_graph(tmp_path / "g.yaml"))


@given(st.lists(st.text(min_size=1), unique=True), st.integers(1, 20))
def test_a_sample_is_spread_evenly(names: list[str], most: int) -> None:
    chosen = sample_of(names, most)
    assert len(chosen) == min(most, len(names))
    places = [names.index(name) for name in chosen]
    steps = {later - place for place, later in pairwise(places)}
    assert not steps or max(steps) - min(steps) <= 1
    assert places[:1] == [0][: len(names)]
