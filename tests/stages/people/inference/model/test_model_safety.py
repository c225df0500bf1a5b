"""Models that must not be opened."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from camgraph.pipeline.errors import UserError
from camgraph.stages.people.infer import Infer, InferSettings
from camgraph.stages.people.inference.model.model_files import find_libraries, find_model, sha256_of, verify_model
from camgraph.stages.people.inference.model.model_safety import checked_model
from camgraph.stages.people.inference.model_inputs import inputs_of
from camgraph.stages.people.inference.signatures import signature_of_file


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
@pytest.mark.parametrize("location", ["../secret", "/etc/passwd", "below/../../secret", "", "link/../../secret"])
def test_weights_elsewhere_are_not_read(tmp_path: Path, location: str, inside: bool) -> None:
    folder = tmp_path / "models"
    folder.mkdir()
    (tmp_path / "secret").write_bytes(bytes(12))
    (folder / "link").symlink_to(tmp_path)
    model = save(folder / "m.onnx", location, inside=inside)
    with pytest.raises(UserError, match=rf"`weights` lie in `{location}`: expected a file in the model's own folder"):
        checked_model(model)
    [(_, problem)] = Infer.check(InferSettings(model="m.onnx"), folder)
    assert "expected a file in the model's own folder" in problem


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("location", ["link", "below/secret"])
def test_links_out_of_the_folder_are_not_followed_and_named(tmp_path: Path, location: str, inside: bool) -> None:
    """As in a cache of Hugging Face, where a model's files are links to others."""
    folder = tmp_path / "models"
    folder.mkdir()
    (tmp_path / "secret").write_bytes(bytes(12))
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / "below").symlink_to(tmp_path)
    with pytest.raises(UserError, match=rf"lie in `{location}`, which is a symbolic link out of.*`cp -rL .*models FO"):
        checked_model(save(folder / "m.onnx", location, inside=inside))


def test_a_link_within_the_folder_is_followed(tmp_path: Path) -> None:
    model = save(tmp_path / "m.onnx", "link")
    (tmp_path / "weights").write_bytes(bytes(12))
    (tmp_path / "link").symlink_to("weights")
    assert len(checked_model(model).graph.node) == 1


def test_weights_beside_the_model_are_read(tmp_path: Path) -> None:
    model = save(tmp_path / "m.onnx", "m.weights")
    with pytest.raises(UserError, match=r"`m\.weights`, which is not there: copy it beside the model"):
        checked_model(model)
    (tmp_path / "m.weights").write_bytes(bytes(12))
    assert len(checked_model(model).graph.node) == 1
    assert list(Infer.check(InferSettings(model="m.onnx"), tmp_path)) == []


@pytest.mark.parametrize("location", ["a\0b", "x" * 5000])
def test_a_location_that_is_no_name_of_a_file_is_refused(tmp_path: Path, location: str) -> None:
    with pytest.raises(UserError, match="expected a file in the model's own folder"):
        checked_model(save(tmp_path / "m.onnx", location))


def test_weights_of_a_graph_within_the_graph_are_looked_at(tmp_path: Path) -> None:
    model = onnx.load(str(save(tmp_path / "m.onnx", inside=True)))
    branch = model.graph.node[0].attribute[0].g
    weights = branch.initializer.add()
    weights.CopyFrom(numpy_helper.from_array(np.zeros(3, np.float32), "hidden"))
    weights.ClearField("raw_data")
    weights.data_location = TensorProto.EXTERNAL
    entry = weights.external_data.add()
    entry.key, entry.value = "location", "../secret"
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(UserError, match=r"`hidden` lie in `\.\./secret`"):
        checked_model(tmp_path / "m.onnx")


def _sparse(tensor: TensorProto, sides: tuple[int, ...] = (3,)) -> onnx.SparseTensorProto:
    return helper.make_sparse_tensor(tensor, helper.make_tensor("at", TensorProto.INT64, [1], [0]), sides)


def _at(place: str, tensor: TensorProto, model: onnx.ModelProto) -> None:
    """Puts weights into one of the places of a file that may hold some."""
    attribute = helper.make_attribute("value", 0)
    if place == "list":
        attribute = helper.make_attribute("values", [tensor])
    if place == "sparse attribute":
        attribute = helper.make_attribute("sparse_value", _sparse(tensor))
    if place == "function":
        attribute = helper.make_attribute("value", tensor)
    if place == "sparse initializer":
        model.graph.sparse_initializer.append(_sparse(tensor))
    elif place == "function":
        constant = helper.make_node("Constant", [], ["y"])
        constant.attribute.append(attribute)
        opsets = [helper.make_opsetid("", 17)]
        model.functions.append(helper.make_function("own", "F", [], ["y"], [constant], opsets))
    else:
        model.graph.node[0].attribute.append(attribute)


