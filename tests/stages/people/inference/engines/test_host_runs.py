"""Runs into the caller's own memory, for real on the CPU: the same bits, nothing shared, nothing believed unseen."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper

from camgraph.pipeline.messages import Array
from camgraph.stages.people.inference.engines.host_runs import MOST_SESSIONS, MOST_SHAPES, HostRuns, output_shapes
from camgraph.stages.people.inference.engines.onnxruntime_engine import signature_of
from camgraph.stages.people.inference.engines.pinned import plain_array

value = helper.make_tensor_value_info


def opened(nodes: list[onnx.NodeProto], outputs: list[onnx.ValueInfoProto]) -> ort.InferenceSession:
    half = helper.make_tensor("half", TensorProto.FLOAT, [], [0.5])
    images = value("images", TensorProto.FLOAT, ["n", 3, "h", "w"])
    graph = helper.make_graph(nodes, "g", [images], outputs, [half])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    options = ort.SessionOptions()
    options.log_severity_level = 4
    return ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


@pytest.fixture
def heads() -> ort.InferenceSession:
    """`double`, of the input's shape; `over`, truths."""
    nodes = [
        helper.make_node("Add", ["images", "images"], ["double"]),
        helper.make_node("Greater", ["images", "half"], ["over"]),
    ]
    shape = ["n", 3, "h", "w"]
    return opened(nodes, [value("double", TensorProto.FLOAT, shape), value("over", TensorProto.BOOL, shape)])


class Asked:
    """Makes ordinary arrays and says for how many elements it was asked."""

    def __init__(self) -> None:
        self.elements: list[int] = []

    def __call__(self, elements: int, dtype: str) -> Array:
        self.elements.append(elements)
        return plain_array(elements, dtype)


def batch(seed: int, rows: int = 1, side: int = 8) -> dict[str, Array]:
    return {"images": np.random.default_rng(seed).random((rows, 3, side, side), dtype=np.float32)}


def assert_right(found: Mapping[str, Array], inputs: Mapping[str, Array]) -> None:
    np.testing.assert_array_equal(found["double"], inputs["images"] * 2, strict=True)
    np.testing.assert_array_equal(found["over"], inputs["images"] > 0.5, strict=True)


def test_outputs_are_written_where_the_caller_wants_them(heads: ort.InferenceSession) -> None:
    asked = Asked()
    runs = HostRuns(heads, signature_of(heads), asked)
    given = [batch(seed, rows, side) for seed, (rows, side) in enumerate([(1, 8), (4, 8), (1, 8), (4, 8), (2, 6)])]
    found = [runs.run(inputs) for inputs in given]
    for inputs, outputs in zip(given, found, strict=True):
        assert_right(outputs, inputs)
    assert asked.elements == [192, 192, 768, 768], "both outputs, from the second run of each shape on"


def test_threads_do_not_disturb_each_other(heads: ort.InferenceSession) -> None:
    runs = HostRuns(heads, signature_of(heads), plain_array)
    batches = [batch(seed, 1 + seed % 3) for seed in range(60)]
    with ThreadPoolExecutor(4) as pool:
        for inputs, found in zip(batches, pool.map(runs.run, batches), strict=True):
            assert_right(found, inputs)


def test_rows_that_lie_apart_are_put_together(heads: ort.InferenceSession) -> None:
    runs = HostRuns(heads, signature_of(heads), plain_array)
    for seed in range(3):
        apart = {"images": batch(seed, 2)["images"][:, :, :, ::-1]}
        assert not apart["images"].flags.c_contiguous
        assert_right(runs.run(apart), apart)


@pytest.mark.parametrize("declared", [["n", 3, "w", "k"], ["n", 3, 5, "w"], ["h", 3, "h", "w"]])
def test_a_model_that_states_wrong_or_open_sides_still_runs(declared: list[str | int]) -> None:
    """A name may stand for anything, and only a run shows it."""
    session = opened([helper.make_node("Relu", ["images"], ["out"])], [value("out", TensorProto.FLOAT, declared)])
    asked = Asked()
    runs = HostRuns(session, signature_of(session), asked)
    for seed in range(3):
        inputs = batch(seed)
        np.testing.assert_array_equal(runs.run(inputs)["out"], inputs["images"], strict=True)
    assert asked.elements == []


