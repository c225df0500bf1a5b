"""TF.js graphs for tests: small ones made here, and the published one where it was pulled."""

from __future__ import annotations

import base64
import json

import numpy as np
import pytest

from camgraph.pipeline.system.paths import asset_folder


def _encoded(value):
    match value:
        case bool():
            return {"b": value}
        case int():
            return {"i": str(value)}
        case str() if value.startswith("DT_"):
            return {"type": value}
        case str():
            return {"s": base64.b64encode(value.encode()).decode()}
        case [str(), *_]:
            return {"list": {"s": [base64.b64encode(text.encode()).decode() for text in value]}}
        case list():
            return {"list": {"i": [str(number) for number in value]} if value else {}}
    raise AssertionError(value)


class Drafted:
    """A TF.js graph model that is being written."""

    def __init__(self):
        self.nodes, self.entries, self.data = [], [], b""
        self.node("Placeholder", "input")
        self.node("Cast", "float", "input", SrcT="DT_INT32", DstT="DT_FLOAT")

    def node(self, op, name, *inputs, **attributes):
        self.nodes.append(
            {"name": name, "op": op, "input": list(inputs), "attr": {k: _encoded(v) for k, v in attributes.items()}}
        )
        return name

    def weight(self, name, array, quantization=None):
        array = np.asarray(array)
        entry = {"name": name, "shape": list(array.shape), "dtype": array.dtype.name}
        if quantization:
            entry |= {"dtype": "float32", "quantization": quantization}
        self.entries.append(entry)
        self.data += array.tobytes()
        return name

    def conv(self, name, source, kernel, bias=None, *, stride=1, padding="SAME", activation=None):
        fused = ["BiasAdd"] * (bias is not None) + [activation] * (activation is not None)
        inputs = [source, self.weight(f"{name}/w", kernel)]
        inputs += [self.weight(f"{name}/b", bias)] if bias is not None else []
        strides = [1, stride, stride, 1]
        return self.node("_FusedConv2D", name, *inputs, strides=strides, padding=padding, fused_ops=fused)

    def depthwise(self, name, source, kernel, *, stride=1):
        inputs = source, self.weight(f"{name}/w", kernel)
        return self.node("DepthwiseConv2dNative", name, *inputs, strides=[1, stride, stride, 1], padding="SAME")

    def doubled(self, name, source):
        for part, value in (("from", [1]), ("to", [3]), ("step", [1]), ("factors", [2, 2])):
            self.weight(f"{name}/{part}", np.array(value, np.int32))
        self.node("Shape", f"{name}/shape", source)
        self.node("StridedSlice", f"{name}/slice", f"{name}/shape", f"{name}/from", f"{name}/to", f"{name}/step")
        self.node("Mul", f"{name}/size", f"{name}/slice", f"{name}/factors")
        return self.node("ResizeBilinear", name, source, f"{name}/size", align_corners=False, half_pixel_centers=True)

    def topology(self):
        manifest = [{"paths": ["x.bin"], "weights": self.entries}]
        return json.dumps({"modelTopology": {"node": self.nodes}, "weightsManifest": manifest}).encode()


@pytest.fixture
def draft():
    return Drafted()


def published(name: str) -> tuple[bytes, bytes]:
    """Topology and weights of a MoveNet as published; the test is skipped where they were not pulled."""
    paths = [asset_folder() / f"movenet-{name}.{ending}" for ending in ("json", "bin")]
    if not all(path.is_file() for path in paths):
        pytest.skip(f"no published {name} in {asset_folder()} (run: camgraph assets pull movenet-{name}.onnx)")
    return paths[0].read_bytes(), paths[1].read_bytes()


@pytest.fixture(scope="session")
def multipose_files() -> tuple[bytes, bytes]:
    return published("multipose")


@pytest.fixture(scope="session", params=[("lightning", 192), ("thunder", 256)], ids=lambda param: param[0])
def single_files(request: pytest.FixtureRequest) -> tuple[str, int, tuple[bytes, bytes]]:
    """Name, side of the picture, and topology and weights."""
    name, side = request.param
    return name, side, published(name)
