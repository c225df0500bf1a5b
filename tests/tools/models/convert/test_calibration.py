"""Models that give no numbers on the frames that they are calibrated on, and what ONNX Runtime says meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import cv2
import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from onnx import TensorProto, helper, numpy_helper

from camgraph.tools.cli import main

LARGEST = 3e38


def network(path: Path, *middle: str) -> Path:
    """images -> Conv whose sums are infinite -> these operators -> two Conv -> out."""
    nodes = [helper.make_node("Conv", ["images", "w0"], ["v0"], pads=[1, 1, 1, 1], name="first")]
    for number, operator in enumerate(middle):
        inputs = [f"v{number}"] * (2 if operator == "Sub" else 1)
        nodes.append(helper.make_node(operator, inputs, [f"v{number + 1}"], name=operator))
    last = f"v{len(middle)}"
    nodes += [
        helper.make_node("Conv", [last, "w1"], ["x"], pads=[1, 1, 1, 1], name="further"),
        helper.make_node("Conv", ["x", "w1"], ["out"], pads=[1, 1, 1, 1], name="last"),
    ]
    weights = {"w0": np.full((4, 3, 3, 3), LARGEST, np.float32), "w1": np.ones((4, 4, 3, 3), np.float32)}
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "g",
        [value("images", TensorProto.FLOAT, ["n", 3, 16, 16])],
        [value("out", TensorProto.FLOAT, ["n", 4, 16, 16])],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


@pytest.mark.parametrize(
    ("middle", "words"),
    [
        (("Sub",), "m.onnx: output `out` has values that are no numbers (NaN or infinity) for frame 1"),
        (("Sigmoid",), "m.onnx: value `v0` between its nodes is infinite"),
        (("Sub", "Relu", "Sigmoid"), "no numbers"),
    ],
    ids=["NaN in the output", "infinity between the nodes", "NaN between the nodes"],
)
@pytest.mark.processes
def test_what_gives_no_numbers_is_not_quantized(tmp_path: Path, middle: tuple[str, ...], words: str) -> None:
    picture, out = tmp_path / "p.png", tmp_path / "out.onnx"
    cv2.imwrite(str(picture), np.full((16, 16, 3), 200, np.uint8))
    model = network(tmp_path / "m.onnx", *middle)
    result = CliRunner().invoke(main, ["model", "quantize", str(model), str(out), "--frames", str(picture)])
    assert result.exit_code == 2, result.output
    assert words in result.output
    assert len(result.output.splitlines()) == 1
    assert not out.exists()


@pytest.mark.parametrize("way", [["--dynamic"], ["--frames", "p.png"]])
def test_warnings_of_onnx_runtime_are_not_shown(
    tmp_path: Path, tiny_model: Path, camgraph: Callable[..., CompletedProcess[str]], way: list[str]
) -> None:
    """In a process of its own: in this one, others may have silenced it."""
    whole = onnx.load(str(tiny_model))
    whole.graph.initializer.append(helper.make_tensor("idle", TensorProto.FLOAT, [1], [1.0]))
    onnx.save(whole, str(tiny_model))
    cv2.imwrite(str(tmp_path / "p.png"), np.full((32, 32, 3), 200, np.uint8))
    result = camgraph("model", "quantize", tiny_model, "out.onnx", *way)
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