_PLACES = ("list", "sparse attribute", "sparse initializer", "function")


@pytest.mark.parametrize("place", _PLACES)
def test_weights_are_looked_at_wherever_they_are(tmp_path: Path, place: str) -> None:
    tensor = numpy_helper.from_array(np.zeros(1, np.float32), "hidden")
    model = onnx.load(str(save(tmp_path / "m.onnx")))
    _at(place, tensor, model)
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    assert checked_model(tmp_path / "m.onnx").graph.name == "g"

    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    entry = tensor.external_data.add()
    entry.key, entry.value = "location", "../secret"
    model = onnx.load(str(save(tmp_path / "m.onnx")))
    _at(place, tensor, model)
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(UserError, match=r"`hidden` lie in `\.\./secret`: expected a file in the model's own folder"):
        checked_model(tmp_path / "m.onnx")


@pytest.mark.parametrize("place", _PLACES)
def test_the_sides_of_weights_are_looked_at_wherever_they_are(tmp_path: Path, place: str) -> None:
    tensor = numpy_helper.from_array(np.zeros(1, np.float32), "hidden")
    tensor.dims[0] = 10**12
    model = onnx.load(str(save(tmp_path / "m.onnx")))
    _at(place, tensor, model)
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(UserError, match=r"`hidden` say that they are \[1000000000000\]"):
        checked_model(tmp_path / "m.onnx")


def test_sparse_weights_may_not_stand_for_more_than_is_sensible(tmp_path: Path) -> None:
    model = onnx.load(str(save(tmp_path / "m.onnx")))
    tensor = numpy_helper.from_array(np.zeros(1, np.float32), "hidden")
    model.graph.sparse_initializer.append(_sparse(tensor, (10**6, 10**6)))
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(UserError, match=r"sparse weights `hidden` have sides of \[1000000, 1000000\]"):
        checked_model(tmp_path / "m.onnx")


def test_sparse_weights_may_not_take_the_memory_of_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("camgraph.stages.people.inference.model.model_memory.usable_memory", lambda: 4 << 30)
    model = onnx.load(str(save(tmp_path / "m.onnx")))
    for number in range(3):
        tensor = helper.make_tensor(f"weights{number}", TensorProto.FLOAT, [1], [1.0])
        model.graph.sparse_initializer.append(_sparse(tensor, (1 << 28,)))
    onnx.save(model, tmp_path / "m.onnx")
    with pytest.raises(UserError, match=r"sparse weights take 3,072 MB .*expected at most 2,048 MB"):
        checked_model(tmp_path / "m.onnx")


def test_operators_within_functions_of_the_model_are_looked_at(tmp_path: Path) -> None:
    model = onnx.load(str(save(tmp_path / "m.onnx")))
    node = helper.make_node("Steal", ["x"], ["y"], domain="evil.corp")
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("evil.corp", 1)]
    model.functions.append(helper.make_function("own", "F", ["x"], ["y"], [node], opsets))
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(UserError, match=r"operators of evil\.corp"):
        checked_model(tmp_path / "m.onnx")
    assert checked_model(tmp_path / "m.onnx", custom_ops=True).functions[0].name == "F"


@pytest.mark.parametrize("suffix", [".json", ".onnxtxt", ".textproto"])
def test_a_suffix_says_nothing_of_what_is_in_a_file(tmp_path: Path, suffix: str) -> None:
    assert len(checked_model(save(tmp_path / f"m{suffix}")).graph.node) == 1
    (tmp_path / f"no{suffix}").write_text("no model")
    with pytest.raises(UserError, match="cannot be read as an ONNX model"):
        checked_model(tmp_path / f"no{suffix}")


@pytest.mark.parametrize(
    ("sides", "dims", "text"),
    [
        (
            ["n", 3, 1_000_000, 1_000_000],
            [1, 3, 1, 1],
            r"`images` has sides of \[3, 1000000, 1000000\]; expected at most",
        ),
        ([100_000_000, 3, 640, 640], [1, 3, 1, 1], "`images` has sides of"),
        (["n", 3, "h", "w"], [10**9, 10**9], r"`weights` say that they are \[1000000000, 1000000000\], and \d+ bytes"),
    ],
)
def test_sizes_beyond_all_sense_are_refused(tmp_path: Path, sides: list[Any], dims: list[int], text: str) -> None:
    model = onnx.load(str(save(tmp_path / "m.onnx")))
    model.graph.input[0].CopyFrom(helper.make_tensor_value_info("images", TensorProto.FLOAT, sides))
    del model.graph.initializer[0].dims[:]
    model.graph.initializer[0].dims.extend(dims)
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(UserError, match=text):
        checked_model(tmp_path / "m.onnx")


