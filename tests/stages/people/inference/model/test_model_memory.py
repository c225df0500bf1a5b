"""What models may take of the memory of their process: small files that stand for gigabytes."""

from __future__ import annotations

import gc
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import NodeProto, TensorProto, helper, numpy_helper
from structlog.testing import capture_logs

from camgraph.pipeline.errors import BadItem, UserError
from camgraph.pipeline.testing import feed, opened, stamp
from camgraph.stages.messages import Tensor
from camgraph.stages.people.infer import Infer, InferSettings
from camgraph.stages.people.inference.engines import openvino_engine
from camgraph.stages.people.inference.engines.engine import OutOfMemory
from camgraph.stages.people.inference.model.model_memory import ModelMemory, beyond, data_bytes, most_of
from camgraph.stages.people.inference.selection.opening import Asked, open_model
from camgraph.stages.people.inference.selection.trial import try_in_process

MB = 1 << 20
MACHINE = 4 << 30
"""No test may take more of the machine, whatever is broken."""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing is limited")
needs_openvino = pytest.mark.skipif(not openvino_engine.is_installed(), reason="openvino is not installed")


@pytest.fixture(autouse=True)
def machine() -> Iterator[None]:
    """The kernel's own limit stands in for a machine with little memory."""
    gc.collect()  # models that an earlier test has left
    before = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (data_bytes() + MACHINE, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_DATA, before)


def limit() -> int:
    return resource.getrlimit(resource.RLIMIT_DATA)[0]


def constant(name: str, value: Any, kind: type = np.int64) -> TensorProto:
    return numpy_helper.from_array(np.array(value, kind), name)


def save(path: Path, nodes: Sequence[NodeProto], constants: Sequence[TensorProto]) -> Path:
    """images (n, 3, 64, 64) -> mean (n); `nodes` make `big`, of which nothing is left in the end."""
    behind = [
        helper.make_node("ReduceMax", ["big"], ["most"], keepdims=0),
        helper.make_node("ReduceMean", ["images"], ["means"], axes=[1, 2, 3], keepdims=0),
        helper.make_node("Add", ["means", "most"], ["mean"]),
    ]
    images = helper.make_tensor_value_info("images", TensorProto.FLOAT, ["n", 3, 64, 64])
    mean = helper.make_tensor_value_info("mean", TensorProto.FLOAT, ["n"])
    graph = helper.make_graph([*nodes, *behind], "g", [images], [mean], list(constants))
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def filled(values: int, size: str = "size") -> NodeProto:
    return helper.make_node(
        "ConstantOfShape", [size], ["big"], value=helper.make_tensor("v", TensorProto.FLOAT, [1], [0])
    )


