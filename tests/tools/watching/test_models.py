from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from pipeline.errors import UserError
from tools.watching.models import NotAPoseModel, PoseModel, decoder_of, model_file, named_model, pose_model

HEADS = {name: ["b", 1, "h", "w"] for name in ("center", "kpt_heatmap", "kpt_regress", "kpt_offset", "box_scale")}
POSE = {"task": "pose", "kpt_shape": "[17, 3]"}


@pytest.mark.parametrize(
    ("outputs", "metadata", "decoder"),
    [
        ({**HEADS, "box_offset": ["b", 2, "h", "w"]}, {}, "decode_movenet_multipose"),
        ({"o": [1, 56, 8400]}, {}, "decode_yolo_pose"),
        ({"o": ["b", 8400, 56]}, {}, "decode_yolo_pose"),
        ({"o": ["b", 56, "anchors"]}, POSE, "decode_yolo_pose"),
        ({"o": ["b", "rows", "anchors"]}, POSE, "decode_yolo_pose"),
        ({"o": [1, 68, 8400]}, {"kpt_shape": "[21, 3]"}, "decode_yolo_pose"),
    ],
)
def test_pose_models_are_known(outputs: dict[str, Sequence[int | str]], metadata: dict[str, str], decoder: str) -> None:
    assert decoder_of(outputs, metadata) == decoder


@pytest.mark.parametrize(
    ("outputs", "metadata", "why"),
    [
        ({"o": [1, 3549, 85]}, {}, r"its output is o \[1, 3549, 85\], and neither side is 56"),
        ({"o": [1, 14, 8400]}, {}, "neither side is 56"),
        ({"o": [1, 56, 8400]}, {"task": "detect"}, "its metadata says that it is made for `detect`"),
        ({"o": [1, 56, 8400]}, {"kpt_shape": "[21, 3]"}, "neither side is 68"),
        ({"o": [1, 39, 8400]}, {"kpt_shape": "[17, 2]"}, "its keypoints have 2 values each"),
        ({"o": [1, 56, 8400]}, {"kpt_shape": "seventeen"}, "its metadata says kpt_shape 'seventeen'"),
        ({"o": ["b", "rows", "anchors"]}, {}, "neither side is 56"),
        ({"o": [1, 1000]}, {}, r"o \[1, 1000\]"),
        ({"a": [1, 56, 8400], "b": [1]}, {}, r"its outputs are a \[1, 56, 8400\], b \[1\]"),
        (HEADS, {}, "its outputs are center"),
    ],
)
def test_other_models_are_refused(outputs: dict[str, Sequence[int | str]], metadata: dict[str, str], why: str) -> None:
    with pytest.raises(NotAPoseModel, match=why):
        decoder_of(outputs, metadata)


def yolo_like(path: Path, sides: Sequence[int | str], metadata: dict[str, str]) -> Path:
    """An ONNX file with a picture of these sides (height, width) as input and 56 rows as output."""
    picture = helper.make_tensor_value_info("images", TensorProto.FLOAT, ["b", 3, *sides])
    rows = helper.make_tensor_value_info("rows", TensorProto.FLOAT, [1, 56, 84])
    zeros = helper.make_tensor("zeros", TensorProto.FLOAT, [1, 56, 84], [0.0] * 56 * 84)
    node = helper.make_node("Constant", [], ["rows"], value=zeros)
    model = helper.make_model(
        helper.make_graph([node], "g", [picture], [rows]), opset_imports=[helper.make_opsetid("", 17)]
    )
    model.ir_version = 8
    helper.set_model_props(model, metadata)
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
    assert pose_model(model, None) == PoseModel(model, "decode_yolo_pose", size)
    with pytest.raises(UserError, match=rf"--size 256: .* takes pictures of {size[0]}x{size[1]} and no others"):
        pose_model(model, 256)


def test_a_size_is_taken_where_the_model_leaves_it_open() -> None:
    model = named_model(None, Path())
    assert pose_model(model, None) == PoseModel("asset:movenet-multipose.onnx", "decode_movenet_multipose")
    assert pose_model(model, 512).max_side == 512


def test_a_name_is_an_asset_where_no_file_has_it(tmp_path: Path) -> None:
    for name in ("movenet-multipose", "movenet-multipose.onnx", "asset:movenet-multipose.onnx"):
        assert named_model(name, tmp_path) == "asset:movenet-multipose.onnx"
    own = yolo_like(tmp_path / "movenet-multipose.onnx", [64, 64], {})
    assert named_model("movenet-multipose.onnx", tmp_path) == str(own)
    with pytest.raises(UserError, match=r"--model vtest.avi: neither an ONNX file nor .* \(movenet-multipose.onnx\)"):
        named_model("vtest.avi", tmp_path)


def test_a_file_is_found_again_whatever_it_is_called(tmp_path: Path) -> None:
    own = yolo_like(tmp_path / "a${HOME}.onnx", [64, 64], {})
    assert model_file(named_model("a${HOME}.onnx", tmp_path)) == own


def test_what_is_no_model_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_text("no model")
    with pytest.raises(UserError, match=r"m\.onnx: cannot be read as an ONNX model"):
        pose_model(str(path), None)


def test_real_models_are_told_apart(test_data: Path) -> None:
    models = test_data / "models"
    yolo = str(models / "yolo11n-pose_640.onnx")
    assert pose_model(yolo, None) == PoseModel(yolo, "decode_yolo_pose", (640, 640))
    heads = str(models / "multipose_heads.onnx")
    assert pose_model(heads, None) == PoseModel(heads, "decode_movenet_multipose")
    with pytest.raises(
        UserError, match=r"(?s)bigisland\.onnx: cannot be watched with: .*\[1, 3549, 85\].*Expected an ONNX"
    ):
        pose_model(str(models / "yolox_nano_bigisland.onnx"), None)
