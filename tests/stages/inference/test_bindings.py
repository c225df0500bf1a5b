"""Runs in bound buffers, for real on the CPU: the same bits, nothing shared, nothing that grows.

What only a GPU can do (recordings, other devices) is shown by what is asked of ONNX Runtime: no GPU has run this.
"""

from __future__ import annotations

import ctypes
import gc
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper

from pipeline.messages import Array
from stages.inference import bindings, onnxruntime_engine, pinned
from stages.inference.batches import BatchRuns, Given
from stages.inference.bindings import MOST_SETS, NO_GRAPH, BoundRuns, BoundSet, Place
from stages.inference.engine import RunFailed
from stages.inference.onnxruntime_engine import OnnxRuntimeEngine, on_cuda
from stages.vision.model_contract import InputContract

CPU = Place("cpu")


@pytest.fixture(scope="module")
def session() -> ort.InferenceSession:
    """`out`: a convolution; `same`: the input; `bright`: where that is over 0.5, of a shape that depends on it."""
    weights = np.random.default_rng(0).normal(0, 0.3, (4, 3, 3, 3)).astype(np.float32)
    half = helper.make_tensor("half", TensorProto.FLOAT, [], [0.5])
    nodes = [
        helper.make_node("Conv", ["images", "weights"], ["out"], pads=[1, 1, 1, 1]),
        helper.make_node("Identity", ["images"], ["same"]),
        helper.make_node("Greater", ["images", "half"], ["over"]),
        helper.make_node("NonZero", ["over"], ["bright"]),
    ]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "g",
        [value("images", TensorProto.FLOAT, ["n", 3, "h", "w"])],
        [
            value("out", TensorProto.FLOAT, ["n", 4, "h", "w"]),
            value("same", TensorProto.FLOAT, ["n", 3, "h", "w"]),
            value("bright", TensorProto.INT64, [4, "k"]),
        ],
        [helper.make_tensor("weights", TensorProto.FLOAT, weights.shape, weights.ravel()), half],
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
    runs = BoundRuns(session, CPU)
    for seed, (rows, side) in enumerate([(1, 16), (4, 16), (1, 16), (2, 24), (4, 16), (1, 16)]):
        assert_same(runs.run(batch(seed, rows, side)), plain(session, batch(seed, rows, side)))


def test_what_was_given_out_stays_as_it_is(session: ort.InferenceSession) -> None:
    runs = BoundRuns(session, CPU)
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


def test_rows_that_lie_apart_are_put_together_before_they_are_copied(
    session: ort.InferenceSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    bound = BoundSet(session, batch(0), CPU)
    monkeypatch.setattr(bound, "_inputs", {name: Strict(value) for name, value in bound._inputs.items()})
    whole = batch(1, 2)["images"]
    apart = {"images": whole[:, :, :, ::-1][1:]}
    assert not apart["images"].flags.c_contiguous
    assert_same(bound.run(apart), plain(session, {"images": apart["images"].copy()}))


def test_threads_do_not_disturb_each_other(session: ort.InferenceSession) -> None:
    runs = BoundRuns(session, CPU)
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
    runs = BoundRuns(session, CPU)
    for seed in range(12):
        runs.run(batch(seed, rows=(1, 2, 4)[seed % 3]))
    assert len(made) == 3


class Meeting(Wrapped):
    """A session in which two runs wait for each other."""

    def __init__(self, session: ort.InferenceSession, wait_s: float) -> None:
        super().__init__(session)
        self._barrier = threading.Barrier(2)
        self._wait_s = wait_s

    def run_with_iobinding(self, binding: Any, options: Any) -> None:
        self._barrier.wait(self._wait_s)
        self._session.run_with_iobinding(binding, options)


def test_threads_that_run_at_once_have_buffers_each(session: ort.InferenceSession, made: list[BoundSet]) -> None:
    runs = BoundRuns(Meeting(session, 60), CPU)  # type: ignore[arg-type]
    with ThreadPoolExecutor(2) as pool:
        for _ in range(3):
            batches = [batch(1), batch(2)]
            for inputs, found in zip(batches, pool.map(runs.run, batches), strict=True):
                assert_same(found, plain(session, inputs))
    assert len(made) == 2


def test_runs_that_are_recorded_come_one_after_the_other(session: ort.InferenceSession) -> None:
    runs = BoundRuns(Meeting(session, 0.2), CPU, graphs=True)  # type: ignore[arg-type]
    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(runs.run, batch(seed)) for seed in range(2)]:
            with pytest.raises(threading.BrokenBarrierError):
                done.result(60)