def test_the_hash_of_a_model_is_that_of_its_weights_too(tmp_path: Path) -> None:
    plain = save(tmp_path / "plain.onnx")
    assert sha256_of(plain) == hashlib.sha256(plain.read_bytes()).hexdigest()
    model = save(tmp_path / "m.onnx", "m.weights")
    (tmp_path / "m.weights").write_bytes(bytes(12))
    pinned = sha256_of(model)
    verify_model(model, pinned)
    (tmp_path / "m.weights").write_bytes(bytes(11) + b"\1")
    with pytest.raises(UserError, match="it is another model, or has been changed since"):
        verify_model(model, pinned)


def outputs_of(path: Path, value: onnx.ValueInfoProto, node: onnx.NodeProto) -> Path:
    images = helper.make_tensor_value_info("images", TensorProto.FLOAT, ["n", 3, "h", "w"])
    graph = helper.make_graph([node], "g", [images], [value])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def test_check_refuses_nonnumeric_outputs(tmp_path: Path) -> None:
    parts = helper.make_tensor_sequence_value_info("parts", TensorProto.FLOAT, None)
    outputs_of(tmp_path / "parts.onnx", parts, helper.make_node("SplitToSequence", ["images"], ["parts"], axis=1))
    words = helper.make_tensor_value_info("words", TensorProto.STRING, ["n", 3, "h", "w"])
    outputs_of(tmp_path / "words.onnx", words, helper.make_node("Cast", ["images"], ["words"], to=TensorProto.STRING))
    for name, kind in (("parts", "seq"), ("words", "string")):
        [(_, problem)] = Infer.check(InferSettings(model=f"{name}.onnx"), tmp_path)
        assert f"output `{name}` is {kind}" in problem.replace("tensor(", "")


def test_looking_at_a_model_runs_none_of_its_libraries(tmp_path: Path) -> None:
    """A library that would not even load."""
    save(tmp_path / "m.onnx", domain="evil.corp")
    (tmp_path / "ops.so").write_bytes(b"no library")
    assert list(Infer.check(InferSettings(model="m.onnx", custom_ops=("ops.so",)), tmp_path)) == []


def test_custom_operators_need_a_named_library(tmp_path: Path) -> None:
    model = save(tmp_path / "m.onnx", domain="evil.corp")
    with pytest.raises(
        UserError,
        match=r"operators of evil\.corp.*the library that has them: `custom_ops` in a graph, `--custom-ops` of",
    ):
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


def test_no_model_is_a_file_of_the_kernel() -> None:
    with pytest.raises(UserError, match="is a file of the kernel, expected an ONNX file"):
        find_model("/proc/self/status", Path())
    with pytest.raises(UserError, match="no such library of operators"):
        find_libraries(["/proc/self/status"], Path())


@pytest.mark.parametrize(
    ("ir_version", "opset", "text"),
    [
        (99, 17, r"it has IR version 99, and ONNX Runtime [\d.]+ reads up to \d+: export"),
        (8, 99, "it has opset 99, and"),
    ],
)
def test_a_model_of_a_newer_onnx_is_told_so(tmp_path: Path, ir_version: int, opset: int, text: str) -> None:
    model = onnx.load(str(save(tmp_path / "m.onnx")))
    model.ir_version, model.opset_import[0].version = ir_version, opset
    onnx.save(model, tmp_path / "m.onnx")
    with pytest.raises(UserError, match=text):
        signature_of_file(tmp_path / "m.onnx")


def test_the_place_in_the_sources_of_onnxruntime_is_left_out(tmp_path: Path) -> None:
    model = onnx.load(str(save(tmp_path / "m.onnx")))
    model.graph.node[0].op_type = "Foo"
    onnx.save(model, tmp_path / "m.onnx")
    with pytest.raises(
        UserError, match=r"cannot be read as an ONNX model: This is an invalid model.*No Op registered for Foo"
    ):
        signature_of_file(tmp_path / "m.onnx")


def test_sides_of_minus_one_are_open(tmp_path: Path) -> None:
    model = onnx.load(str(save(tmp_path / "m.onnx")))
    for value in (*model.graph.input, *model.graph.output):
        for place in (0, 2, 3):
            value.type.tensor_type.shape.dim[place].dim_value = -1
    onnx.save(model, tmp_path / "m.onnx")
    checked = checked_model(tmp_path / "m.onnx")
    sides = checked.graph.input[0].type.tensor_type.shape.dim
    assert [side.dim_value for side in sides if side.HasField("dim_value")] == [3]
    settings = InferSettings(model=str(tmp_path / "m.onnx"), input={"layout": "nchw"})  # type: ignore[arg-type]
    contract, _ = inputs_of(signature_of_file(tmp_path / "m.onnx"), settings)
    assert (contract.batch, contract.width, contract.height) == (None, None, None)
