"""Small graphs, converted and run, against TensorFlow's definitions written out in numpy (NHWC)."""

from __future__ import annotations

import numpy as np
import onnxruntime as ort
import pytest

from camgraph.tools.assets.movenet.convert import convert
from camgraph.tools.assets.movenet.tfjs import ConversionError, read_graph

PICTURES = np.random.default_rng(0).integers(0, 256, (2, 10, 14, 3), np.uint8)


def array(*shape, seed=1):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def converted(draft, **outputs):
    graph = read_graph(draft.topology(), draft.data)
    return convert(graph, name="test", input_name="images", outputs=outputs, metadata={"task": "test"})


def run(draft, last, pictures=PICTURES):
    """The converted graph's value of the node `last`, NHWC."""
    model = converted(draft, out=last).SerializeToString()
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return session.run(["out"], {"images": pictures})[0].transpose(0, 2, 3, 1)


def slow_conv(x, kernel, *, stride=1, padding="SAME", depthwise=False):
    """Convolution as TensorFlow pads it: with SAME the odd row and column goes to the bottom and the right."""
    size = kernel.shape[0]
    out = [-(-n // stride) if padding == "SAME" else (n - size) // stride + 1 for n in x.shape[1:3]]
    pads = [
        max(0, (o - 1) * stride + size - n) if padding == "SAME" else 0 for o, n in zip(out, x.shape[1:3], strict=True)
    ]
    x = np.pad(x, [(0, 0), *((p // 2, p - p // 2) for p in pads), (0, 0)])
    result = []
    for i in range(out[0]):
        for j in range(out[1]):
            window = x[:, i * stride : i * stride + size, j * stride : j * stride + size]
            formula = "nhwc,hwcm->ncm" if depthwise else "nhwc,hwcd->nd"
            result.append(np.einsum(formula, window, kernel).reshape(len(x), -1))
    return np.stack(result, axis=1).reshape(len(x), *out, -1)


def slow_doubled(x):
    """Bilinear, half-pixel centres, edges repeated."""
    for axis in (1, 2):
        n = x.shape[axis]
        at = (np.arange(2 * n) + 0.5) / 2 - 0.5
        low = np.floor(at).astype(int)
        part = (at - low).reshape([-1 if a == axis else 1 for a in range(4)])
        below, above = (np.take(x, np.clip(low + d, 0, n - 1), axis) for d in (0, 1))
        x = below * (1 - part) + above * part
    return x


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("activation", [None, "Relu", "Relu6"])
def test_convolution(draft, stride, padding, activation):
    kernel, bias = array(3, 3, 3, 5), array(5)
    draft.conv("conv", "float", kernel, bias, stride=stride, padding=padding, activation=activation)
    expected = slow_conv(PICTURES.astype(np.float32), kernel, stride=stride, padding=padding) + bias
    if activation:
        expected = np.clip(expected, 0, 6 if activation == "Relu6" else None)
    np.testing.assert_allclose(run(draft, "conv"), expected, rtol=1e-4, atol=1e-2)


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("multiplier", [1, 2])
def test_depthwise_convolution(draft, stride, multiplier):
    kernel = array(3, 3, 3, multiplier)
    draft.depthwise("depthwise", "float", kernel, stride=stride)
    expected = slow_conv(PICTURES.astype(np.float32), kernel, stride=stride, depthwise=True)
    np.testing.assert_allclose(run(draft, "depthwise"), expected, rtol=1e-4, atol=1e-2)


def normalised(draft):
    draft.node("Sub", "centred", "float", draft.weight("mean", np.array([[[[100, 110, 120]]]], np.float32)))
    draft.node("Mul", "scaled", "centred", draft.weight("factor", np.array([0.5, 0.25, 0.125], np.float32)))
    draft.node("AddV2", "moved", "scaled", draft.weight("one", np.array(1, np.float32)))
    return (PICTURES - np.array([100, 110, 120], np.float32)) * np.array([0.5, 0.25, 0.125], np.float32) + 1


def test_folded_normalisation_is_exact_at_the_border(draft):
    kernel, expected = array(3, 3, 3, 4), normalised(draft)
    draft.conv("conv", "moved", kernel, array(4))
    operations = [node.op_type for node in converted(draft, out="conv").graph.node]
    assert operations == ["Transpose", "Cast", "Add", "Conv"]
    np.testing.assert_allclose(run(draft, "conv"), slow_conv(expected, kernel) + array(4), rtol=1e-4, atol=1e-3)


def test_a_factor_of_nothing_is_not_divided_by(draft):
    kernel = array(3, 3, 3, 4)
    draft.node("Mul", "nothing", "float", draft.weight("factor", np.array([0, 1, 1], np.float32)))
    draft.node("AddV2", "moved", "nothing", draft.weight("one", np.array(1, np.float32)))
    draft.conv("conv", "moved", kernel)
    expected = slow_conv(PICTURES * np.array([0, 1, 1], np.float32) + 1, kernel)
    np.testing.assert_allclose(run(draft, "conv"), expected, rtol=1e-4, atol=1e-2)


def test_normalisation_that_no_convolution_takes_is_written_out(draft):
    expected = normalised(draft)
    np.testing.assert_allclose(run(draft, "moved"), expected, rtol=1e-5)
    draft.node("Sigmoid", "sigmoid", "moved")
    np.testing.assert_allclose(run(draft, "sigmoid"), 1 / (1 + np.exp(-expected)), atol=1e-6)


def test_resize_and_sum_with_a_skipped_picture(draft):
    kernel = array(3, 3, 3, 3)
    draft.conv("small", "float", kernel, stride=2)
    draft.doubled("large", "small")
    draft.node("AddV2", "sum", "large", "float")
    pictures = PICTURES.astype(np.float32)
    expected = slow_doubled(slow_conv(pictures, kernel, stride=2)) + pictures
    np.testing.assert_allclose(run(draft, "sum"), expected, rtol=1e-4, atol=1e-2)


def test_several_outputs_by_their_new_names_any_batch_and_size(draft):
    draft.conv("a", "float", array(1, 1, 3, 2))
    draft.conv("b", "a", array(3, 3, 2, 4), stride=2)
    model = converted(draft, second="b", first="a")
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    assert [output.name for output in session.get_outputs()] == ["second", "first"]
    for batch, rows, columns in ((1, 4, 6), (3, 8, 2)):
        second, first = session.run(None, {"images": np.zeros((batch, rows, columns, 3), np.uint8)})
        assert (first.shape, second.shape) == ((batch, 2, rows, columns), (batch, 4, rows // 2, columns // 2))
    assert session.get_modelmeta().custom_metadata_map == {"task": "test"}


def test_the_same_graph_gives_the_same_bytes(draft):
    draft.conv("conv", "float", array(3, 3, 3, 4), array(4), activation="Relu6")
    assert converted(draft, out="conv").SerializeToString() == converted(draft, out="conv").SerializeToString()


def mistakes():
    def unknown(draft):
        return draft.node("FancyOp", "fancy", "float"), r"FancyOp fancy: operation not known; known are AddV2, Cast"

    def missing(draft):
        return "nowhere", "no node nowhere: is it another model"

    def fused(draft):
        return draft.conv("c", "float", array(1, 1, 3, 2), array(2), activation="Elu"), "fused BiasAdd, Elu; known is"

    def padding(draft):
        return draft.conv("c", "float", array(1, 1, 3, 2), padding="EXPLICIT"), "SAME or VALID, got NHWC with EXPLICIT"

    def size(draft):
        draft.weight("size", np.array([8, 8], np.int32))
        return draft.node("ResizeBilinear", "r", "float", "size"), "input's own size times a constant, got size"

    def shape(draft):
        draft.weight("w", np.ones((2, 1), np.float32))
        return draft.node("Mul", "m", "float", "w"), r"one number, or one for each channel, got shape \(2, 1\)"

    def product(draft):
        return draft.node("Mul", "m", "float", "float"), "expected a picture and a constant, got float and float"

    def kernel(draft):
        attributes = {"strides": [1, 1, 1, 1], "padding": "SAME"}
        return draft.node("_FusedConv2D", "c", "float", "float", **attributes), "input 1 must be a constant, got float"

    return [unknown, missing, fused, padding, size, shape, product, kernel]


@pytest.mark.parametrize("mistake", mistakes(), ids=lambda mistake: mistake.__name__)
def test_what_is_not_known_is_refused_by_name(draft, mistake):
    last, message = mistake(draft)
    with pytest.raises(ConversionError, match=message):
        converted(draft, out=last)