def test_shapes_that_depend_on_the_picture_are_left_to_the_run() -> None:
    nodes = [
        helper.make_node("Greater", ["images", "half"], ["over"]),
        helper.make_node("NonZero", ["over"], ["bright"]),
    ]
    session = opened(nodes, [value("bright", TensorProto.INT64, [4, "k"])])
    runs = HostRuns(session, signature_of(session), plain_array)
    for seed in range(4):
        inputs = batch(seed)
        np.testing.assert_array_equal(runs.run(inputs)["bright"], np.array(np.nonzero(inputs["images"] > 0.5)))


def test_what_is_remembered_of_shapes_is_bounded(heads: ort.InferenceSession) -> None:
    runs = HostRuns(heads, signature_of(heads), plain_array)
    for side in range(1, MOST_SHAPES + 10):
        assert_right(runs.run(inputs := batch(side, side=side)), inputs)
    assert len(runs._by_shape) == MOST_SHAPES


class OneSession:
    """Says with which shapes it was run."""

    def __init__(self, session: ort.InferenceSession) -> None:
        self._session = session
        self.shapes: set[tuple[int, ...]] = set()

    def run(self, names: list[str], inputs: Mapping[str, Array]) -> list[Array]:
        self.shapes.add(inputs["images"].shape)
        outputs: list[Array] = self._session.run(names, inputs)
        return outputs

    def run_with_ortvaluevector(self, options: object, names: list[str], feeds: Any, *others: object) -> None:
        self.shapes.add(tuple(feeds[0].shape()))
        self._session.run_with_ortvaluevector(options, names, feeds, *others)


def test_each_shape_has_a_session_up_to_a_limit(heads: ort.InferenceSession) -> None:
    opened_ones = [OneSession(heads)]

    def another() -> OneSession:
        opened_ones.append(OneSession(heads))
        return opened_ones[-1]

    runs = HostRuns(opened_ones[0], signature_of(heads), plain_array, another)  # type: ignore[arg-type]
    for _ in range(3):
        for rows in range(1, 4):
            assert_right(runs.run(inputs := batch(rows, rows)), inputs)
    assert [len(session.shapes) for session in opened_ones] == [1, 1, 1]
    for rows in range(1, MOST_SESSIONS + 4):
        assert_right(runs.run(inputs := batch(rows, rows)), inputs)
    assert len(opened_ones) == MOST_SESSIONS


def test_threads_that_meet_a_new_shape_open_one_session(heads: ort.InferenceSession) -> None:
    opened_ones: list[ort.InferenceSession] = []

    def another() -> ort.InferenceSession:
        opened_ones.append(heads)
        return heads

    runs = HostRuns(heads, signature_of(heads), plain_array, another)
    runs.run(batch(0, 1))
    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(runs.run, [batch(seed, 2) for seed in range(40)]):
            assert found["double"].shape == (2, 3, 8, 8)
    assert len(opened_ones) == 1


def test_wrong_input_raises_onnx_runtime_error(heads: ort.InferenceSession) -> None:
    runs = HostRuns(heads, signature_of(heads), plain_array)
    runs.run(batch(0))
    with pytest.raises(Exception, match="INVALID_ARGUMENT"):
        runs.run({"images": np.zeros((3, 8), np.float32)})


def test_sides_of_outputs_follow_from_names_and_numbers(heads: ort.InferenceSession) -> None:
    signature = signature_of(heads)
    assert output_shapes(signature, {"images": (2, 3, 5, 7)}) == [(2, 3, 5, 7), (2, 3, 5, 7)]
    assert output_shapes(signature, {}) is None


def test_a_shape_that_did_not_fit_leaves_no_session_behind(heads: ort.InferenceSession) -> None:
    class Full(OneSession):
        def run(self, names: list[str], inputs: Mapping[str, Array]) -> list[Array]:
            raise RuntimeError("no memory")

    runs = HostRuns(heads, signature_of(heads), plain_array, lambda: Full(heads))  # type: ignore[arg-type,return-value]
    runs.run(batch(0, 1))
    for rows in (8, 4):
        with pytest.raises(RuntimeError, match="no memory"):
            runs.run(batch(0, rows))
    assert len(runs._sessions) == 1
    assert_right(runs.run(inputs := batch(1, 1)), inputs)
