"""What a model gets when its input is folded into it: the bits that it got from `Converter`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper

from camgraph.stages.people.inference.model.pixel_folding import exact_scaling, fold_pixels
from camgraph.stages.vision.model_contract import Converter, InputContract, Normalisation

ELEMENTS = {"float32": TensorProto.FLOAT, "float16": TensorProto.FLOAT16, "uint8": TensorProto.UINT8}
PIXELS = np.random.default_rng(0).permutation(np.arange(2 * 16 * 24 * 3) % 256).astype(np.uint8).reshape(2, 16, 24, 3)
IMAGENET = Normalisation((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
FLOATS = InputContract("images", "nchw", "float32", "rgb", 1 / 255, None, 24, 16)


def folded(contract: InputContract) -> ort.InferenceSession:
    """A model that gives back what it is given, with its input folded."""
    kind, shape = ELEMENTS[contract.dtype], ["n", *contract.shape(1, 16, 24)[1:]]
    graph = helper.make_graph(
        [helper.make_node("Identity", ["images"], ["seen"])],
        "g",
        [helper.make_tensor_value_info("images", kind, shape)],
        [helper.make_tensor_value_info("seen", kind, shape)],
    )
    fold_pixels(graph, contract)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


CONTRACTS = {
    "yolo": FLOATS,
    "yolox": replace(FLOATS, order="bgr", scale=1.0),
    "floats in their place": replace(FLOATS, layout="nhwc", order="bgr"),
    "half precision": replace(FLOATS, dtype="float16"),
    "pixels in another place": replace(FLOATS, layout="nchw", dtype="uint8", scale=1.0),
    "pixels in another order": replace(FLOATS, layout="nhwc", dtype="uint8", order="bgr", scale=1.0),
    "minus one to one": replace(FLOATS, scale=1 / 127.5),
    "an odd scale": replace(FLOATS, scale=0.0170001),
    "imagenet": replace(FLOATS, normalisation=IMAGENET),
    "imagenet, half precision": replace(FLOATS, layout="nhwc", dtype="float16", normalisation=IMAGENET),
    "means of pixels": replace(FLOATS, order="bgr", scale=1.0, normalisation=Normalisation((104.0, 117.0, 123.0))),
}


@pytest.mark.parametrize("name", CONTRACTS)
def test_the_model_gets_the_same_bits(name: str) -> None:
    session = folded(CONTRACTS[name])
    [seen] = session.run(None, {"images": PIXELS})
    wanted = Converter(CONTRACTS[name]).batch([PIXELS])
    assert np.asarray(seen).dtype == wanted.dtype
    np.testing.assert_array_equal(seen, wanted)
    given = session.get_inputs()[0]
    assert (given.name, given.type, given.shape) == ("images", "tensor(uint8)", ["n", 16, 24, 3])


def test_means_are_of_scaled_values_in_the_order_of_the_model() -> None:
    contract = replace(FLOATS, order="bgr")
    scaled = np.array(Converter(contract).batch([PIXELS]))
    mean, std = (np.array(values, np.float32).reshape(1, 3, 1, 1) for values in (IMAGENET.mean, IMAGENET.std))
    seen = Converter(replace(contract, normalisation=IMAGENET)).batch([PIXELS])
    np.testing.assert_array_equal(seen, (scaled - mean) / std)


def test_the_cheapest_exact_arithmetic_is_taken() -> None:
    assert exact_scaling(1.0).in_words() == "as they are"
    assert exact_scaling(1 / 255).in_words() == "/ 255"
    assert exact_scaling(1 / 256).operator == "Mul"
    assert exact_scaling(0.0170001).dtype == "float64"
