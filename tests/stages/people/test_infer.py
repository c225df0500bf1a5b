"""Inference: batches over cameras, contracts, providers, and the messages about models that do not fit."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from pydantic import ValidationError
from structlog.testing import capture_logs

from camgraph.pipeline.errors import BadItem, EnvironmentProblem, UserError
from camgraph.pipeline.messages import Array
from camgraph.pipeline.stage import Upstream
from camgraph.pipeline.testing import HandContext, feed, opened, stamp
from camgraph.stages.messages import Tensor
from camgraph.stages.people.infer import Infer, InferSettings
from camgraph.stages.people.inference.engines import openvino_engine
from camgraph.stages.people.inference.selection.opening import Asked, open_model

NCHW = ["n", 3, "h", "w"]


def save(path: Path, nodes: Sequence[Any], shape: Sequence[Any], outputs: dict[str, Any], **other: Any) -> Path:
    """A model of these nodes with the input `images`; outputs: name -> (type, shape)."""
    kind = other.get("kind", TensorProto.FLOAT)
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(name, kind, shape) for name in other.get("inputs", ("images",))],
        [helper.make_tensor_value_info(name, t, s) for name, (t, s) in outputs.items()],
        other.get("constants", ()),
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, path)
    return path


def mirror(path: Path, shape: Sequence[Any] = NCHW, kind: int = TensorProto.FLOAT) -> Path:
    """Says what it was given (`seen`), and the mean of each row (`mean`)."""
    nodes = [
        helper.make_node("Identity", ["images"], ["seen"]),
        helper.make_node("Cast", ["images"], ["floats"], to=TensorProto.FLOAT),
        helper.make_node("ReduceMean", ["floats"], ["mean"], axes=[1, 2, 3], keepdims=0),
    ]
    outputs = {"seen": (kind, shape), "mean": (TensorProto.FLOAT, shape[:1])}
    return save(path, nodes, shape, outputs, kind=kind)


def pictures(seq: int, size: tuple[int, int] = (8, 6), rows: int = 1, camera: str = "cam") -> Tensor:
    image = np.random.default_rng(seq).integers(0, 256, (rows, size[1], size[0], 3), dtype=np.uint8)
    image.flags.writeable = False
    fit = np.full((rows, 4), seq, np.float32)
    return Tensor(stamp(seq, camera), {"image": image}, fit, (100 + seq, 50), size, np.arange(rows) - 1)


def seen(tensor: Tensor) -> Array:
    return tensor.arrays_by_name["seen"]


def inferred(items: list[Tensor], path: Path, *, batch: int = 1, **settings: Any) -> list[Tensor]:
    with opened(Infer, {"model": path.name, **settings}, folder=path.parent, stage="infer") as stage:
        return [message for message in feed(stage, items, batch=batch) if isinstance(message, Tensor)]


def expected(item: Tensor) -> Array:
    """The picture as float NCHW in [0, 1]."""
    return (item.arrays_by_name["image"].transpose(0, 3, 1, 2) / 255).astype(np.float32)


@pytest.mark.parametrize("batch", [1, 2, 5, 8])
def test_each_item_gets_its_own_rows(tmp_path: Path, batch: int) -> None:
    items = [pictures(0), pictures(1, rows=3), pictures(2, (5, 7)), pictures(3), pictures(4, (5, 7), 2)]
    outputs = inferred(items, mirror(tmp_path / "m.onnx"), batch=batch)
    assert len(outputs) == len(items)
    for item, output in zip(items, outputs, strict=True):
        assert output.stamp == item.stamp
        assert output.frame_size == item.frame_size
        assert np.array_equal(output.fit, item.fit)
        assert np.array_equal(output.owner, item.owner)
        assert np.array_equal(seen(output), expected(item))
        assert output.arrays_by_name["mean"].shape == (item.rows,)


def test_a_frame_without_crops_gives_no_rows(tmp_path: Path) -> None:
    [output] = inferred([pictures(0, rows=0)], mirror(tmp_path / "m.onnx"))
    assert output.rows == 0
    assert output.arrays_by_name["mean"].shape == (0,)
    assert seen(output).shape[:2] == (0, 3)


@pytest.mark.parametrize("step", [1, 4])
def test_a_static_batch_is_filled_up_and_cut(tmp_path: Path, step: int) -> None:
    items = [pictures(i, rows=1 + i % 2) for i in range(7)]
    outputs = inferred(items, mirror(tmp_path / "m.onnx", [step, 3, 6, 8]), batch=5)
    for item, output in zip(items, outputs, strict=True):
        assert np.array_equal(seen(output), expected(item))


def test_pixels_as_they_are(tmp_path: Path) -> None:
    path = mirror(tmp_path / "m.onnx", ["n", "h", "w", 3], TensorProto.UINT8)
    items = [pictures(0), pictures(1)]
    for batch in (1, 2):
        for item, output in zip(items, inferred(items, path, batch=batch), strict=True):
            assert np.array_equal(seen(output), item.arrays_by_name["image"])


def test_half_precision_and_bgr(tmp_path: Path) -> None:
    path = mirror(tmp_path / "m.onnx", NCHW, TensorProto.FLOAT16)
    [output] = inferred([pictures(0)], path, input={"order": "bgr", "scale": 1.0})
    image = pictures(0).arrays_by_name["image"]
    assert np.array_equal(seen(output), image[..., ::-1].transpose(0, 3, 1, 2).astype(np.float16))


@pytest.mark.parametrize("leave", [True, False])
def test_large_outputs_lie_where_the_next_process_reads_them(tmp_path: Path, leave: bool) -> None:
    given: list[Array] = []

    class Slots(HandContext):
        def new_arrays(self, specs: Any) -> dict[str, Array]:
            made = super().new_arrays(specs)
            given.extend(made.values())
            return made

    mirror(tmp_path / "m.onnx")
    stage = Infer(InferSettings(model="m.onnx"), Slots(tmp_path, tmp_path, outputs_leave=leave))
    with closing(stage):
        stage.open()
        [small] = stage.process([pictures(0)])
        assert given == []
        [large] = stage.process([pictures(1, (160, 120))])
    assert [seen(large) is array for array in given] == ([True, False] if leave else [])
    assert np.array_equal(seen(large), expected(pictures(1, (160, 120))))
    assert np.array_equal(seen(small), expected(pictures(0)))


def test_threads_do_not_disturb_each_other(tmp_path: Path) -> None:
    path = mirror(tmp_path / "m.onnx")
    batches = [[pictures(10 * i + j, (64, 48)) for j in range(1 + i % 3)] for i in range(40)]
    with opened(Infer, {"model": path.name}, folder=tmp_path) as stage:
        with ThreadPoolExecutor(4) as pool:
            results = list(pool.map(lambda batch: list(stage.process(batch)), batches))
    for batch, outputs in zip(batches, results, strict=True):
        for item, output in zip(batch, outputs, strict=True):
            assert isinstance(output, Tensor)
            assert np.array_equal(seen(output), expected(item))


# --- items that cannot be judged


def test_what_is_no_number_costs_its_own_item_only(tmp_path: Path) -> None:
    zero = helper.make_tensor("zero", TensorProto.FLOAT, [], [0.0])
    nodes = [
        helper.make_node("ReduceMax", ["images"], ["top"], axes=[1, 2, 3], keepdims=0),
        helper.make_node("Div", ["zero", "top"], ["out"]),
    ]
    path = save(tmp_path / "m.onnx", nodes, NCHW, {"out": (TensorProto.FLOAT, ["n"])}, constants=[zero])
    black = Tensor(stamp(9), {"image": np.zeros((1, 6, 8, 3), np.uint8)}, np.ones((1, 4), np.float32), (8, 6), (8, 6))
    with opened(Infer, {"model": path.name}, folder=tmp_path) as stage:
        for items in ([pictures(0), black], [black]):
            with pytest.raises(BadItem) as caught:
                list(stage.process(items))
            assert caught.value.reason == "nonfinite"
        assert len(list(stage.process([pictures(0)]))) == 1


def test_a_picture_that_the_model_cannot_take_is_a_bad_item(tmp_path: Path) -> None:
    # Halves the picture and adds it to itself, doubled again: odd sides do not fit.
    attributes = {"kernel_shape": [2, 2], "strides": [2, 2]}
    scales = helper.make_tensor("scales", TensorProto.FLOAT, [4], [1, 1, 2, 2])
    nodes = [
        helper.make_node("MaxPool", ["images"], ["half"], **attributes),
        helper.make_node("Resize", ["half", "", "scales"], ["again"], mode="nearest"),
        helper.make_node("Add", ["images", "again"], ["out"]),
    ]
    path = save(tmp_path / "m.onnx", nodes, NCHW, {"out": (TensorProto.FLOAT, NCHW)}, constants=[scales])
    assert len(inferred([pictures(0)], path)) == 1
    with pytest.raises(BadItem) as caught:
        inferred([pictures(0, (9, 6))], path)
    assert caught.value.reason == "model_failed"


# --- mistakes


def test_a_picture_of_the_wrong_size(tmp_path: Path) -> None:
    path = mirror(tmp_path / "m.onnx", ["n", 3, 64, 96])
    with pytest.raises(UserError, match=r"takes pictures of 96 x 64 .* got 8 x 6; set `size`"):
        inferred([pictures(0)], path)


def test_what_is_no_picture(tmp_path: Path) -> None:
    path = mirror(tmp_path / "m.onnx")
    item = Tensor(stamp(), {"seen": np.zeros((1, 3, 6, 8), np.float32)}, np.ones((1, 4), np.float32), (8, 6), (8, 6))
    with pytest.raises(UserError, match="stage infer: expected pictures named `image`"):
        inferred([item], path)


def test_an_output_without_rows(tmp_path: Path) -> None:
    nodes = [helper.make_node("ReduceMean", ["images"], ["all"], axes=[0, 1, 2, 3], keepdims=0)]
    path = save(tmp_path / "m.onnx", nodes, NCHW, {"all": (TensorProto.FLOAT, [])})
    with pytest.raises(UserError, match=r"output `all` is .* no axis for them"):
        inferred([pictures(0)], path)


def problems(folder: Path, **settings: Any) -> list[str]:
    found = list(Infer.check(InferSettings.model_validate(settings), folder))
    assert all(place in (("model",), ("sha256",)) for place, _ in found)
    return [text for _, text in found]


def test_checking_a_model(tmp_path: Path) -> None:
    mirror(tmp_path / "good.onnx")
    mirror(tmp_path / "grey.onnx", ["n", 1, "h", "w"])
    (tmp_path / "text.onnx").write_text("no model")
    (tmp_path / "empty.onnx").write_bytes(b"")
    two = [helper.make_node("Add", ["images", "more"], ["out"])]
    save(tmp_path / "two.onnx", two, NCHW, {"out": (TensorProto.FLOAT, NCHW)}, inputs=("images", "more"))
    assert problems(tmp_path, model="good.onnx") == []
    for name, text in {
        "absent.onnx": "no such model file",
        "asset:no-such-model.onnx": "camgraph assets pull",
        "text.onnx": "cannot be read as an ONNX model",
        "empty.onnx": "cannot be read as an ONNX model",
        "grey.onnx": "neither the second nor the last axis is 3",
        "two.onnx": "expected one input that takes the picture",
    }.items():
        [problem] = problems(tmp_path, model=name)
        assert text in problem
        with pytest.raises(UserError):
            inferred([], tmp_path / name if ":" not in name else Path(name))


def test_a_model_that_is_not_the_one_that_is_meant_is_refused(tmp_path: Path) -> None:
    path = mirror(tmp_path / "m.onnx")
    known = Infer.follow(InferSettings(model="m.onnx"), tmp_path, Upstream({}))
    assert problems(tmp_path, model="m.onnx", **known) == []
    inferred([pictures(0)], path, **known)
    mirror(path, ["n", 3, 32, 32])  # somebody puts another in its place
    assert "it is another model" in problems(tmp_path, model="m.onnx", **known)[0]
    with pytest.raises(UserError, match=f"expected {known['sha256']}"):
        inferred([], path, **known)


def test_a_provider_that_cannot_be_had(tmp_path: Path) -> None:
    path = mirror(tmp_path / "m.onnx")
    with pytest.raises(EnvironmentProblem, match=r"directml.* add cpu to `providers`"):
        inferred([], path, providers=["directml"])
    with opened(Infer, {"model": path.name, "providers": ["directml", "cpu"]}, folder=tmp_path) as stage:
        assert len(feed(stage, [pictures(0)])) == 1


def test_it_tells_what_runs_the_model(tmp_path: Path) -> None:
    path = mirror(tmp_path / "m.onnx")
    with opened(Infer, {"model": path.name}, folder=tmp_path) as stage:
        assert isinstance(stage.context, HandContext)
        told = stage.context.facts
    assert told.items() >= {("model", path.name), ("provider", "CPUExecutionProvider")}


def test_missing_provider_falls_back_only_if_asked(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = mirror(tmp_path / "m.onnx")
    try:
        runs_on = open_model(path, Asked(("cuda",))).engine.provider
    except EnvironmentProblem:
        fallback = open_model(path, Asked(("cuda", "cpu")))
        assert fallback.engine.provider == "CPUExecutionProvider"
        assert set(fallback.passed_over) == {"cuda"}
    else:
        assert runs_on == "CUDAExecutionProvider"
    printed = capfd.readouterr()
    assert (printed.out, printed.err) == ("", "")


def test_unknown_providers_are_refused() -> None:
    with pytest.raises(ValidationError):
        InferSettings.model_validate({"model": "m.onnx", "providers": ["gpu"]})


# --- real models


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "size", "rows"),
    [
        ("yolo11n-pose_640.onnx", (640, 640), 5),
        ("yolov8n-pose_float.onnx", (640, 640), 5),
        ("multipose_heads.onnx", (384, 288), 5),
        ("multipose_heads.onnx", (256, 256), 3),
    ],
)
def test_bits_do_not_depend_on_the_batch(test_data: Path, model: str, size: tuple[int, int], rows: int) -> None:
    path = test_data / "models" / model
    items = [pictures(i, size) for i in range(rows)]
    alone = inferred(items, path, batch=1)
    for settings in ({"batch": rows}, {"batch": 3}, {"batch": 2, "intra_op_threads": 2}):
        for one, other in zip(alone, inferred(items, path, **settings), strict=True):
            for name, array in one.arrays_by_name.items():
                assert np.array_equal(array, other.arrays_by_name[name]), f"{name} with {settings}"


def test_a_precision_that_nobody_calculates_in_is_a_mistake(tmp_path: Path) -> None:
    mirror(tmp_path / "m.onnx")
    settings = InferSettings.model_validate({"model": "m.onnx", "precision": "bf16", "providers": ["cpu"]})
    [(path, text)] = Infer.check(settings, tmp_path)
    assert path == ("precision",)
    assert "only OpenVINO" in text


def test_a_precision_that_is_not_used_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openvino_engine, "is_installed", lambda: False)
    mirror(tmp_path / "m.onnx")
    settings = {"model": "m.onnx", "precision": "bf16", "providers": ["openvino", "cpu"]}
    with capture_logs() as logs, opened(Infer, settings, folder=tmp_path):
        pass
    [line] = [line for line in logs if line["event"] == "precision_not_used"]
    assert (line["wanted"], line["why"].split()[0]) == ("bf16", "CPUExecutionProvider")
