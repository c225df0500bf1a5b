"""Models with several inputs: what fills those beside the picture's."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from camgraph.pipeline.errors import GraphError, UserError
from camgraph.pipeline.graph.loading import parse_graph
from camgraph.pipeline.graph.planning import plan_of
from camgraph.pipeline.messages import Array
from camgraph.pipeline.testing import feed, opened, stamp
from camgraph.stages.messages import Tensor
from camgraph.stages.people.infer import Infer, InferSettings

IMAGES = ("n", 3, "h", "w")
KINDS = {
    "int64": TensorProto.INT64,
    "float": TensorProto.FLOAT,
    "half": TensorProto.FLOAT16,
    "text": TensorProto.STRING,
}


def model(path: Path, beside: Mapping[str, tuple[str, Sequence[Any]]], images: Sequence[Any] = IMAGES) -> Path:
    """Says each picture's mean; of an input with a row for each what it was, of another its sum (for each picture)."""
    inputs = [
        ("images", TensorProto.FLOAT, images),
        *((name, KINDS[kind], side) for name, (kind, side) in beside.items()),
    ]
    outputs = [("mean", TensorProto.FLOAT, images[:1])]
    nodes = [
        helper.make_node("ReduceMean", ["images"], ["mean"], axes=[1, 2, 3], keepdims=0),
        helper.make_node("Sub", ["mean", "mean"], ["zeros"]),
    ]
    for name, kind, shape in inputs[1:]:
        if list(shape[:1]) == list(images[:1]):
            nodes.append(helper.make_node("Identity", [name], [f"seen_{name}"]))
            outputs.append((f"seen_{name}", kind, shape))
        elif kind != TensorProto.STRING:
            nodes.append(helper.make_node("Cast", [name], [f"{name}_cast"], to=TensorProto.FLOAT))
            nodes.append(helper.make_node("ReduceSum", [f"{name}_cast"], [f"{name}_sum"], keepdims=0))
            nodes.append(helper.make_node("Add", ["zeros", f"{name}_sum"], [f"seen_{name}"]))
            outputs.append((f"seen_{name}", TensorProto.FLOAT, images[:1]))
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(*entry) for entry in inputs],
        [helper.make_tensor_value_info(*entry) for entry in outputs],
    )
    found = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.checker.check_model(found)
    onnx.save(found, path)
    return path


def item(seq: int, rows: int = 1, size: tuple[int, int] = (8, 6), **arrays: Array) -> Tensor:
    image = np.full((rows, size[1], size[0], 3), seq, np.uint8)
    fit = np.tile(np.array([0.5, 0.25, 0, seq], np.float32), (rows, 1)) * np.float32(seq + 1)
    return Tensor(stamp(seq), {"image": image, **arrays}, fit, (100 + seq, 50), size, np.arange(rows))


def run(path: Path, items: list[Tensor], batch: int = 4, **settings: Any) -> list[Tensor]:
    with opened(Infer, {"model": path.name, **settings}, folder=path.parent, stage="infer") as stage:
        return [message for message in feed(stage, items, batch=batch) if isinstance(message, Tensor)]


@pytest.mark.parametrize("batch", [1, 4])
def test_each_picture_has_its_own_sizes_and_scales(tmp_path: Path, batch: int) -> None:
    path = model(
        tmp_path / "m.onnx",
        {
            "frame": ("int64", ["n", 2]),
            "turned": ("float", ["n", 2]),
            "picture": ("int64", ["n", 2]),
            "scale": ("float", ["n", 2]),
            "halves": ("half", ["n", 2]),
        },
    )
    feeds = {
        "frame": "frame_width_height",
        "turned": "frame_height_width",
        "picture": "picture_height_width",
        "scale": "scale_x_y",
        "halves": "scale_y_x",
    }
    items = [item(0), item(1, rows=3), item(2, size=(5, 7)), item(3, rows=0), item(4)]
    for given, result in zip(items, run(path, items, batch, feeds=feeds, max_rows=2), strict=True):
        rows, (width, height) = given.rows, given.picture_size
        found = result.arrays_by_name
        assert found["seen_frame"].tolist() == [[given.frame_size[0], 50]] * rows
        assert found["seen_turned"].tolist() == [[50, given.frame_size[0]]] * rows
        assert found["seen_picture"].tolist() == [[height, width]] * rows
        assert found["seen_scale"].tolist() == given.fit[:, :2].tolist()
        assert found["seen_halves"].tolist() == given.fit[:, 1::-1].tolist()


def test_numbers_go_into_each_run_or_to_each_picture(tmp_path: Path) -> None:
    """As many axes as the input: for the run. One fewer: for one picture, and repeated."""
    beside = {"threshold": ("float", []), "pair": ("int64", [2]), "each": ("int64", ["n", 2]), "any": ("float", ["k"])}
    path = model(tmp_path / "m.onnx", beside)
    feeds = {"threshold": 0.5, "pair": [3, 4], "each": [640, 480], "any": [1.5, 2, 0.5]}
    for given, result in zip([item(0), item(1, 3)], run(path, [item(0), item(1, 3)], feeds=feeds), strict=True):
        found = {name: array.tolist() for name, array in result.arrays_by_name.items()}
        assert found["seen_threshold"] == [0.5] * given.rows
        assert found["seen_pair"] == [7] * given.rows
        assert found["seen_each"] == [[640, 480]] * given.rows
        assert found["seen_any"] == [4] * given.rows


