"""What lighter models calculate, and how it is told."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import cv2
import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from onnx import helper

from camgraph.stages.people.inference.model.flops import work_of
from camgraph.tools.cli import main
from camgraph.tools.models.declaration import DeclaredModel
from camgraph.tools.models.inspect.inspection import inspect, lines

TINY = 2 * 32 * 32 * (8 * 27 + 4 * 72)
"""Operations of the tiny model."""


@pytest.mark.parametrize(
    "command",
    [("fp16",), ("quantize", "--dynamic"), ("quantize", "--frames", "p.png")],
    ids=["fp16", "dynamic", "int8"],
)
def test_a_lighter_model_calculates_as_much_as_the_first(
    tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    cv2.imwrite("p.png", np.full((32, 32, 3), 200, np.uint8))
    name, *options = command
    made = CliRunner().invoke(main, ["model", name, str(tiny_model), "lighter.onnx", *options])
    assert made.exit_code == 0, made.output
    found = inspect(DeclaredModel(tmp_path / "lighter.onnx")).work
    assert found.total == inspect(DeclaredModel(tiny_model)).work.total == TINY
    assert not found.unknown


def test_half_precision_is_written_in_order(tiny_model: Path, tmp_path: Path) -> None:
    CliRunner().invoke(main, ["model", "fp16", str(tiny_model), str(tmp_path / "half.onnx")])
    graph = onnx.load(str(tmp_path / "half.onnx")).graph
    there = {value.name for value in graph.input} | {entry.name for entry in graph.initializer}
    for node in graph.node:
        assert set(node.input) <= there, f"{node.name} reads what comes behind it"
        there.update(node.output)


def test_what_nobody_can_count_leaves_the_rest_as_it_is(tiny_model: Path) -> None:
    whole = onnx.load(str(tiny_model))
    whole.graph.node.append(helper.make_node("LSTM", ["out", "", ""], ["", "h"]))
    found = work_of(whole, {"images": (1, 3, 32, 32)})
    assert (found.total, found.unknown) == (TINY, Counter(LSTM=1))


def test_a_lower_bound_is_called_one(tmp_path: Path, tiny_model: Path) -> None:
    whole = onnx.load(str(tiny_model))
    whole.graph.node.append(helper.make_node("Einsum", ["out"], ["rows"], equation="nchw->n"))
    onnx.save(whole, str(tiny_model))
    text = "\n".join(lines(inspect(DeclaredModel(tiny_model))))
    assert "at least 0.00 GFLOP a picture of 32 x 32: Conv 0.00, not known of 1 nodes (Einsum 1)" in text
