"""Copies of models with their preprocessing in the graph: the same outputs, kept on the disk if it takes them."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from camgraph.pipeline.system.paths import asset_folder
from camgraph.stages.people.inference import folded_models
from camgraph.stages.people.inference.contracts import InputSettings, read_contract
from camgraph.stages.people.inference.engines.engine import Source
from camgraph.stages.people.inference.engines.onnxruntime_engine import open_with
from camgraph.stages.people.inference.folded_models import (
    CannotFold,
    Folds,
    folded_contract,
    folded_model,
    why_no_pixels,
)
from camgraph.stages.people.inference.model.candidate_selection import Selection
from camgraph.stages.people.inference.model.model_files import sha256_of
from camgraph.stages.people.inference.signatures import signature_of_file
from camgraph.stages.vision.model_contract import Converter, InputContract
from camgraph.stages.vision.sample_pictures import sample_pictures

OF_FLOATS = ("yolo11n-pose_640", "yolov8n-pose_float", "yolox_nano_bigisland")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own; the folder for copies is not there yet."""
    monkeypatch.setenv("CAMGRAPH_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache" / "folded"


def small(path: Path, kind: int = TensorProto.FLOAT, *, outputs: tuple[str, ...] = ("out",)) -> Path:
    """A model that doubles what it is given: images (n, 3, 16, 24) -> out."""
    port, shape = helper.make_tensor_value_info, ["n", 3, 16, 24]
    nodes = [helper.make_node("Add", ["images", "images"], ["out"])]
    graph = helper.make_graph(nodes, "g", [port("images", kind, shape)], [port(name, kind, shape) for name in outputs])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def contract_of(path: Path, **declared: Any) -> InputContract:
    return read_contract(signature_of_file(path), path.name, InputSettings(**declared))


def copied(path: Path, **declared: Any) -> folded_models.FoldedModel:
    return folded_model(path, sha256_of(path), Folds(contract_of(path, **declared)))


def outputs(model: Source, contract: InputContract, rows: int) -> dict[str, Any]:
    size = (contract.width or 192, contract.height or 256)
    pictures = sample_pictures(rows, size)
    pictures[0, :16, :16] = np.arange(256, dtype=np.uint8).reshape(16, 16, 1)  # each value that a pixel may have
    engine = open_with({"cpu": {}}, model, threads=1)
    return dict(engine.run({contract.name: Converter(contract).batch([pictures])}))


def assert_same_outputs(path: Path) -> None:
    contract = contract_of(path)
    copy = copied(path)
    for rows in {contract.batch} if contract.batch else {1, 3}:
        expected, got = (
            outputs(path, contract, rows),
            outputs(copy.source, folded_contract(contract), rows),
        )
        assert list(got) == list(expected)
        for name, array in expected.items():
            np.testing.assert_array_equal(got[name], array, err_msg=name)


@pytest.mark.slow
@pytest.mark.parametrize("name", OF_FLOATS)
def test_real_models_give_the_same_bits(test_data: Path, name: str) -> None:
    assert_same_outputs(test_data / "models" / f"{name}.onnx")


MOVENET = asset_folder() / "movenet-multipose.onnx"


def test_movenet_takes_pixels_already(test_data: Path) -> None:
    for path in (MOVENET, test_data / "models" / "multipose_heads.onnx"):
        if path.is_file():
            assert why_no_pixels(contract_of(path)) == "it takes uint8 RGB pictures as they are"


@pytest.mark.parametrize("declared", [{}, {"order": "bgr", "scale": 1.0}, {"scale": 0.0170001}])
@pytest.mark.parametrize("kind", [TensorProto.FLOAT, TensorProto.FLOAT16])
def test_declared_preprocessing_is_folded(tmp_path: Path, kind: int, declared: dict[str, Any]) -> None:
    path = small(tmp_path / "small.onnx", kind)
    contract = contract_of(path, **declared)
    expected = outputs(path, contract, 2)
    got = outputs(copied(path, **declared).source, folded_contract(contract), 2)
    np.testing.assert_array_equal(got["out"], expected["out"])


def test_a_copy_is_kept_and_found(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = small(tmp_path / "small.onnx")
    first = copied(path)
    assert [first.source] == list(cache.iterdir())
    assert first.kept == str(first.source)
    monkeypatch.delattr(folded_models, "fold_pixels")
    assert copied(path) == first


def test_another_model_or_another_preprocessing_is_another_copy(tmp_path: Path) -> None:
    one, other = small(tmp_path / "one.onnx"), small(tmp_path / "other.onnx", TensorProto.FLOAT16)
    assert len({copied(one).source, copied(other).source, copied(one, order="bgr").source}) == 3


def test_another_selection_is_another_copy(tmp_path: Path) -> None:
    """Four classes of 144 candidates, which are the picture itself."""
    path = small(tmp_path / "heads.onnx")
    model = onnx.load(path)
    model.graph.initializer.append(helper.make_tensor("shape", TensorProto.INT64, [3], [0, 8, 144]))
    model.graph.node.append(helper.make_node("Reshape", ["out", "shape"], ["heads"]))
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("heads", TensorProto.FLOAT, ["n", 8, 144]))
    onnx.save(model, path)
    contract, sha256 = contract_of(path), sha256_of(path)
    ten = Selection("heads", 10, 144, 8, 2, 4, 8, None)
    copies = [folded_model(path, sha256, Folds(contract, selection=one)) for one in (ten, replace(ten, most=20), None)]
    expected = {"heads": [2, 8, 10]}, {"heads": [2, 8, 20]}, {"heads": [2, 8, 144]}
    for copy, shapes in zip(copies, expected, strict=True):
        got = outputs(copy.source, folded_contract(contract), 2)
        assert {name: list(array.shape) for name, array in got.items()} == shapes


@pytest.mark.parametrize("damage", [b"", b"short", None])
def test_a_damaged_copy_is_made_anew(tmp_path: Path, cache: Path, damage: bytes | None) -> None:
    path = small(tmp_path / "small.onnx")
    file = copied(path).source
    assert isinstance(file, Path)
    whole = file.read_bytes()
    file.write_bytes(bytes([whole[0] ^ 1]) + whole[1:] if damage is None else damage)
    assert copied(path).source == file
    assert file.read_bytes() == whole
    assert list(cache.iterdir()) == [file]


def test_without_a_cache_the_copy_is_in_memory(tmp_path: Path, cache: Path) -> None:
    cache.parent.mkdir()
    cache.write_text("a file where the folder should be")
    path = small(tmp_path / "small.onnx")
    copy = copied(path)
    assert isinstance(copy.source, bytes)
    assert copy.kept == f"in memory: {cache} cannot be written: File exists"
    contract = contract_of(path)
    got = outputs(copy.source, folded_contract(contract), 1)
    np.testing.assert_array_equal(got["out"], outputs(path, contract, 1)["out"])


def test_unreadable_cache_keeps_the_copy_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its name is too long, for root as well, who may search a folder that others must not."""
    monkeypatch.setenv("CAMGRAPH_CACHE_DIR", str(tmp_path / ("n" * 300)))
    copy = copied(small(tmp_path / "small.onnx"))
    assert isinstance(copy.source, bytes)
    assert copy.kept.endswith("cannot be written: File name too long")


def test_without_a_home_the_copy_is_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAMGRAPH_CACHE_DIR", "relative")
    copy = copied(small(tmp_path / "small.onnx"))
    assert isinstance(copy.source, bytes)
    assert "expected an absolute path" in copy.kept


def test_weights_in_other_files_are_in_the_copy(tmp_path: Path) -> None:
    path = small(tmp_path / "small.onnx")
    model = onnx.load(path)
    weights = np.random.default_rng(0).normal(size=(1, 3, 16, 24)).astype(np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "weights"))
    model.graph.node[0].input[1] = "weights"
    (tmp_path / "beside").mkdir()
    path = tmp_path / "beside" / "small.onnx"
    onnx.save(model, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    assert_same_outputs(path)


def refused(path: Path, **declared: Any) -> str:
    with pytest.raises(CannotFold) as refusal:
        copied(path, **declared)
    return str(refusal.value)


def test_what_cannot_be_folded_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = small(tmp_path / "floats.onnx")
    taken = replace(contract_of(path), layout="nhwc", dtype="uint8", scale=1.0)
    assert why_no_pixels(taken) == "it takes uint8 RGB pictures as they are"
    numbers = contract_of(small(tmp_path / "numbers.onnx", TensorProto.INT32), scale=0.5)
    assert why_no_pixels(numbers).startswith("its input is int32, and scaled pixels are cut to whole numbers")
    monkeypatch.setattr(folded_models, "_MOST_BYTES", 10)
    assert refused(path) == f"it has {path.stat().st_size / 1e6:.0f} MB, expected at most 0 MB"


def test_a_model_that_hands_on_its_input_keeps_its_outputs(tmp_path: Path) -> None:
    """Folded, it would hand on uint8 pictures."""
    path = small(tmp_path / "small.onnx", outputs=("out", "images"))
    assert refused(path) == "with its preprocessing in its graph its outputs are others"


def test_the_name_of_a_copy_says_what_is_in_it(tmp_path: Path) -> None:
    path = small(tmp_path / "small.onnx")
    file = copied(path).source
    assert isinstance(file, Path)
    model, _, content = file.stem.split("-")
    assert sha256_of(path).startswith(model)
    assert hashlib.sha256(file.read_bytes()).hexdigest() == content