def test_sets_of_many_shapes_are_bounded(session: ort.InferenceSession, made: list[BoundSet]) -> None:
    runs = BoundRuns(session, CPU)
    for rows in range(1, MOST_SETS + 5):
        runs.run(batch(0, rows, side=4))
    with runs._lane() as lane:
        assert len(lane) == MOST_SETS
    assert len(made) == MOST_SETS + 4
    runs.run(batch(1, MOST_SETS, side=4))
    assert len(made) == MOST_SETS + 4, "it was still there"


def test_a_run_that_failed_leaves_nothing_behind(session: ort.InferenceSession) -> None:
    engine = OnnxRuntimeEngine(session, "cpu", BoundRuns(session, CPU))
    for wrong in ({"images": np.zeros((1, 5, 8, 8), np.float32)}, {"other": np.zeros((1, 3, 8, 8), np.float32)}):
        with pytest.raises(RunFailed) as caught:
            engine.run(wrong)
        assert "\n" not in str(caught.value)
    assert_same(engine.run(batch(3)), plain(session, batch(3)))


def test_pictures_of_many_cameras_in_buckets(fixed: Recorder, made: list[BoundSet]) -> None:
    contract = InputContract("images", "nchw", "float32", "rgb", 1 / 255, None, None, None)
    pictures = [np.random.default_rng(i).integers(0, 256, (1, 8, 8, 3), dtype=np.uint8) for i in range(7)]
    engine = OnnxRuntimeEngine(fixed._session, "cpu", BoundRuns(fixed._session, CPU))
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
    runs = BoundRuns(fixed, CPU, graphs=True)  # type: ignore[arg-type]
    for seed, rows in enumerate([1, 4, 1, 4, 4]):
        inputs = batch(seed, rows)
        assert_same(runs.run(inputs), {"out": inputs["images"]})
    graphs = [graph for graph, _ in fixed.runs]
    assert graphs == [str(NO_GRAPH), "1", str(NO_GRAPH), "2", "1", "2", "2"]
    for number in ("1", "2"):
        assert len({tuple(addresses) for graph, addresses in fixed.runs if graph == number}) == 1


def test_what_a_recording_gave_out_stays_as_it_is(fixed: Recorder) -> None:
    """It writes to the same addresses each time."""
    runs = BoundRuns(fixed, CPU, graphs=True)  # type: ignore[arg-type]
    given = [batch(seed, 2) for seed in range(5)]
    outputs = [runs.run(inputs) for inputs in given]
    for inputs, output in zip(given, outputs, strict=True):
        assert_same(output, {"out": inputs["images"]})


def test_recordings_are_bounded(fixed: Recorder) -> None:
    runs = BoundRuns(fixed, CPU, graphs=True)  # type: ignore[arg-type]
    for rows in range(1, MOST_SETS + 4):
        runs.run(batch(0, rows, side=2))
    assert {graph for graph, _ in fixed.runs} == {str(n) for n in (NO_GRAPH, *range(1, MOST_SETS + 1))}
    assert [graph for graph, _ in fixed.runs[-3:]] == [str(NO_GRAPH)] * 3


def test_nothing_is_said_of_recordings_where_none_are_wanted(fixed: Recorder) -> None:
    BoundRuns(fixed, CPU).run(batch(0))  # type: ignore[arg-type]
    assert [graph for graph, _ in fixed.runs] == ["none"]


# --- on CUDA


