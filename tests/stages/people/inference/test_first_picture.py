"""The picture with which a model that takes any size is warmed up and tried: of the size that will come."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from structlog.testing import capture_logs

from camgraph.pipeline.errors import UserError
from camgraph.pipeline.graph.loading import parse_graph
from camgraph.pipeline.messages import Array
from camgraph.pipeline.stage import Upstream
from camgraph.pipeline.testing import opened
from camgraph.stages.people.infer import Infer, InferSettings
from camgraph.stages.people.inference.model_inputs import first_size
from camgraph.stages.people.inference.selection import automatic
from camgraph.stages.vision.model_contract import InputContract
from camgraph.stages.vision.recognition import Signature

GRAPH = """version: 1
cameras: {{a: {{url: clip.mp4}}}}
stages:
  capture: {{use: capture}}
  prepare: {{use: preprocess, from: capture, with: {{size: {size}}}}}
  infer:   {{use: infer, from: prepare, with: {{model: m.onnx{more}}}}}
  out:     {{use: sink_null, from: infer}}
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """Takes any size by its input, and works with 96 x 64 alone."""
    node = helper.make_node("Reshape", ["images", "shape"], ["rows"])
    images = helper.make_tensor_value_info("images", TensorProto.FLOAT, ["n", 3, "h", "w"])
    rows = helper.make_tensor_value_info("rows", TensorProto.FLOAT, ["n", 96 * 64 * 3])
    shape = numpy_helper.from_array(np.array([-1, 96 * 64 * 3]), "shape")
    graph = helper.make_graph([node], "g", [images], [rows], [shape])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "m.onnx")
    (tmp_path / "clip.mp4").touch()
    return tmp_path / "m.onnx"


def completed(folder: Path, size: str, more: str = "") -> InferSettings:
    made = parse_graph(GRAPH.format(size=size, more=more), "g.yaml", base_folder=folder, environ={})
    settings = next(node.settings for node in made.completed.nodes if node.name == "infer")
    assert isinstance(settings, InferSettings)
    return settings


@pytest.mark.parametrize(
    ("size", "more", "expected"),
    [
        ("[96, 64]", "", (96, 64)),
        ("native", "", None),
        ("native", ", picture_size: [768, 576]", (768, 576)),
        ("[96, 64]", ", picture_size: [768, 576]", (768, 576)),
    ],
)
@pytest.mark.processes
def test_the_graph_knows_the_size(model: Path, size: str, more: str, expected: tuple[int, int] | None) -> None:
    assert completed(model.parent, size, more).picture_size == expected


def test_the_size_of_crops_and_of_pictures_for_a_server_is_known(tmp_path: Path) -> None:
    settings = InferSettings.model_validate({"server": {"url": "10.0.0.1:8001", "model": "pose"}})
    stages = {"prepare": {"picture": {"size": (640, 384)}}, "crops": {"picture": {"size": (192, 256)}}, "own": {}}
    assert Infer.follow(settings, tmp_path, Upstream(stages)) == {"picture_size": (192, 256)}
    assert Infer.follow(settings, tmp_path, Upstream({"own": {}})) == {}


@pytest.mark.processes
def test_warm_up_uses_the_expected_picture_size(model: Path) -> None:
    settings = completed(model.parent, "[96, 64]", ", batch_sizes: [1, 3]")
    with (
        capture_logs() as logs,
        opened(Infer, settings.model_dump(mode="json", exclude_none=True), folder=model.parent),
    ):
        pass
    assert [line["pictures"] for line in logs] == ["96 x 64"]
    unknown = r"m\.onnx does not run on pictures of 256 x 256 to begin with; .* unless `picture_size` gives it: "
    with pytest.raises(UserError, match=unknown), opened(Infer, {"model": "m.onnx"}, folder=model.parent):
        pass


def test_unknown_picture_size_is_logged(tmp_path: Path) -> None:
    node = helper.make_node("ReduceMean", ["images"], ["mean"], axes=[1, 2, 3], keepdims=0)
    images = helper.make_tensor_value_info("images", TensorProto.FLOAT, ["n", 3, "h", 64])
    mean = helper.make_tensor_value_info("mean", TensorProto.FLOAT, ["n"])
    made = helper.make_model(helper.make_graph([node], "g", [images], [mean]), ir_version=8)
    made.opset_import[0].version = 17
    onnx.save(made, tmp_path / "m.onnx")
    with capture_logs() as logs, opened(Infer, {"model": "m.onnx"}, folder=tmp_path):
        pass
    [line] = logs
    assert line["event"] == "model_opened"
    assert line["pictures"].startswith("64 x 256 to begin with; their size is known when they arrive, unless")


def shapes(inputs: Mapping[str, Array]) -> dict[str, tuple[int, ...]]:
    return {name: array.shape for name, array in inputs.items()}


def test_providers_are_tried_with_the_size_that_comes(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[dict[str, tuple[int, ...]]] = []

    def choosing(path: Path, asked: Any, inputs: Mapping[str, Array]) -> automatic.Choice:
        tried.append(shapes(inputs))
        return automatic.Choice(("cpu",), {})

    monkeypatch.setattr(automatic, "choose", choosing)
    given = {"model": "m.onnx", "providers": "auto", "picture_size": [96, 64]}
    with opened(Infer, given, folder=model.parent):
        assert tried == [{"images": (1, 3, 64, 96)}]


@pytest.mark.parametrize(
    ("sides", "known", "imgsz", "expected"),
    [
        ((None, None), (768, 576), "[640, 640]", (768, 576)),
        ((None, None), None, "[384, 640]", (640, 384)),
        ((None, None), None, "", (256, 256)),
        ((416, 320), (768, 576), "", (416, 320)),
        ((416, None), (768, 576), "", (416, 576)),
    ],
)
def test_what_is_known_best_counts(
    sides: tuple[int | None, int | None], known: tuple[int, int] | None, imgsz: str, expected: tuple[int, int]
) -> None:
    contract = InputContract("images", "nchw", "float32", "rgb", 1.0, None, *sides)
    settings = InferSettings(model="m.onnx", picture_size=known)
    assert first_size(contract, Signature((), (), {"imgsz": imgsz}), settings) == expected
