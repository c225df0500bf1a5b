from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from camgraph.pipeline.graph.reading import read_graph_file
from camgraph.pipeline.graph.report import Report
from camgraph.pipeline.graph.variables import substitute
from camgraph.pipeline.graph.yaml_source import load
from camgraph.tools.commands.watching.device import Device
from camgraph.tools.commands.watching.graph_text import Watch, graph_text
from camgraph.tools.commands.watching.models import PoseModel
from camgraph.tools.commands.watching.sources import WatchedCamera

CPU = Device(("cpu",), 1, 2)
GPU = Device(("cuda", "cpu"), 8, 2)
MULTIPOSE = PoseModel("asset:movenet-multipose.onnx")
YOLO = PoseModel("/m.onnx", (640, 480))
CAMERA = WatchedCamera("door", "/door.mp4", live=False)


def watch(**values: object) -> Watch:
    defaults = {"name": "w", "cameras": [CAMERA], "model": MULTIPOSE, "device": CPU, "rules": "/r.yaml", "events": "e"}
    return Watch(**{**defaults, **values})  # type: ignore[arg-type]


def test_the_standard_graph() -> None:
    assert graph_text(watch()) == (
        "# Made by `camgraph watch`. Keep it, change it, and run it with `camgraph run`.\n"
        "# Relative paths start at the folder of this file.\n"
        "version: 1\n"
        'name: "w"\n'
        "cameras:\n"
        '  door: {url: "/door.mp4"}\n'
        "stages:\n"
        "  capture: {use: capture}\n"
        "  prepare: {use: preprocess, from: capture, with: {size: native, max_side: 384}}\n"
        "  infer:   {use: infer, from: prepare, group: model, threads: 2, "
        'with: {model: "asset:movenet-multipose.onnx"}}\n'
        "  people:  {use: decode, from: infer, group: model}\n"
        "  tracks:  {use: track, from: people}\n"
        '  actions: {use: rules, from: tracks, with: {file: "/r.yaml"}}\n'
        '  log:     {use: sink_jsonl, from: actions, with: {path: "e"}}\n'
    )


def test_each_camera_may_have_its_own_size() -> None:
    text = graph_text(watch(model=PoseModel("m", max_side={"door": 384, "007": 256})))
    assert 'with: {size: native, max_side: {door: 384, "007": 256}}' in text
    assert yaml.safe_load(text)["stages"]["prepare"]["with"]["max_side"] == {"door": 384, "007": 256}


def test_two_sizes_are_two_looks_that_are_combined() -> None:
    stages = yaml.safe_load(graph_text(watch(model=PoseModel("m", max_side=768, near=256))))["stages"]
    assert [stages[f"{name}_picture"]["with"]["max_side"] for name in ("near", "far")] == [256, 768]
    assert stages["people"] == {"use": "combine_people", "from": {"near": "near_people", "far": "far_people"}}


def test_all_that_can_be_asked_for() -> None:
    cameras = [
        WatchedCamera("on", "${CAMERA_1_URL}", live=True, variables={"CAMERA_1_URL": "rtsp://v:ge/heim@h"}),
        WatchedCamera("1e3", "rtsp://v:${CAMERA_2_PASSWORD}@h", live=True, variables={"CAMERA_2_PASSWORD": "geheim"}),
    ]
    text = graph_text(
        watch(
            cameras=cameras,
            model=YOLO,
            device=GPU,
            overwrite=True,
            videos="v",
            tracks="t.{camera}.txt",
            max_fps=2.5,
            single_process=True,
        )
    )
    assert "geheim" not in text
    assert "heim@h" not in text
    assert "# Set CAMERA_1_URL in the environment: the address of on.\n" in text
    assert "# Set CAMERA_2_PASSWORD in the environment: the password, not percent-encoded, of 1e3.\n" in text
    reported = yaml.safe_load(text)
    assert reported["processes"] == "one"
    assert list(reported["cameras"]) == ["on", "1e3"]
    assert reported["camera_defaults"] == {"max_fps": 2.5}
    stages = reported["stages"]
    assert stages["prepare"]["with"] == {"size": [640, 480]}
    assert stages["infer"]["batch"] == {"max": 8}
    assert stages["infer"]["with"] == {"model": "/m.onnx", "providers": ["cuda", "cpu"]}
    assert stages["log"]["with"] == {"path": "e", "mode": "replace"}
    assert stages["videos"]["with"] == {"path": "v/{camera}.mp4", "trail_s": 3, "overwrite": True}
    assert stages["paths"]["with"] == {"path": "t.{camera}.txt", "overwrite": True}


def test_nothing_is_replaced_unless_told() -> None:
    stages = yaml.safe_load(graph_text(watch(videos="v", tracks="t.txt")))["stages"]
    assert stages["videos"]["with"] == {"path": "v/{camera}.mp4", "trail_s": 3}
    assert stages["paths"]["with"] == {"path": "t.txt"}
    assert stages["log"]["with"] == {"path": "e"}


@pytest.mark.parametrize(("live", "wanted"), [(True, "events"), (False, "actions")])
def test_log_reads_all_events_if_a_camera_is_live(live: bool, wanted: str) -> None:
    text = graph_text(watch(cameras=[replace(CAMERA, live=live)]))
    assert yaml.safe_load(text)["stages"]["log"]["from"] == wanted


@pytest.mark.parametrize("why", ["", "as asked for"])
def test_a_chosen_size_says_why(why: str) -> None:
    text = graph_text(watch(model=PoseModel("m", max_side=256, why=why)))
    assert ("# max_side is as asked for" in text) == bool(why)
    assert yaml.safe_load(text)["stages"]["prepare"]["with"] == {"size": "native", "max_side": 256}


printable = st.text(st.characters(exclude_categories=["C"]), min_size=1)


@given(printable, printable, printable)
def test_whatever_a_file_is_called_the_graph_means_it(rules: str, events: str, videos: str) -> None:
    text = graph_text(watch(rules=rules, events=events, videos=videos))
    report = Report(load(text, "g", {}))
    graph = read_graph_file(report)
    assert report.problems == []
    assert graph is not None
    reported = {name: entry.with_ or {} for name, entry in graph.stages.items()}
    assert reported["actions"]["file"] == rules
    assert reported["log"]["path"] == events
    assert reported["videos"]["path"] == videos + "/{camera}.mp4"


def test_an_input_that_is_escaped_already_is_left_so(tmp_path: Path) -> None:
    url = "/a$${HOME}.mp4"
    text = graph_text(watch(cameras=[WatchedCamera("a", url, live=False)]))
    assert substitute(yaml.safe_load(text)["cameras"]["a"]["url"], {}).text == "/a${HOME}.mp4"