@pytest.mark.parametrize(
    ("provider", "options", "place", "graphs"),
    [
        ("cuda", {}, Place("cuda", 0), False),
        ("cuda", {"device_id": "3", "enable_cuda_graph": "1"}, Place("cuda", 3), True),
        ("tensorrt", {"device_id": "1", "trt_cuda_graph_enable": "1"}, Place("cuda", 1), True),
        ("tensorrt", {"enable_cuda_graph": "1", "trt_cuda_graph_enable": "0"}, Place("cuda", 0), False),
    ],
)
def test_where_buffers_lie_on_cuda(provider: Any, options: dict[str, str], place: Place, graphs: bool) -> None:
    assert on_cuda(provider, options) == (place, graphs)


class Pretended(Wrapped):
    """Claims to be on CUDA."""

    def get_providers(self) -> list[str]:
        return ["CUDAExecutionProvider", "CPUExecutionProvider"]


@pytest.mark.parametrize(("bound", "sets"), [(True, 1), (False, 0)])
def test_on_cuda_runs_are_bound_unless_the_graph_says_no(
    session: ort.InferenceSession,
    made: list[BoundSet],
    monkeypatch: pytest.MonkeyPatch,
    bound: bool,
    sets: int,
) -> None:
    monkeypatch.setattr(onnxruntime_engine, "offered", lambda: {"cuda", "cpu"})
    monkeypatch.setattr(onnxruntime_engine.ort, "InferenceSession", lambda *_, **__: Pretended(session))
    monkeypatch.setattr(onnxruntime_engine, "on_cuda", lambda *_: (CPU, False))
    monkeypatch.setattr(onnxruntime_engine, "pinned_arrays", lambda: pinned.plain_array)
    engine = onnxruntime_engine.open_with({"cuda": {}, "cpu": {}}, Path("m.onnx"), threads=1, bound=bound)
    assert_same(engine.run(batch(0)), plain(session, batch(0)))
    assert len(made) == sets


class Cudart:
    """What is asked of the CUDA runtime."""

    def __init__(self, answer: int) -> None:
        self.answer = answer
        self.locked: dict[int, int] = {}

    def cudaHostRegister(self, address: ctypes.c_void_p, size: ctypes.c_size_t, flags: int) -> int:  # noqa: N802
        assert flags == 1
        if not self.answer:
            self.locked[address.value or 0] = size.value
        return self.answer

    def cudaHostUnregister(self, address: ctypes.c_void_p) -> int:  # noqa: N802
        del self.locked[address.value or 0]
        return 0


def test_pinned_arrays_are_locked_as_long_as_somebody_holds_them() -> None:
    cudart = Cudart(0)
    array = pinned.PinnedMemory(cudart).new_array(1000, "float32")
    assert (array.shape, array.dtype) == ((1000,), np.float32)
    assert cudart.locked == {array.ctypes.data: 4000}
    part = array[10:20].reshape(2, 5)
    del array
    gc.collect()
    assert len(cudart.locked) == 1
    del part
    gc.collect()
    assert cudart.locked == {}


def test_arrays_that_cannot_be_locked_are_ordinary_ones() -> None:
    cudart = Cudart(2)
    array = pinned.PinnedMemory(cudart).new_array(10, "uint8")
    array[...] = 1
    del array
    assert cudart.locked == {}
    assert pinned.PinnedMemory(cudart).new_array(0, "uint8").size == 0


def test_batches_are_written_where_the_engine_wants_them(session: ort.InferenceSession) -> None:
    asked: list[tuple[int, str]] = []

    def new_array(elements: int, dtype: str) -> Array:
        asked.append((elements, dtype))
        return np.empty(elements, dtype)

    engine = OnnxRuntimeEngine(session, "cpu", None, new_array)
    contract = InputContract("images", "nchw", "float32", "rgb", 1 / 255, None, None, None)
    with pytest.raises(Exception, match="no axis for them"):
        BatchRuns(engine, contract, sizes=(), most=8).rows([Given(np.zeros((2, 8, 8, 3), np.uint8))])
    assert asked[-1] == (2 * 3 * 8 * 8, "float32")
