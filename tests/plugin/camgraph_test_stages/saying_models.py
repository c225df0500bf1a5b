"""Models that say the same of every picture, and score it by its light: formats of exporters without their weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from camgraph.pipeline.stage import Upstream
from camgraph.pipeline.testing import feed, opened, stamp
from camgraph.stages.messages import Frame, People
from camgraph.stages.people.decode import Decode, DecodeSettings
from camgraph.stages.people.infer import Infer, InferSettings
from camgraph.stages.people.preprocess import Preprocess

KINDS = {"float32": TensorProto.FLOAT, "int64": TensorProto.INT64, "int32": TensorProto.INT32}
SIDE = 64


class SayingModel:
    """Writes a model that gives ``outputs`` for each picture, without an axis for pictures if not ``batched``.

    ``light``: the outputs that are multiplied by the picture's mean, from 0 (black) to 1 (white); ``beside``: further
    inputs, with a row of two for each picture; ``scaled``: an output of boxes -> the input by which it is multiplied.
    """

    def __init__(
        self,
        outputs: Mapping[str, np.ndarray[Any, Any]],
        *,
        light: Sequence[str] = (),
        batched: bool = True,
        beside: Mapping[str, str] | None = None,
        scaled: Mapping[str, str] | None = None,
        picture: tuple[int, int] = (SIDE, SIDE),
    ) -> None:
        self._outputs, self._light, self._batched = outputs, light, batched
        self._beside, self._scaled = beside or {}, scaled or {}
        width, height = picture
        self._picture = ["n" if batched else 1, 3, height, width]
        self._nodes: list[Any] = []
        self._constants: list[Any] = []

    def write(self, path: Path, *, uint8: bool = False, **metadata: str) -> Path:
        kind = TensorProto.UINT8 if uint8 else TensorProto.FLOAT
        inputs = [helper.make_tensor_value_info("images", kind, self._picture)]
        inputs += [helper.make_tensor_value_info(name, KINDS[of], ["n", 2]) for name, of in self._beside.items()]
        self._add("Cast", ["images"], "floats", to=TensorProto.FLOAT)
        self._add("ReduceMean", ["floats"], "mean", axes=[1, 2, 3], keepdims=0)
        self._add("Mul", ["mean", self._constant("unit", np.float32(1 / 255 if uint8 else 1))], "light")
        for name, value in self._outputs.items():
            self._say(name, np.asarray(value))
        graph = helper.make_graph(
            self._nodes, "g", inputs, [self._port(*said) for said in self._outputs.items()], self._constants
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        helper.set_model_props(model, metadata)
        onnx.checker.check_model(model, full_check=True)
        onnx.save(model, path)
        return path

    def _port(self, name: str, value: np.ndarray[Any, Any]) -> Any:
        shape = ["n", *value.shape] if self._batched else value.shape
        return helper.make_tensor_value_info(name, KINDS[value.dtype.name], shape)

    def _say(self, name: str, value: np.ndarray[Any, Any]) -> None:
        """The value for each picture: times its light, or plus nothing of it."""
        sides = [-1] + [1] * value.ndim if self._batched else []
        factor = self._add("Reshape", ["light", self._constant(f"{name}_sides", np.array(sides, np.int64))])
        constant = self._constant(f"{name}_value", value[np.newaxis] if self._batched else value)
        if name in self._light:
            self._add("Mul", [constant, factor], name)
            return
        nothing = self._add("Mul", [factor, self._constant(f"{name}_zero", np.float32(0))])
        cast = self._add("Cast", [nothing], to=KINDS[value.dtype.name])
        if name not in self._scaled:
            self._add("Add", [constant, cast], name)
            return
        said = self._add("Add", [constant, cast])
        sizes = self._add("Cast", [self._scaled[name]], to=TensorProto.FLOAT)
        twice = self._add("Concat", [sizes, sizes], axis=1)
        each = self._add("Reshape", [twice, self._constant(f"{name}_each", np.array([-1, 1, 4]))])
        self._add("Mul", [said, each], name)

    def _add(self, operator: str, inputs: Sequence[str], output: str = "", **attributes: Any) -> str:
        output = output or f"value{len(self._nodes)}"
        self._nodes.append(helper.make_node(operator, list(inputs), [output], **attributes))
        return output

    def _constant(self, name: str, value: Any) -> str:
        self._constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name


def grey(seq: int, value: int, size: tuple[int, int] = (SIDE, SIDE)) -> Frame:
    """A frame of one grey, of ``size`` (width, height)."""
    return Frame(stamp(seq), np.full((size[1], size[0], 3), value, np.uint8), *size)


def people_of(model: Path, frames: Sequence[Frame], *, batch: int = 2, **decode: Any) -> list[People]:
    """The frames from `preprocess` to `decode`, with the settings that follow from the model alone and ``decode``."""
    folder = model.parent
    settings = DecodeSettings.model_validate({"classes": "all", **decode})
    facts = {
        **InferSettings(model=model.name, format=settings.format, keypoints=settings.keypoints).facts(),
    }
    followed = {
        **settings.model_dump(exclude_unset=True),
        **Decode.follow(settings, folder, Upstream({"infer": facts})),
    }
    infer = {"model": model.name, "format": settings.format, "keypoints": settings.keypoints}
    wanted = dict(Infer.wants(InferSettings.model_validate(infer), folder))
    with (
        opened(Preprocess, wanted, folder=folder) as first,
        opened(Infer, infer, folder=folder) as runs,
        opened(Decode, followed, folder=folder) as last,
    ):
        found = feed(last, feed(runs, feed(first, list(frames)), batch=batch))
        return [people for people in found if isinstance(people, People)]
