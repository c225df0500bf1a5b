"""Runs in bound buffers, for real on the CPU: the same bits, nothing shared, nothing that grows.

What only a GPU can do (recordings, other devices) is shown by what is asked of ONNX Runtime: no GPU has run this.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper

from camgraph.pipeline.messages import Array
from camgraph.stages.people.inference.batches import BatchRuns, Given
from camgraph.stages.people.inference.engines import bindings
from camgraph.stages.people.inference.engines.bindings import MOST_SETS, NO_GRAPH, BoundSet, Place, RecordedRuns
from camgraph.stages.people.inference.engines.devices import number_of
from camgraph.stages.people.inference.engines.engine import RunFailed
from camgraph.stages.people.inference.engines.onnxruntime_engine import OnnxRuntimeEngine
from camgraph.stages.people.inference.engines.options import records
from camgraph.stages.vision.model_contract import InputContract

CPU = Place("cpu")


@pytest.fixture(scope="module")
def session() -> ort.InferenceSession:
    """`out`: a convolution; `same`: the input."""
    weights = np.random.default_rng(0).normal(0, 0.3, (4, 3, 3, 3)).astype(np.float32)
    nodes = [
        helper.make_node("Conv", ["images", "weights"], ["out"], pads=[1, 1, 1, 1]),
        helper.make_node("Identity", ["images"], ["same"]),
    ]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "g",
        [value("images", TensorProto.FLOAT, ["n", 3, "h", "w"])],
        [
            value("out", TensorProto.FLOAT, ["n", 4, "h", "w"]),
            value("same", TensorProto.FLOAT, ["n", 3, "h", "w"]),
        ],
        [helper.make_tensor("weights", TensorProto.FLOAT, weights.shape, weights.ravel())],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return opened(model)


class Wrapped:
    """A session on the CPU, so that buffers are real."""

    def __init__(self, session: ort.InferenceSession) -> None:
        self._session = session

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)


def opened(model: onnx.ModelProto) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    return ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def batch(seed: int, rows: int = 1, side: int = 16) -> dict[str, Array]:
    return {"images": np.random.default_rng(seed).random((rows, 3, side, side), dtype=np.float32)}


def plain(session: ort.InferenceSession, inputs: Mapping[str, Array]) -> dict[str, Array]:
    return OnnxRuntimeEngine(session, "cpu").run(inputs)  # type: ignore[return-value]


def assert_same(found: Mapping[str, Array], expected: Mapping[str, Array]) -> None:
    assert list(found) == list(expected)
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array, strict=True)


def test_the_bits_are_those_of_a_plain_run(session: ort.InferenceSession) -> None:
    runs = RecordedRuns(session, CPU)
    for seed, (rows, side) in enumerate([(1, 16), (4, 16), (1, 16), (2, 24), (4, 16), (1, 16)]):
        assert_same(runs.run(batch(seed, rows, side)), plain(session, batch(seed, rows, side)))


def test_what_was_given_out_stays_as_it_is(session: ort.InferenceSession) -> None:
    runs = RecordedRuns(session, CPU)
    inputs = batch(0)
    first = runs.run(inputs)
    kept = {name: array.copy() for name, array in first.items()}
    inputs["images"][...] = 7  # a caller fills its buffer again
    assert_same(first, kept)
    for seed in range(1, 20):
        runs.run(batch(seed))
    assert_same(first, kept)
    assert not any(np.shares_memory(array, inputs["images"]) for array in first.values())


class Strict:
    """A buffer that takes what lies in one piece, as a copy to a GPU may want it; the CPU's takes more."""

    def __init__(self, value: ort.OrtValue) -> None:
        self._value = value

    def update_inplace(self, array: Array) -> None:
        assert array.flags.c_contiguous
        self._value.update_inplace(array)


