from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from camgraph.pipeline.graph import load_plan
from camgraph.pipeline.plan import RunPlan
from camgraph.tools.commands.watching.picture_size import LOOKING, MOST_SHOWN, in_words, with_picture_sizes
from camgraph.tools.commands.watching.size import Choice

pytestmark = [pytest.mark.slow, pytest.mark.processes]

GRAPH = """\
version: 1
cameras: {{a: {{url: "{url}"}}}}
stages:
  capture: {{use: capture}}
  prepare: {{use: preprocess, from: capture{picture}}}
  infer:   {{use: infer, from: prepare, with: {{model: "{model}"}}}}
  people:  {{use: decode, from: infer}}
  tracks:  {{use: track, from: people}}
  end:     {{use: sink_null, from: tracks}}
"""


def planned(folder: Path, url: object, model: object = "asset:movenet-multipose.onnx", picture: str = "") -> RunPlan:
    with_ = f", with: {{{picture}}}" if picture else ""
    (folder / "g.yaml").write_text(GRAPH.format(url=url, model=model, picture=with_))
    return load_plan(folder / "g.yaml")


def prepare(plan: RunPlan) -> dict[str, Any]:
    return next(
        dict(stage.settings) for process in plan.processes for stage in process.stages if stage.name == "prepare"
    )


@pytest.mark.parametrize("picture", ["", "size: auto"])
def test_people_who_fill_a_small_clip_get_a_small_picture(
    pulled_model: Path, test_data: Path, tmp_path: Path, picture: str
) -> None:
    reported: list[str] = []
    plan = planned(tmp_path, test_data / "videos" / "intel_asl_yes.mkv", picture=picture)
    settings = prepare(with_picture_sizes(plan, reported.append))
    assert (settings["size"], settings["max_side"]) == ("auto", 256)
    assert reported[0] == LOOKING
    assert reported[1].startswith("  a: 256 pixels: people are most whole and certain at 256 (384: ")


def test_cameras_with_other_people_get_other_pictures(
    pulled_model: Path, short_clip: Path, test_data: Path, tmp_path: Path
) -> None:
    plan = planned(tmp_path, test_data / "videos" / "intel_asl_yes.mkv")
    settings = {**plan.camera_settings, "b": {**plan.camera_settings["a"], "url": str(short_clip)}}
    both = with_picture_sizes(replace(plan, camera_settings=settings), lambda _: None)
    assert prepare(both)["max_side"] == {"a": 256, "b": 768}


def test_of_many_cameras_a_few_are_told() -> None:
    lines = list(in_words({f"c{n}": Choice(384, "so it is") for n in range(11)}))
    assert (lines[0], len(lines), lines[-1]) == ("  c0: 384 pixels: so it is", MOST_SHOWN + 1, "  and 3 more cameras")
    assert list(in_words({"c": Choice(768, "no", 256)})) == ["  c: 256 and 768 pixels would fit: no"]


@pytest.mark.parametrize("picture", ["size: native", "size: [640, 480]", "size: auto, max_side: 512", "max_side: 512"])
def test_what_somebody_wrote_stays(pulled_model: Path, short_clip: Path, tmp_path: Path, picture: str) -> None:
    reported: list[str] = []
    plan = planned(tmp_path, short_clip, picture=picture)
    assert with_picture_sizes(plan, reported.append) == plan
    assert reported == []


@pytest.mark.parametrize("url", ["/dev/video0", "rtsp://10.0.0.1/x"])
def test_live_cameras_are_not_looked_at(pulled_model: Path, tmp_path: Path, url: str) -> None:
    reported: list[str] = []
    settings = prepare(with_picture_sizes(planned(tmp_path, url), reported.append))
    assert settings["size"] == "auto"
    assert settings.get("max_side") is None
    assert reported == []


@pytest.mark.parametrize("picture", ["", "size: auto"])
def test_a_model_of_one_size_gets_that_size(two_people: Path, short_clip: Path, tmp_path: Path, picture: str) -> None:
    reported: list[str] = []
    plan = with_picture_sizes(planned(tmp_path, short_clip, two_people, picture), reported.append)
    assert prepare(plan)["size"] == [64, 64]
    assert reported == []
