"""What models calculate, and where."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper, shape_inference

from camgraph.stages.people.inference.engines.engine import Placement
from camgraph.stages.people.inference.model import flops
from camgraph.stages.people.inference.model.flops import NodeWork, Work, work_of
from camgraph.stages.people.inference.selection.placed_work import work_shares


def products(*nodes: onnx.NodeProto, out: str, **weights: np.ndarray) -> onnx.ModelProto:
    """A model of images (1, 3, 8, 8) with these nodes."""
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "g",
        [value("images", TensorProto.FLOAT, ["n", 3, 8, 8])],
        [value(out, TensorProto.FLOAT, None)],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    )


W = np.zeros((4, 3, 3, 3), np.float32)
CONVOLUTION = 2 * (4 * 6 * 6) * 27


def test_products_of_quantized_and_fused_models_are_counted() -> None:
    scale, zero, whole = np.float32(1), np.uint8(0), np.zeros((4, 3, 3, 3), np.uint8)
    quantize = helper.make_node("QuantizeLinear", ["images", "s", "z"], ["q"])
    linear = helper.make_node("QLinearConv", ["q", "s", "z", "w8", "s", "z", "s", "z"], ["c"])
    matrix = helper.make_node("QLinearMatMul", ["c", "s", "z", "m8", "s", "z", "s", "z"], ["d"])
    back = helper.make_node("DequantizeLinear", ["d", "s", "z"], ["out"])
    made = products(
        quantize, linear, matrix, back, out="out",
        s=np.asarray(scale), z=np.asarray(zero), w8=whole, m8=np.zeros((6, 5), np.uint8),
    )  # fmt: skip
    found = work_of(made, {"images": (1, 3, 8, 8)})
    assert found.by_operator == {"QLinearConv": CONVOLUTION, "QLinearMatMul": 2 * (4 * 6 * 5) * 6}
    fused = helper.make_node("FusedConv", ["images", "w"], ["out"], domain="com.microsoft", activation="Relu")
    assert work_of(products(fused, out="out", w=W), {"images": (1, 3, 8, 8)}).by_operator == {"FusedConv": CONVOLUTION}


def test_a_node_that_nobody_can_count_makes_it_a_lower_bound() -> None:
    known = helper.make_node("Conv", ["images", "w"], ["c"])
    foreign = helper.make_node("Own", ["c"], ["d"], domain="mine")
    behind = helper.make_node("MatMul", ["d", "m"], ["out"])
    model = products(known, foreign, behind, out="out", w=W, m=np.zeros((6, 5), np.float32))
    found = work_of(model, {"images": (1, 3, 8, 8)})
    assert (found.total, found.unknown) == (CONVOLUTION, Counter(Own=1, MatMul=1))


CUDA, CPU = "CUDAExecutionProvider", "CPUExecutionProvider"
WORK = Work((NodeWork("a", "Conv", 60), NodeWork("b", "Conv", 30), NodeWork("c", "MatMul", 10)))


def placed(cuda: Counter[str], cpu: Counter[str], **names: set[str]) -> Placement:
    own = {provider: frozenset(names.get(key, set())) for provider, key in ((CUDA, "on_cuda"), (CPU, "on_cpu"))}
    return Placement({CUDA: cuda, CPU: cpu}, own)


def test_work_is_where_its_nodes_are() -> None:
    by_name = placed(Counter(Conv=1, Relu=7), Counter(Conv=1, MatMul=1), on_cuda={"a"}, on_cpu={"b", "c"})
    assert work_shares(WORK, by_name) == {CUDA: 0.6, CPU: 0.4}
    by_operator = placed(Counter(FusedConv=2, Relu=7), Counter(MatMul=1))
    assert work_shares(WORK, by_operator) == {CUDA: 0.9, CPU: 0.1}
    assert work_shares(WORK, Placement({CPU: Counter(Conv=2)})) == {CPU: 1.0}


def test_work_of_renamed_operators_is_attributed() -> None:
    openvino = Placement({"f32": Counter(Convolution=2, FullyConnected=1), "u8": Counter(Convert=3)})
    assert work_shares(WORK, openvino) == {"f32": 1.0, "u8": 0.0}
    int8 = placed(Counter(QLinearConv=2), Counter(DynamicQuantizeMatMul=1, ConvTranspose=4))
    assert work_shares(WORK, int8) == {CUDA: 0.9, CPU: 0.1}


def test_fused_nodes_are_not_mistaken_for_kept_ones() -> None:
    products = Work((NodeWork("fc1", "MatMul", 90), NodeWork("fc2", "MatMul", 10)))
    fused = placed(Counter(Gemm=1), Counter(MatMul=1), on_cuda={"fc1/MatMulAddFusion"}, on_cpu={"fc2"})
    assert work_shares(products, fused) is None


def test_of_work_that_is_not_found_again_no_share_is_told() -> None:
    assert work_shares(WORK, placed(Counter(Conv=1), Counter(Conv=1, MatMul=1))) is None, "on which of the two?"
    assert work_shares(WORK, placed(Counter(Conv=2), Counter(Relu=1))) is None, "no MatMul at all"
    some = Work((*WORK.nodes, NodeWork("d", "LSTM", None)))
    assert work_shares(some, placed(Counter(Conv=2), Counter(MatMul=1, LSTM=1))) is None, "how much of it is known?"
    assert work_shares(Work(), placed(Counter(Relu=2), Counter(Relu=1))) is None, "nothing calculates"


def test_large_weights_are_not_copied_to_find_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def infer(model: onnx.ModelProto, **options: Any) -> onnx.ModelProto:
        seen.append(model.ByteSize())
        return shape_inference.infer_shapes(model, **options)

    monkeypatch.setattr(flops, "shape_inference", SimpleNamespace(infer_shapes=infer))
    weights = np.ones((4000, 3, 3, 3), np.float32)
    written = helper.make_node("Constant", [], ["w2"], value=numpy_helper.from_array(weights, "w2"))
    nodes = [helper.make_node("Conv", ["images", name], [f"{name}_seen"]) for name in ("w1", "w2")]
    model = products(written, *nodes, out="w2_seen", w1=weights)
    before = model.SerializeToString(deterministic=True)
    assert work_of(model, {"images": (1, 3, 8, 8)}).total == 2 * 2 * 36 * 4000 * 27
    assert seen
    assert max(seen) < 10_000 < len(before)
    assert model.SerializeToString(deterministic=True) == before


def test_sides_are_read_from_large_tables() -> None:
    """A table of 5000 integers, of which a node takes the sides of a picture."""
    table = np.zeros(5000, np.int64)
    table[:4] = (1, 3, 64, 1)
    nodes = [
        helper.make_node("Slice", ["table", "first", "end"], ["sides"]),
        helper.make_node("Reshape", ["images", "sides"], ["tall"]),
        helper.make_node("Conv", ["tall", "w"], ["out"]),
    ]
    made = products(
        *nodes, out="out", table=table, first=np.array([0]), end=np.array([4]), w=np.zeros((4, 3, 1, 1), np.float32)
    )
    assert work_of(made, {"images": (1, 3, 8, 8)}).total == 2 * 4 * 64 * 3