def always(path: Path, megabytes: int) -> Path:
    """A constant of this size."""
    return save(path, [filled(0)], [constant("size", [megabytes * MB // 4])])


def by_rows(path: Path, megabytes: int) -> Path:
    """So much for each picture of a run."""
    nodes = [
        helper.make_node("Shape", ["images"], ["rows"], start=0, end=1),
        helper.make_node("Mul", ["rows", "each"], ["size"]),
        filled(0),
    ]
    return save(path, nodes, [constant("each", [megabytes * MB // 4])])


def by_content(path: Path, megabytes: int) -> Path:
    """So much for a white picture, and next to nothing for a black one."""
    nodes = [
        helper.make_node("ReduceMean", ["images"], ["bright"], axes=[1, 2, 3], keepdims=0),
        helper.make_node("ReduceMax", ["bright"], ["brightest"], axes=[0], keepdims=1),
        helper.make_node("Mul", ["brightest", "each"], ["wanted"]),
        helper.make_node("Cast", ["wanted"], ["whole"], to=TensorProto.INT64),
        helper.make_node("Max", ["whole", "least"], ["size"]),
        filled(0),
    ]
    return save(path, nodes, [constant("each", [megabytes * MB / 4], np.float32), constant("least", [1])])


def beside_the_arena(path: Path, megabytes: int) -> Path:
    """Taken by an operator past ONNX Runtime's arena: NonZero keeps 16 bytes for each value of a byte and two sides."""
    nodes = [
        helper.make_node("Shape", ["images"], ["sides"], start=2, end=4),
        helper.make_node("Mul", ["sides", "times"], ["size"]),
        helper.make_node(
            "ConstantOfShape", ["size"], ["true"], value=helper.make_tensor("v", TensorProto.BOOL, [1], [True])
        ),
        helper.make_node("NonZero", ["true"], ["places"]),
        helper.make_node("Cast", ["places"], ["big"], to=TensorProto.FLOAT),
    ]
    return save(path, nodes, [constant("times", [16, megabytes * MB // 16 // 64 // 16 // 64])])


def pictures(seq: int, rows: int = 1, value: int = 0) -> Tensor:
    image = np.full((rows, 64, 64, 3), value, np.uint8)
    return Tensor(stamp(seq), {"image": image}, np.zeros((rows, 4), np.float32), (64, 64), (64, 64), np.arange(rows))


@pytest.mark.parametrize(("make", "megabytes"), [(always, 960), (by_rows, 960), (beside_the_arena, 480)])
def test_a_model_that_wants_more_does_not_open(tmp_path: Path, make: Any, megabytes: int) -> None:
    make(tmp_path / "m.onnx", megabytes)
    before = limit()
    with (
        pytest.raises(UserError, match=r"wants .*models may take 100 MB of the memory .*larger `memory_mb`") as failure,
        opened(Infer, {"model": "m.onnx", "memory_mb": 100}, folder=tmp_path),
    ):
        pass
    assert "stage stage: m.onnx does not run on pictures of 64 x 64" in str(failure.value)
    del failure
    gc.collect()
    assert limit() == before
    with opened(Infer, {"model": "m.onnx", "memory_mb": 2500}, folder=tmp_path) as stage:
        assert len(feed(stage, [pictures(0)])) == 1
    assert limit() == before


def test_a_picture_for_which_it_wants_more_is_a_bad_item(tmp_path: Path) -> None:
    by_content(tmp_path / "m.onnx", 1000)
    with opened(Infer, {"model": "m.onnx", "memory_mb": 200}, folder=tmp_path) as stage:
        assert len(feed(stage, [pictures(0)])) == 1
        with pytest.raises(BadItem, match="model_failed: it wants 1,000 MB more, and models may take 200 MB"):
            feed(stage, [pictures(1, value=255)])
        assert len(feed(stage, [pictures(2)])) == 1


def test_too_many_pictures_at_once_become_fewer(tmp_path: Path) -> None:
    by_rows(tmp_path / "m.onnx", 150)
    with capture_logs() as logs, opened(Infer, {"model": "m.onnx", "memory_mb": 500}, folder=tmp_path) as stage:
        [output] = feed(stage, [pictures(0, rows=16)])
    assert isinstance(output, Tensor)
    assert output.arrays_by_name["mean"].shape == (16,)
    assert logs[-1]["event"] == "batches_smaller"
    assert logs[-1]["most"] <= 4
    assert "models may take 500 MB" in logs[-1]["why"]


def test_trials_are_held_to_it(tmp_path: Path) -> None:
    always(tmp_path / "m.onnx", 1000)
    with (
        pytest.raises(UserError, match="models may take 200 MB"),
        opened(Infer, {"model": "m.onnx", "memory_mb": 200, "providers": "auto"}, folder=tmp_path),
    ):
        pass


_ON_OPENVINO = """
import resource, sys
import numpy as np
from pathlib import Path
from camgraph.pipeline.testing import feed, opened, stamp
from camgraph.stages.people.infer import Infer
from camgraph.stages.people.inference.model.model_memory import data_bytes
from camgraph.stages.messages import Tensor

resource.setrlimit(resource.RLIMIT_DATA, (data_bytes() + (4 << 30),) * 2)
settings = {"model": "m.onnx", "memory_mb": 200, "providers": ["openvino"]}
with opened(Infer, settings, folder=Path(sys.argv[1])) as stage:
    for seq, value in enumerate((0, 0, 255)):
        image = np.full((1, 64, 64, 3), value, np.uint8)
        item = Tensor(stamp(seq), {"image": image}, np.zeros((1, 4), np.float32), (64, 64), (64, 64), np.arange(1))
        print("mean", float(feed(stage, [item])[0].arrays_by_name["mean"][0]), flush=True)
"""


@needs_openvino
def test_openvino_ends_with_its_process(tmp_path: Path) -> None:
    """Refused memory, it would answer with what it said of the picture before."""
    by_content(tmp_path / "m.onnx", 3000)
    command = [sys.executable, "-c", _ON_OPENVINO, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == -signal.SIGKILL
    assert [line for line in done.stdout.splitlines() if line.startswith("mean")] == ["mean 0.0"] * 2
    assert done.stderr.splitlines()[-1].startswith("killed: it wants more, and models may take 200 MB")


@needs_openvino
def test_a_trial_of_openvino_that_takes_more(tmp_path: Path) -> None:
    always(tmp_path / "m.onnx", 10)
    inputs = {"images": np.zeros((1, 3, 64, 64), np.float32)}
    asked = Asked(("openvino", "cpu"))
    memory = ModelMemory(200 * MB)
    memory.hold("cpu")
    assert not try_in_process(tmp_path / "m.onnx", asked, inputs).failure
    by_rows(tmp_path / "m.onnx", 3000)
    assert (
        "killed: it wants more, and models may take 200 MB"
        in try_in_process(tmp_path / "m.onnx", asked, inputs).failure
    )
    memory.release()


def test_default_memory_limit_without_a_stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("camgraph.stages.people.inference.model.model_memory.usable_memory", lambda: 2 << 30)
    path = always(tmp_path / "m.onnx", 3000)  # beyond what earlier tests may still give back
    before = limit()
    engine = open_model(path, Asked()).engine
    assert limit() < before
    with pytest.raises(OutOfMemory, match="models may take 1,024 MB"):
        engine.run({"images": np.zeros((1, 3, 64, 64), np.float32)})
    del engine
    assert limit() == before


def stretched(path: Path, kind: str) -> Path:
    """A gigabyte of constants, made from next to nothing in one of several ways."""
    one, times = constant("one", [1], np.float32), constant("times", [256 * MB])
    if kind == "Range":
        bounds = [constant(name, value, np.float32) for name, value in (("a", 0), ("b", 256 * MB), ("c", 1))]
        return save(path, [helper.make_node("Range", ["a", "b", "c"], ["big"])], bounds)
    if kind == "Resize":
        small = [
            constant("picture", np.ones((1, 1, 16, 16)), np.float32),
            constant("s", [1, 1, 1024, 1024], np.float32),
        ]
        return save(path, [helper.make_node("Resize", ["picture", "", "s"], ["big"])], small)
    return save(path, [helper.make_node(kind, ["one", "times"], ["big"])], [one, times])


@pytest.mark.parametrize("kind", ["ConstantOfShape", "Expand", "Tile", "Range", "Resize", "each row"])
def test_check_says_so_if_it_shows(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "m.onnx"
    if kind == "ConstantOfShape":
        always(path, 1024)
    elif kind == "each row":
        by_rows(path, 1024)
    else:
        stretched(path, kind)
    [(where, text)] = Infer.check(InferSettings(model="m.onnx", memory_mb=1000), tmp_path)
    assert where == ("memory_mb",)
    assert "m.onnx wants 1,024 MB for the value `big` alone, and it may take 1,000 MB of memory" in text
    assert not [*Infer.check(InferSettings(model="m.onnx", memory_mb=1100), tmp_path)]


def test_what_is_usual(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("camgraph.stages.people.inference.model.model_memory.usable_memory", lambda: 64 << 30)
    assert most_of(None) == 32 << 30
    assert most_of(None, workers=4) == 8 << 30
    assert most_of(None, workers=64) == 1 << 30
    assert most_of(300, workers=4) == 300 * MB
    monkeypatch.setattr("camgraph.stages.people.inference.model.model_memory.usable_memory", lambda: None)
    assert most_of(None) is None


def test_the_stages_of_a_process_add_up() -> None:
    before, one, other = limit(), ModelMemory(100 * MB), ModelMemory(200 * MB, cameras=1)
    one.hold("cpu")
    first = limit()
    one.hold("cpu")
    assert limit() == first
    other.hold("cpu")
    assert limit() == first + (200 << 20) + (1 << 30)
    assert "models may take 300 MB" in beyond(5)
    one.release()
    one.release()
    assert limit() == first + (100 << 20) + (1 << 30)
    other.release()
    assert limit() == before
    ModelMemory(None).hold("cpu")
    assert limit() == before
    assert "than the machine gives" in beyond()


def test_a_lower_limit_of_somebody_else_stays() -> None:
    own = limit()
    memory = ModelMemory(1 << 40)
    memory.hold("cpu")
    assert limit() == own
    memory.release()
    assert limit() == own