def test_noncontiguous_inputs_are_made_contiguous(
    session: ort.InferenceSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    bound = BoundSet(session, batch(0), CPU)
    monkeypatch.setattr(bound, "_inputs", {name: Strict(value) for name, value in bound._inputs.items()})
    whole = batch(1, 2)["images"]
    apart = {"images": whole[:, :, :, ::-1][1:]}
    assert not apart["images"].flags.c_contiguous
    assert_same(bound.run(apart), plain(session, {"images": apart["images"].copy()}))


def test_threads_do_not_disturb_each_other(session: ort.InferenceSession) -> None:
    runs = RecordedRuns(session, CPU)
    batches = [batch(seed, 1 + seed % 3) for seed in range(60)]
    with ThreadPoolExecutor(4) as pool:
        for inputs, found in zip(batches, pool.map(runs.run, batches), strict=True):
            assert_same(found, plain(session, inputs))


class Counted(BoundSet):
    made: list[BoundSet]

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.made.append(self)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[BoundSet]:
    """The sets of buffers that are made meanwhile."""
    Counted.made = []
    monkeypatch.setattr(bindings, "BoundSet", Counted)
    return Counted.made


def test_buffers_of_a_shape_are_made_once(session: ort.InferenceSession, made: list[BoundSet]) -> None:
    runs = RecordedRuns(session, CPU)
    for seed in range(12):
        runs.run(batch(seed, rows=(1, 2, 4)[seed % 3]))
    assert len(made) == 3


class Watched(Wrapped):
    """Says which threads run it."""

    def __init__(self, session: ort.InferenceSession) -> None:
        super().__init__(session)
        self.threads: set[int] = set()

    def run_with_iobinding(self, binding: Any, options: Any) -> None:
        self.threads.add(threading.get_ident())
        self._session.run_with_iobinding(binding, options)


def test_one_thread_runs_the_session_for_all(session: ort.InferenceSession) -> None:
    watched = Watched(session)
    runs = RecordedRuns(watched, CPU)  # type: ignore[arg-type]
    runs.run(batch(0))
    with ThreadPoolExecutor(3) as pool:
        for inputs, found in zip(map(batch, range(9)), pool.map(runs.run, map(batch, range(9))), strict=True):
            assert_same(found, plain(session, inputs))
    assert len(watched.threads) == 1
    assert threading.get_ident() not in watched.threads


def test_sets_of_many_shapes_are_bounded(session: ort.InferenceSession, made: list[BoundSet]) -> None:
    runs = RecordedRuns(session, CPU)
    for rows in range(1, MOST_SETS + 5):
        runs.run(batch(0, rows, side=4))
    assert len(runs._sets) == MOST_SETS
    assert len(made) == MOST_SETS + 4
    runs.run(batch(1, MOST_SETS, side=4))
    assert len(made) == MOST_SETS + 4, "it was still there"


def test_a_run_that_failed_leaves_nothing_behind(session: ort.InferenceSession) -> None:
    engine = OnnxRuntimeEngine(session, "cpu", RecordedRuns(session, CPU))
    for wrong in ({"images": np.zeros((1, 5, 8, 8), np.float32)}, {"other": np.zeros((1, 3, 8, 8), np.float32)}):
        with pytest.raises(RunFailed) as caught:
            engine.run(wrong)
        assert "\n" not in str(caught.value)
    assert_same(engine.run(batch(3)), plain(session, batch(3)))


def test_pictures_of_many_cameras_in_buckets(fixed: Recorder, made: list[BoundSet]) -> None:
    contract = InputContract("images", "nchw", "float32", "rgb", 1 / 255, None, None, None)
    pictures = [np.random.default_rng(i).integers(0, 256, (1, 8, 8, 3), dtype=np.uint8) for i in range(7)]
    engine = OnnxRuntimeEngine(fixed._session, "cpu", RecordedRuns(fixed._session, CPU))
    rows = BatchRuns(engine, contract, sizes=(1, 2, 4), most=32).rows([Given(picture) for picture in pictures])
    for picture, [row] in zip(pictures, rows, strict=True):
        np.testing.assert_array_equal(row["out"], (picture.transpose(0, 3, 1, 2) / 255).astype(np.float32))
    assert len(made) == 1, "7 pictures are two runs of a bucket of 4"


# --- recordings


class Recorder(Wrapped):
    """Says what was asked of it."""

    def __init__(self, session: ort.InferenceSession) -> None:
        super().__init__(session)
        self.runs: list[tuple[str, list[int]]] = []

    def run_with_iobinding(self, binding: Any, options: Any) -> None:
        graph = options.get_run_config_entry("gpu_graph_id") if options else "none"
        self._session.run_with_iobinding(binding, options)
        self.runs.append((graph, [value.data_ptr() for value in binding.get_outputs()]))


@pytest.fixture
def fixed() -> Recorder:
    """A model whose outputs' shapes follow from its input."""
    node = helper.make_node("Relu", ["images"], ["out"])
    shape = ["n", 3, "h", "w"]
    images, out = (helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in ("images", "out"))
    model = helper.make_model(
        helper.make_graph([node], "g", [images], [out]), opset_imports=[helper.make_opsetid("", 17)], ir_version=8
    )
    return Recorder(opened(model))


def test_each_bucket_has_its_own_recording_at_fixed_addresses(fixed: Recorder) -> None:
    runs = RecordedRuns(fixed, CPU)  # type: ignore[arg-type]
    for seed, rows in enumerate([1, 4, 1, 4, 4]):
        inputs = batch(seed, rows)
        assert_same(runs.run(inputs), {"out": inputs["images"]})
    graphs = [graph for graph, _ in fixed.runs]
    assert graphs == [str(NO_GRAPH), "1", str(NO_GRAPH), "2", "1", "2", "2"]
    for number in ("1", "2"):
        assert len({tuple(addresses) for graph, addresses in fixed.runs if graph == number}) == 1


def test_what_a_recording_gave_out_stays_as_it_is(fixed: Recorder) -> None:
    """It writes to the same addresses each time."""
    runs = RecordedRuns(fixed, CPU)  # type: ignore[arg-type]
    given = [batch(seed, 2) for seed in range(5)]
    outputs = [runs.run(inputs) for inputs in given]
    for inputs, output in zip(given, outputs, strict=True):
        assert_same(output, {"out": inputs["images"]})


def test_recordings_are_bounded(fixed: Recorder) -> None:
    runs = RecordedRuns(fixed, CPU)  # type: ignore[arg-type]
    for rows in range(1, MOST_SETS + 4):
        runs.run(batch(0, rows, side=2))
    assert {graph for graph, _ in fixed.runs} == {str(n) for n in (NO_GRAPH, *range(1, MOST_SETS + 1))}
    assert [graph for graph, _ in fixed.runs[-3:]] == [str(NO_GRAPH)] * 3


@pytest.mark.parametrize(
    ("provider", "options", "device", "recorded"),
    [
        ("cuda", {}, 0, False),
        ("cuda", {"device_id": "3", "enable_cuda_graph": "1"}, 3, True),
        ("tensorrt", {"device_id": "1", "trt_cuda_graph_enable": "True"}, 1, True),
        ("tensorrt", {"enable_cuda_graph": "1", "trt_cuda_graph_enable": "False"}, 0, False),
    ],
)
def test_what_a_provider_is_told_of_its_runs(
    provider: Any, options: dict[str, str], device: int, recorded: bool
) -> None:
    assert (number_of(options), records(provider, options)) == (device, recorded)


def test_batches_are_written_where_the_engine_wants_them(session: ort.InferenceSession) -> None:
    asked: list[tuple[int, str]] = []

    def new_array(elements: int, dtype: str) -> Array:
        asked.append((elements, dtype))
        return np.empty(elements, dtype)

    engine = OnnxRuntimeEngine(session, "cpu", new_array=new_array)
    contract = InputContract("images", "nchw", "float32", "rgb", 1 / 255, None, None, None)
    BatchRuns(engine, contract, sizes=(), most=8).rows([Given(np.zeros((2, 8, 8, 3), np.uint8))])
    assert asked[-1] == (2 * 3 * 8 * 8, "float32")
