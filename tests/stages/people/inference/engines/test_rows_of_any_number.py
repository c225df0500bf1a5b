"""Models on a GPU whose outputs have as many rows as there are people, for real on the CPU.

Exporters call the axis of such rows `batch`, as that of the pictures: one person in one picture then proves nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper

from camgraph.pipeline.messages import Array
from camgraph.stages.people.inference.batches import BatchRuns, Given
from camgraph.stages.people.inference.contracts import InputSettings, read_contract
from camgraph.stages.people.inference.engines.bindings import Place, RecordedRuns
from camgraph.stages.people.inference.engines.host_runs import HostRuns
from camgraph.stages.people.inference.engines.onnxruntime_engine import OnnxRuntimeEngine, signature_of
from camgraph.stages.people.inference.engines.pinned import plain_array
from camgraph.stages.vision.recognition import Declared

SIDE = 32
CUDA = "CUDAExecutionProvider"
DECLARED = Declared("yolo_v7_rows")
PEOPLE = (2, 1, 2, 3, 0, 1, 1)
"""In one picture after the other."""


@pytest.fixture(scope="module")
def session() -> ort.InferenceSession:
    """float32 (batch, 3, 32, 32) -> (batch, 7), a row of YOLOv7's for each bright pixel of the first line."""
    constants = {
        "begin": np.array([0, 0, 0]), "end": np.array([1, 1, SIDE]), "axes": np.array([1, 2, 3]),
        "half": np.float32(0.5), "where": np.eye(4, 7, dtype=np.float32)[[0, 2, 2, 1]],
        "rest": np.array([0, 0, 4, 8, 20, 0, 0.9], np.float32),
    }  # fmt: skip
    nodes = [
        helper.make_node("Slice", ["images", "begin", "end", "axes"], ["line"]),
        helper.make_node("Greater", ["line", "half"], ["bright"]),
        helper.make_node("NonZero", ["bright"], ["found"]),
        helper.make_node("Transpose", ["found"], ["rows"], perm=[1, 0]),
        helper.make_node("Cast", ["rows"], ["numbers"], to=TensorProto.FLOAT),
        helper.make_node("MatMul", ["numbers", "where"], ["placed"]),
        helper.make_node("Add", ["placed", "rest"], ["output"]),
    ]
    images = helper.make_tensor_value_info("images", TensorProto.FLOAT, ["batch", 3, SIDE, SIDE])
    output = helper.make_tensor_value_info("output", TensorProto.FLOAT, ["batch", 7])
    initial = [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, "g", [images], [output], initial)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    return ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def picture_of(people: int) -> Array:
    """uint8 (1, 32, 32, 3), with so many bright pixels."""
    picture = np.zeros((1, SIDE, SIDE, 3), np.uint8)
    picture[0, 0, :people, 0] = 255
    return picture


class Asked:
    """Makes ordinary arrays, and counts them."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, elements: int, dtype: str) -> Array:
        self.count += 1
        return plain_array(elements, dtype)


def on_host(session: ort.InferenceSession, new_array: Asked | None = None) -> OnnxRuntimeEngine:
    return OnnxRuntimeEngine(session, CUDA, HostRuns(session, signature_of(session), new_array or plain_array))


def runs_of(engine: OnnxRuntimeEngine) -> BatchRuns:
    contract = read_contract(engine.signature, "m", InputSettings(), kind=DECLARED)
    return BatchRuns(engine, contract, sizes=(1, 2, 8), most=8, declared=DECLARED)


def found_in(runs: BatchRuns, people: Sequence[int]) -> list[int]:
    return [row["output"].shape[1] for [row] in runs.rows([Given(picture_of(count)) for count in people])]


def test_each_picture_has_its_own_people(session: ort.InferenceSession) -> None:
    runs = runs_of(on_host(session))
    assert [found_in(runs, [count]) for count in PEOPLE] == [[count] for count in PEOPLE]
    assert found_in(runs, PEOPLE) == list(PEOPLE)


def test_no_memory_is_set_aside_for_rows_of_people(session: ort.InferenceSession) -> None:
    asked = Asked()
    runs = runs_of(on_host(session, asked))
    for _ in range(4):
        assert found_in(runs, [1]) == [1]
    assert asked.count == 0


@pytest.mark.parametrize("people", [(1, 1, 2, 1, 1, 3), (2, 1, 1, 1, 3), (1, 1, 0)])
def test_a_refused_run_is_made_again_without_shapes(session: ort.InferenceSession, people: Sequence[int]) -> None:
    """Of a model whose format nobody has declared."""
    asked = Asked()
    engine = on_host(session, asked)
    for count in people:
        found = engine.run({"images": picture_of(count).transpose(0, 3, 1, 2).astype(np.float32)})
        np.testing.assert_array_equal(found["output"][:, 1], np.arange(count))
    asked.count = 0
    for _ in range(2):
        for rows in (1, 2):
            engine.run({"images": np.repeat(picture_of(1).transpose(0, 3, 1, 2), rows, 0).astype(np.float32)})
    assert asked.count == 0, "what was wrong once is not believed again, for other shapes neither"


def test_rows_of_people_are_not_recorded(session: ort.InferenceSession) -> None:
    recorded = RecordedRuns(session, Place("cpu"))
    engine = OnnxRuntimeEngine(session, CUDA, recorded, unrecorded=lambda: on_host(session))
    runs = runs_of(engine)
    assert [found_in(runs, [count]) for count in PEOPLE] == [[count] for count in PEOPLE]
    assert engine.not_recorded == "how many rows its outputs have depends on the picture"
