"""A classifier over windows of keypoints: from tracks to a rule, by hand and in a graph of real processes."""

from __future__ import annotations

import json
from math import exp
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from camgraph_test_stages.raised_hands import GAIN, write_raised_hands
from camgraph_test_stages.two_people import write_two_people

from camgraph.pipeline.errors import GraphError
from camgraph.pipeline.graph import load_plan
from camgraph.pipeline.graph.loading import Graph, parse_graph
from camgraph.pipeline.testing import feed, opened, run_graph
from camgraph.stages import testing
from camgraph.stages.messages import Labels, Tensor, Tracks
from camgraph.stages.people.add_labels import AddLabels
from camgraph.stages.people.classify import Classify
from camgraph.stages.people.infer import Infer
from camgraph.stages.people.keypoint_windows import KeypointWindows
from camgraph.stages.rules.rules import Rules

NOSE, LEFT_WRIST = 0, 9
GRAPH = """version: 1
name: gestures
cameras:
  front: {{url: clip.mp4}}
stages:
  capture:  {{use: capture}}
  prepare:  {{use: preprocess, from: capture}}
  pose:     {{use: infer, from: prepare, with: {{model: pose.onnx}}}}
  people:   {{use: decode, from: pose}}
  tracks:   {{use: track, from: people}}
  windows:  {{use: {windows}}}
  actions:  {{use: infer, from: windows, batch: {{max: 8}}, with: {{model: actions.onnx{infer}}}}}
  kinds:    {{use: classify, from: actions}}
  labelled: {{use: add_labels, from: {{tracks: tracks, labels: kinds}}}}
  judged:   {{use: rules, from: labelled, with: {{rules: [{{id: gesture, when: "{when}", for: 0.5s}}]}}}}
  log:      {{use: sink_jsonl, from: judged, with: {{path: events.jsonl, mode: replace}}}}
"""
WINDOWS = "keypoint_windows, from: tracks, with: {window_s: 1, every_s: 0.5}"


def tracks(seq: int, above: dict[int, float]) -> Tracks:
    """Track -> how far the left wrist is above the nose, in a frame 100 pixels high, each tenth of a second."""
    n = len(above)
    keypoints = np.full((n, 17, 3), 0.9, np.float32)
    keypoints[:, :, 0] = 50
    keypoints[:, :, 1] = 60
    keypoints[:, LEFT_WRIST, 1] -= list(above.values())
    return testing.tracks(dict.fromkeys(above, (40, 10, 60, 90)), seq, frame_size=(200, 100), keypoints=keypoints)


@pytest.mark.parametrize(("axes", "coordinates", "unit"), [("nctvm", "centred", 1.0), ("nmtvc", "signed", 2.0)])
def test_each_person_has_the_scores_of_their_own_window(
    tmp_path: Path, axes: str, coordinates: str, unit: float
) -> None:
    write_raised_hands(tmp_path / "actions.onnx", axes=axes)
    items = [tracks(seq, {7: 20, 8: -30}) for seq in range(12)]
    windows = {"window_s": 1.0, "min_seen": 1.0, "steps": 10, "coordinates": coordinates}
    with (
        opened(KeypointWindows, windows, folder=tmp_path) as window,
        opened(Infer, {"model": "actions.onnx"}, folder=tmp_path) as infer,
        opened(Classify, {"class_names": ["hands up", "hands down"]}, folder=tmp_path) as classify,
        opened(AddLabels, {}, folder=tmp_path) as add,
        opened(Rules, {"rules": [{"id": "up", "when": "label(hands_up) > 0.7"}]}, folder=tmp_path) as rules,
    ):
        outputs = feed(infer, feed(window, items), batch=4)
        labels = feed(classify, outputs)
        labelled = feed(add, [{"tracks": one, "labels": other} for one, other in zip(items, labels, strict=True)])
        [event] = feed(rules, labelled)
    first = next(one for one in outputs if isinstance(one, Tensor) and one.rows)
    assert np.allclose(first.arrays_by_name["logits"][:, 0], GAIN * unit * np.array([0.2, -0.3]), atol=1e-5)
    assert all(isinstance(one, Labels) for one in labels)
    body = json.loads(event.body)["data"]
    assert [one["track_id"] for one in body["people"]] == [7]
    score = 1 / (1 + exp(-2 * GAIN * unit * 0.2))
    assert body["evidence"]["conditions"] == [{"text": "label(hands_up) > 0.7", "left": round(score, 3), "right": 0.7}]


