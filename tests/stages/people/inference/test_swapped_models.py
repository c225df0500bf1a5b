"""A model's file that is swapped while it is being opened: what is reported is what runs, or it is refused."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from camgraph.pipeline.errors import UserError
from camgraph.pipeline.testing import opened
from camgraph.stages.people.infer import Infer
from camgraph.stages.people.inference import readiness
from camgraph.stages.people.inference.model.model_files import sha256_of, unchanged
from camgraph.stages.people.inference.selection.opening import open_model


def write(path: Path, factor: float) -> Path:
    """images (n, 3, 32, 32) float32 -> out (n, 1): the mean times ``factor``. All of these have the same shapes."""
    nodes = [
        helper.make_node("ReduceMean", ["images"], ["mean"], axes=[1, 2, 3], keepdims=0),
        helper.make_node("Unsqueeze", ["mean", "last"], ["column"]),
        helper.make_node("Mul", ["column", "factor"], ["out"]),
    ]
    constants = [
        numpy_helper.from_array(np.array([1], np.int64), "last"),
        numpy_helper.from_array(np.array([factor], np.float32), "factor"),
    ]
    graph = helper.make_graph(
        nodes,
        "mean",
        [helper.make_tensor_value_info("images", TensorProto.FLOAT, ["n", 3, 32, 32])],
        [helper.make_tensor_value_info("out", TensorProto.FLOAT, ["n", 1])],
        constants,
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write(tmp_path / "m.onnx", 1.0)


def replaced(model: Path) -> None:
    write(model.with_name("new"), 2.0).replace(model)


def written_over(model: Path) -> None:
    other = write(model.with_name("new"), 2.0)
    with model.open("r+b") as file, other.open("rb") as new:
        shutil.copyfileobj(new, file)
    os.utime(model, ns=(0, 0))


def truncated(model: Path) -> None:
    os.truncate(model, 100)


def removed(model: Path) -> None:
    model.unlink()


SWAPS = [replaced, written_over, truncated, removed]


@pytest.mark.parametrize("swap", SWAPS)
def test_model_swapped_after_verification_is_refused(
    model: Path, monkeypatch: pytest.MonkeyPatch, swap: Callable[[Path], None]
) -> None:
    """Else events would name one model, and another would run."""
    verified = readiness.verify_model

    def then_swapped(path: Path, sha256: str | None) -> None:
        verified(path, sha256)
        swap(path)

    monkeypatch.setattr(readiness, "verify_model", then_swapped)
    with pytest.raises(UserError, match=r"m\.onnx"):
        with opened(Infer, {"model": "m.onnx", "sha256": sha256_of(model)}, folder=model.parent):
            pass


def test_model_swapped_after_it_was_opened_is_refused(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def swapped(*arguments: Any) -> Any:
        opened_model = open_model(*arguments)
        replaced(model)
        return opened_model

    monkeypatch.setattr(readiness, "open_model", swapped)
    with pytest.raises(UserError, match="it was changed while it was being opened"):
        with opened(Infer, {"model": "m.onnx"}, folder=model.parent, threads=2):
            pass


@pytest.mark.parametrize("swap", SWAPS)
def test_each_way_of_changing_a_file_is_seen(model: Path, swap: Callable[[Path], None]) -> None:
    with pytest.raises(UserError, match="it was changed while it was being opened"):
        with unchanged(model):
            swap(model)


def test_reading_and_touching_its_times_of_access_is_no_change(model: Path) -> None:
    with unchanged(model):
        model.read_bytes()
        os.utime(model, ns=(0, model.stat().st_mtime_ns))