def test_an_array_of_a_stage_before_goes_where_its_picture_goes(tmp_path: Path) -> None:
    path = model(tmp_path / "m.onnx", {"template": ("float", ["n", 2, 3])})
    arrays = [np.random.default_rng(rows).random((rows, 2, 3), np.float32) for rows in (1, 3, 2)]
    items = [item(seq, len(array), patch=array) for seq, array in enumerate(arrays)]
    for array, result in zip(arrays, run(path, items, feeds={"template": {"array": "patch"}}, max_rows=2), strict=True):
        np.testing.assert_array_equal(result.arrays_by_name["seen_template"], array)


def test_an_input_of_fixed_rows_fixes_the_batch(tmp_path: Path) -> None:
    path = model(tmp_path / "m.onnx", {"frame": ("int64", [2, 2])}, images=[2, 3, 6, 8])
    result = run(path, [item(seq) for seq in range(3)], feeds={"frame": "frame_width_height"})
    assert [one.arrays_by_name["seen_frame"].tolist() for one in result] == [[[100 + seq, 50]] for seq in range(3)]


def test_which_of_two_is_the_picture(tmp_path: Path) -> None:
    path = model(tmp_path / "m.onnx", {"second": ("float", ["n", 3, 2, 2])})
    with pytest.raises(
        UserError, match=r"expected one input that takes the picture, this model has: `images`.*`second`"
    ):
        run(path, [item(0)])
    second = np.ones((1, 3, 2, 2), np.float32)
    feeds = {"images": "picture", "second": {"array": "small"}}
    [result] = run(path, [item(9, small=second)], feeds=feeds)
    assert result.arrays_by_name["mean"] == pytest.approx(9 / 255)
    np.testing.assert_array_equal(result.arrays_by_name["seen_second"], second)


PAIR = {"pair": ("int64", ["n", 2])}


@pytest.mark.parametrize(
    ("beside", "feeds", "message"),
    [
        (
            PAIR,
            {},
            "nothing fills the input `pair` .tensor.int64. .'n', 2.. of m.onnx: fill it in `feeds` of `infer`",
        ),
        (PAIR, {"pairs": 1}, "m.onnx has no input `pairs`; it has: `images`"),
        (PAIR, {"pair": [0.5, 1]}, "int64 cannot hold"),
        (PAIR, {"pair": [1, 2, 3]}, r"got numbers of shape \[3\], which are neither for a run nor for one picture"),
        (PAIR, {"pair": [[1, 2], [3]]}, "expected rows of one length"),
        (PAIR, {"pair": "scale_x_y"}, "gives fractions, which whole numbers cannot hold"),
        ({"one": ("float", ["n"])}, {"one": "scale_x_y"}, r"gives two numbers for each picture: expected a shape like"),
        ({"half": ("half", [])}, {"half": 1e9}, "float16 cannot hold"),
        ({"words": ("text", ["k"])}, {"words": 1}, "expected one of tensor.bool."),
    ],
)
def test_a_wrong_feed_is_refused_when_the_graph_is_checked(
    tmp_path: Path, beside: Any, feeds: Any, message: str
) -> None:
    model(tmp_path / "m.onnx", beside)
    settings = InferSettings.model_validate({"model": "m.onnx", "feeds": feeds})
    [(path, text)] = Infer.check(settings, tmp_path)
    assert path[0] == "feeds"
    assert path[1] in {*beside, *feeds}
    assert re.search(message, text), text


def test_an_array_that_does_not_come_or_fit_is_named(tmp_path: Path) -> None:
    path = model(tmp_path / "m.onnx", {"template": ("float", ["n", 2])})
    feeds = {"template": {"array": "patch"}}
    with pytest.raises(
        UserError, match=r"nothing fills `template`: expected an array `patch`, float32 \(n, 2\), got image"
    ):
        run(path, [item(0)], feeds=feeds)
    with pytest.raises(
        UserError,
        match=r"does not fit into `template`: expected float32 \(n, 2\) for n = 1 pictures, got float64 \(1, 2\)",
    ):
        run(path, [item(0, patch=np.zeros((1, 2)))], feeds=feeds)


def test_one_wrong_feed_leaves_the_others(tmp_path: Path) -> None:
    """Where a value fits none of several types, nothing else of its setting is thrown away with it."""
    model(tmp_path / "m.onnx", {**PAIR, "t": ("float", [])})
    text = f"""
version: 1
name: one_wrong
cameras: {{a: {{url: "{tmp_path}/no.mp4"}}}}
stages:
  capture: {{use: capture}}
  prepare: {{use: preprocess, from: capture}}
  infer: {{use: infer, from: prepare, with: {{model: m.onnx, feeds: {{pair: frame_width_height, t: high}}}}}}
  end: {{use: sink_null, from: infer}}
"""
    with pytest.raises(GraphError) as caught:
        plan_of(parse_graph(text, "g.yaml", base_folder=tmp_path))
    about = [str(problem) for problem in caught.value.problems if "feeds" in str(problem)]
    assert len(about) == 1
    assert "feeds.t: expected one of 'picture'" in about[0]
