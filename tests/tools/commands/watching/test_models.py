from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from camgraph.pipeline.errors import UserError
from camgraph.tools.commands.watching.models import PoseModel, model_file, named_model, pose_model

POSE = {"task": "pose", "kpt_shape": "[17, 3]"}


def yolo_like(path: Path, sides: Sequence[int | str], metadata: dict[str, str]) -> Path:
    """An ONNX file with a picture of these sides (height, width) as input and 56 rows as output."""
    picture = helper.make_tensor_value_info("images", TensorProto.FLOAT, ["b", 3, *sides])
    rows = helper.make_tensor_value_info("rows", TensorProto.FLOAT, [1, 56, "anchors"])
    anchors = 6300 if sides == [480, 640] else 84
    zeros = helper.make_tensor("zeros", TensorProto.FLOAT, [1, 56, anchors], [0.0] * 56 * anchors)
    node = helper.make_node("Constant", [], ["rows"], value=zeros)
    model = helper.make_model(
        helper.make_graph([node], "g", [picture], [rows]), opset_imports=[helper.make_opsetid("", 17)]
    )
    model.ir_version = 8
    helper.set_model_props(model, {**POSE, **metadata})
    onnx.save(model, str(path))
    return path


@pytest.mark.parametrize(
    ("sides", "metadata", "size"),
    [
        ([480, 640], {}, (640, 480)),
        (["h", "w"], {"imgsz": "[384, 512]"}, (512, 384)),
        (["h", "w"], {}, (640, 640)),
    ],
)
def test_the_size_is_the_models(
    tmp_path: Path, sides: Sequence[int | str], metadata: dict[str, str], size: tuple[int, int]
) -> None:
    model = named_model(str(yolo_like(tmp_path / "m.onnx", sides, metadata)), tmp_path)
    assert pose_model(model, None) == PoseModel(model, size)
    with pytest.raises(UserError, match=rf"--size 256: .* takes only pictures of {size[0]}x{size[1]}"):
        pose_model(model, 256)


def test_a_size_is_taken_where_the_model_leaves_it_open() -> None:
    model = named_model(None, Path())
    assert pose_model(model, None) == PoseModel("asset:movenet-multipose.onnx")
    assert pose_model(model, 512).max_side == 512


def test_a_name_is_an_asset_where_no_file_has_it(tmp_path: Path) -> None:
    for name in ("movenet-multipose", "movenet-multipose.onnx", "asset:movenet-multipose.onnx"):
        assert named_model(name, tmp_path) == "asset:movenet-multipose.onnx"
    own = yolo_like(tmp_path / "movenet-multipose.onnx", [64, 64], {})
    assert named_model("movenet-multipose.onnx", tmp_path) == str(own)
    with pytest.raises(UserError, match=r"--model vtest.avi: neither an ONNX file nor .* \(movenet-multipose.onnx, "):
        named_model("vtest.avi", tmp_path)


def test_a_file_is_found_again_whatever_it_is_called(tmp_path: Path) -> None:
    own = yolo_like(tmp_path / "a${HOME}.onnx", [64, 64], {})
    assert model_file(named_model("a${HOME}.onnx", tmp_path)) == own


def test_how_it_wants_its_picture_is_in_the_graph(tmp_path: Path) -> None:
    picture = helper.make_tensor_value_info("images", TensorProto.UINT8, [1, 3, 64, 96])
    rows = helper.make_tensor_value_info("rows", TensorProto.FLOAT, ["n", 57])
    nodes = [
        helper.make_node("NonZero", ["images"], ["bright"]),
        helper.make_node("Shape", ["bright"], ["count"], start=1),
        helper.make_node("Constant", [], ["columns"], value_ints=[57]),
        helper.make_node("Concat", ["count", "columns"], ["shape"], axis=0),
        helper.make_node("ConstantOfShape", ["shape"], ["rows"]),
    ]
    graph = helper.make_graph(nodes, "g", [picture], [rows])
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "nas.onnx"
    )
    assert pose_model(str(tmp_path / "nas.onnx"), None) == PoseModel(
        str(tmp_path / "nas.onnx"), (96, 64), align="corner", pad=127
    )


def test_what_is_no_model_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_text("no model")
    with pytest.raises(UserError, match=r"m\.onnx: cannot be read as an ONNX model"):
        pose_model(str(path), None)


def test_real_models_are_told_apart(test_data: Path) -> None:
    models = test_data / "models"
    yolo = str(models / "yolo11n-pose_640.onnx")
    assert pose_model(yolo, None) == PoseModel(yolo, (640, 640))
    heads = str(models / "multipose_heads.onnx")
    assert pose_model(heads, None) == PoseModel(heads)
    with pytest.raises(
        UserError, match=r"(?s)bigisland\.onnx: it finds no keypoints \(yolox: 3549 rows.*Expected an ONNX"
    ):
        pose_model(str(models / "yolox_nano_bigisland.onnx"), None)
