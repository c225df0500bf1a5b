"""A graph that promises that no picture leaves it has no reader of pictures but for models."""

from __future__ import annotations

from typing import Any

import pytest

from camgraph.pipeline.graph.arrows import Arrow
from camgraph.pipeline.graph.definition import StageEntry
from camgraph.pipeline.graph.loading import check_withheld
from camgraph.pipeline.graph.nodes import Node
from camgraph.pipeline.graph.report import Report
from camgraph.pipeline.graph.yaml_source import load
from camgraph.pipeline.stage import Settings, Stage
from camgraph.stages.messages import Frame
from camgraph.stages.people.crop import Crop, CropSettings
from camgraph.stages.people.preprocess import Preprocess, PreprocessSettings
from camgraph.stages.sinks.sink_footage import SinkFootage, SinkFootageSettings
from camgraph.stages.sinks.sink_null import SinkNull
from camgraph.stages.sinks.sink_video import SinkVideo, SinkVideoSettings


def problems(look: str, kind: type[Stage[Any]], settings: Settings, *, reads: bool = True) -> list[str]:
    """Of a graph in which a stage reads frames beside `sink_footage`."""
    footage = SinkFootageSettings.model_validate({"look": look})
    entry = StageEntry(use="x")
    nodes = {"reader": Node("reader", entry, kind, settings), "footage": Node("footage", entry, SinkFootage, footage)}
    report = Report(load("version: 1", "graph.yaml"))
    arrows = [Arrow("capture", "reader", "", ("stages",), type=Frame.TYPE)] if reads else []
    check_withheld(nodes, arrows, report)
    return [str(problem) for problem in report.problems]


@pytest.mark.parametrize(
    ("kind", "settings"), [(SinkVideo, SinkVideoSettings(path="{camera}.mp4")), (SinkNull, Settings())]
)
def test_no_stage_may_show_frames(kind: type[Stage[Any]], settings: Settings) -> None:
    (found,) = problems("skeleton_only", kind, settings)
    assert "skeleton_only" in found
    assert problems("blurred_faces", kind, settings) == []


@pytest.mark.parametrize(("kind", "settings"), [(Preprocess, PreprocessSettings()), (Crop, CropSettings())])
def test_models_get_their_pictures(kind: type[Stage[Any]], settings: Settings) -> None:
    assert problems("skeleton_only", kind, settings) == []


@pytest.mark.parametrize(
    ("one", "other", "count"),
    [
        ("skeleton_only", "clean", 1),
        ("clean", "skeleton_only", 1),
        ("skeleton_only", "skeleton_only", 0),
        ("clean", "annotated", 0),
    ],
)
def test_no_other_footage_is_kept(one: str, other: str, count: int) -> None:
    settings = SinkFootageSettings.model_validate({"look": other, "path": "other"})
    assert len(problems(one, SinkFootage, settings, reads=False)) == count
