"""Models that must not be opened."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from pipeline.errors import UserError
from stages.infer import Infer, InferSettings
from stages.inference.model_safety import checked_model


def save(path: Path, location: str | None = None, domain: str = "", inside: bool = False) -> Path:
    """A model that adds weights to pictures; these lie at `location`, or in an attribute of a branch (`inside`)."""
    weights = numpy_helper.from_array(np.zeros((1, 3, 1, 1), np.float32), "weights")
    if location is not None:
        weights.ClearField("raw_data")
        weights.data_location = TensorProto.EXTERNAL
        entry = weights.external_data.add()
        entry.key, entry.value = "location", location
    value = helper.make_tensor_value_info
    node = helper.make_node("Add", ["images", "weights"], ["out"], domain=domain)
    constants: list[Any] = [weights]
    nodes = [node]
    if inside:
        constant = helper.make_node("Constant", [], ["weights"], value=weights)
        branch = helper.make_graph([constant], "branch", [], [value("weights", TensorProto.FLOAT, None)])
        true = helper.make_tensor("true", TensorProto.BOOL, [], [True])
        nodes = [helper.make_node("If", ["true"], ["chosen"], then_branch=branch, else_branch=branch), node]
        node.input[1] = "chosen"
        constants = [true]
    graph = helper.make_graph(
        nodes,
        "g",
        [value("images", TensorProto.FLOAT, ["n", 3, "h", "w"])],
        [value("out", TensorProto.FLOAT, ["n", 3, "h", "w"])],
        constants,
    )
    opsets = [helper.make_opsetid("", 17)] + ([helper.make_opsetid(domain, 1)] if domain else [])
    path.write_bytes(helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString())
    return path


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("location", ["../secret", "/etc/passwd", "below/../../secret", "", "link"])
def test_weights_elsewhere_are_not_read(tmp_path: Path, location: str, inside: bool) -> None:
    folder = tmp_path / "models"
    folder.mkdir()
    (tmp_path / "secret").write_bytes(bytes(12))
    (folder / "link").symlink_to(tmp_path / "secret")
    model = save(folder / "m.onnx", location, inside=inside)
    with pytest.raises(UserError, match=rf"`weights` lie in `{location}`: expected a file in the model's own folder"):
        checked_model(model)
    [(_, problem)] = Infer.check(InferSettings(model="m.onnx"), folder)
    assert "expected a file in the model's own folder" in problem


def test_weights_beside_the_model_are_read(tmp_path: Path) -> None:
    model = save(tmp_path / "m.onnx", "m.weights")
    with pytest.raises(UserError, match=r"`m\.weights`, which is not there: copy it beside the model"):
        checked_model(model)
    (tmp_path / "m.weights").write_bytes(bytes(12))
    assert len(checked_model(model).graph.node) == 1
    assert list(Infer.check(InferSettings(model="m.onnx"), tmp_path)) == []


def test_operators_that_nobody_knows_need_a_library_that_is_named(tmp_path: Path) -> None:
    model = save(tmp_path / "m.onnx", domain="evil.corp")
    with pytest.raises(UserError, match=r"operators of evil\.corp.*name the library that has them in `custom_ops`"):
        checked_model(model)
    assert len(checked_model(model, custom_ops=True).graph.node) == 1


@pytest.mark.parametrize("content", [b"", b"\x08\x07\x12", b"no model", b"\xff" * 100])
def test_what_is_no_model(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "m.onnx").write_bytes(content)
    problems = list(Infer.check(InferSettings(model="m.onnx"), tmp_path))
    assert [place for place, _ in problems] == [("model",)]
    assert "cannot be read as an ONNX model" in problems[0][1]


def test_a_file_larger_than_a_model_can_be(tmp_path: Path) -> None:
    with (tmp_path / "m.onnx").open("wb") as file:
        file.truncate(3 * 1024**3)
    with pytest.raises(UserError, match=r"3.0 GiB; expected at most 2 GiB"):
        checked_model(tmp_path / "m.onnx")


def test_real_models_pass(test_data: Path) -> None:
    for path in sorted((test_data / "models").glob("*.onnx")):
        assert isinstance(checked_model(path), onnx.ModelProto)