@pytest.fixture
def folder(tmp_path: Path, make_clip: Any) -> Path:
    make_clip("clip.mp4", frames=30)
    write_two_people(tmp_path / "pose.onnx", {NOSE: (0, -10), LEFT_WRIST: (5, -18)})
    write_raised_hands(tmp_path / "actions.onnx")
    return tmp_path


def load(folder: Path, when: str = "label(hands_up) > 0.7", windows: str = WINDOWS, infer: str = "") -> Graph:
    text = GRAPH.format(when=when, windows=windows, infer=infer)
    return parse_graph(text, "g.yaml", base_folder=folder, environ={})


def test_the_windows_are_as_the_model_wants_them(folder: Path) -> None:
    def settings() -> Any:
        return next(node.settings for node in load(folder).completed.nodes if node.name == "windows")

    assert (settings().steps, settings().coordinates, settings().skeleton) == (10, "centred", "coco-17")
    write_raised_hands(folder / "actions.onnx", steps=48, axes="nmtvc", joints=18)
    assert (settings().steps, settings().coordinates, settings().skeleton) == (48, "signed", "openpose-18")


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        ({"windows": WINDOWS.replace("{window_s", "{steps: 50, window_s")}, "g.yaml:12:13: stages.actions: actions.onnx takes windows of 10 steps and 17 joints, and `windows` makes 50 steps and 17 joints"),  # noqa: E501
        ({"windows": "crop, from: {frames: capture, people: tracks}"}, "g.yaml:12:13: stages.actions: actions.onnx takes windows of keypoints, and `windows` makes pictures: put `keypoint_windows`"),  # noqa: E501
        ({"infer": ", input: {layout: nmtvc}"}, "g.yaml:12:102: stages.actions.with.input.layout: actions.onnx: input `keypoints` is tensor(float) ['n', 3, 10, 17, 1]; that is not the layout nmtvc"),  # noqa: E501
        ({"when": "label(hands_high) > 0.7"}, "g.yaml:15:13: stages.judged: the rule `gesture` asks for `label(hands_high)`, and the classifiers before it have no such class; did you mean `hands_up`?"),  # noqa: E501
        ({"when": "label(hands_up) > 70deg"}, "a bare number cannot be compared with an angle"),
        ({"when": "label() > 0.7"}, "expected label(falling_down)"),
    ],
)  # fmt: skip
def test_parts_that_do_not_go_together_are_mistakes(folder: Path, parts: dict[str, str], told: str) -> None:
    with pytest.raises(GraphError) as caught:
        load(folder, **parts)
    assert told in str(caught.value)


def test_a_model_of_pictures_takes_no_windows(folder: Path) -> None:
    (folder / "actions.onnx").write_bytes((folder / "pose.onnx").read_bytes())
    with pytest.raises(GraphError) as caught:
        load(folder)
    assert "actions.onnx takes pictures, and `windows` makes windows of keypoints: put `preprocess` before" in str(
        caught.value
    )


def test_no_classifier_has_no_labels(folder: Path) -> None:
    text = GRAPH.format(when="label(up) > 0.5", windows=WINDOWS, infer="")
    text = "\n".join(
        line
        for line in text.replace("from: labelled", "from: tracks").splitlines()
        if line.split(":")[0].strip() not in ("windows", "actions", "kinds", "labelled")
    )
    with pytest.raises(GraphError, match="no classifier stands before it, and so it has no such class"):
        parse_graph(text, "g.yaml", base_folder=folder, environ={})


@pytest.mark.slow
def test_a_graph_of_real_processes_tells_what_people_do(folder: Path) -> None:
    """Two people with the left wrist 12 of 64 pixels of the frame above the nose."""
    (folder / "g.yaml").write_text(GRAPH.format(when="label(hands_up) > 0.7", windows=WINDOWS, infer=""))
    outcome, status = run_graph(load_plan(folder / "g.yaml"))
    assert outcome.status == 0, status
    bodies = [json.loads(line)["data"] for line in (folder / "events.jsonl").read_text().splitlines()]
    starts = [body for body in bodies if body["phase"] == "start"]
    assert sorted(body["people"][0]["track_id"] for body in starts) == [1, 2]
    for body in starts:
        assert body["model"]["name"] == "pose.onnx", "the one that found the people"
        [condition] = body["evidence"]["conditions"]
        assert condition["left"] == pytest.approx(1 / (1 + exp(-2 * GAIN * 12 / 64)), abs=0.002)
        assert 1.0 <= body["duration_s"] + body["frame"]["seq"] / 10 <= 2.5
