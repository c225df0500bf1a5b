"""Tensors as KServe v2 carries them, against the protocol's own messages."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("tritonclient.grpc", reason="tritonclient is not installed: pip install camgraph[triton]")

from tritonclient.grpc import service_pb2
from tritonclient.utils import np_to_triton_dtype

from camgraph.pipeline.system import redaction
from camgraph.stages.people.inference.engines.kserve_tensors import NoTensor, arrays_of, datatype_of, port_of
from camgraph.stages.vision.recognition import Port

Described = service_pb2.ModelMetadataResponse.TensorMetadata
DTYPES = ("?", "u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8")


def sent(array: np.ndarray, *, name: str = "x", typed: str = "") -> Any:
    """An answer with this array: raw, or with its values under a name of the protocol."""
    response = service_pb2.ModelInferResponse()
    tensor = response.outputs.add(name=name, datatype=np_to_triton_dtype(array.dtype), shape=array.shape)
    if typed:
        getattr(tensor.contents, typed).extend(array.ravel().tolist())
    else:
        response.raw_output_contents.append(array.tobytes())
    return response


def read(response: Any, *ports: Port) -> dict[str, np.ndarray]:
    return arrays_of(response.outputs, response.raw_output_contents, ports)


def port(array: np.ndarray, *shape: int | None, name: str = "x") -> Port:
    return port_of(
        Described(name=name, datatype=np_to_triton_dtype(array.dtype), shape=[-1 if s is None else s for s in shape])
    )


@given(st.sampled_from(DTYPES), st.lists(st.integers(0, 4), max_size=4), st.randoms(use_true_random=False))
def test_every_type_and_shape_comes_back_as_it_went(dtype: str, shape: list[int], random: Any) -> None:
    count = int(np.prod(shape, dtype=int))
    array = np.array([random.randrange(0, 2) for _ in range(count)], dtype).reshape(shape)
    open_port = port(array, *[None] * len(shape))
    assert datatype_of(open_port) == np_to_triton_dtype(array.dtype)
    got = read(sent(array), open_port)["x"]
    assert (got.dtype, got.shape) == (array.dtype, array.shape)
    assert np.array_equal(got, array)


def test_port_has_onnx_type_and_open_dimensions() -> None:
    reported = Described(name="images", datatype="FP16", shape=[-1, 3, 640, -1])
    assert port_of(reported) == Port("images", (None, 3, 640, None), "tensor(float16)")


@pytest.mark.parametrize("kind", ["BYTES", "BF16", ""])
def test_a_type_that_no_array_has_is_refused(kind: str) -> None:
    with pytest.raises(NoTensor, match=rf"`words` is of type {kind or '.none.'}; expected one of BOOL, UINT8"):
        port_of(Described(name="words", datatype=kind, shape=[-1]))


@pytest.mark.parametrize("shape", [[-1, 1 << 40], [1 << 62, 1 << 62], [2**31, 2]])
def test_sides_that_no_model_has_are_refused(shape: list[int]) -> None:
    with pytest.raises(NoTensor, match=r"`x` has sides of \[.*\]; expected at most 2147483648 values in all"):
        port_of(Described(name="x", datatype="FP32", shape=shape))
    assert port_of(Described(name="x", datatype="FP32", shape=[-1, 2**31])).shape == (None, 2**31)


@pytest.mark.parametrize(
    ("dtype", "typed"), [("f4", "fp32_contents"), ("i8", "int64_contents"), ("u1", "uint_contents")]
)
def test_values_that_are_not_raw_are_read_as_well(dtype: str, typed: str) -> None:
    array = np.arange(6, dtype=dtype).reshape(2, 3)
    assert np.array_equal(read(sent(array, typed=typed), port(array, None, 3))["x"], array)


def test_outputs_follow_the_model_order() -> None:
    first, second = np.float32([1, 2]), np.int32([[3], [4]])
    response = sent(second, name="b")
    response.MergeFrom(sent(first, name="a"))
    got = read(response, port(first, None, name="a"), port(second, None, 1, name="b"))
    assert list(got) == ["a", "b"]
    assert got["b"].tolist() == [[3], [4]]


FLOATS = np.zeros((2, 3), np.float32)


@pytest.mark.parametrize(
    ("response", "declared", "text"),
    [
        (sent(FLOATS, name="y"), (None, 3), "expected an output `x`, got y"),
        (sent(FLOATS), (None, 4), r"output `x`: expected FP32 \[any, 4\], got FP32 \[2, 3\]"),
        (sent(FLOATS), (None,), r"output `x`: expected FP32 \[any\], got FP32 \[2, 3\]"),
        (sent(FLOATS.astype("f8")), (None, 3), r"output `x`: expected FP32 \[any, 3\], got FP64 \[2, 3\]"),
    ],
)
def test_another_output_than_promised_is_refused(response: Any, declared: tuple[int | None, ...], text: str) -> None:
    with pytest.raises(NoTensor, match=text):
        read(response, port(FLOATS, *declared))


def test_no_half_of_a_secret_is_shown_where_a_name_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "_known", set())
    monkeypatch.setattr(redaction, "_any_known", None)
    redaction.hide(["0123456789"])
    with pytest.raises(NoTensor) as raised:
        read(sent(FLOATS, name="y" * 95 + "0123456789" + "z" * 50), port(FLOATS, None, 3))
    assert "0123" not in str(raised.value)
    assert "y" * 95 in str(raised.value)


def test_an_answer_that_contradicts_itself_is_refused() -> None:
    short, negative, without, large = (
        sent(FLOATS),
        sent(FLOATS),
        sent(FLOATS),
        sent(np.uint8([[1, 2, 3]]), typed="uint_contents"),
    )
    short.raw_output_contents[0] = b"\0" * 23
    negative.outputs[0].shape[0] = -2
    without.outputs.add(name="y", datatype="FP32", shape=[1])
    large.outputs[0].contents.uint_contents[0] = 300
    declared = port(FLOATS, None, 3)
    for response, text in [
        (short, r"expected 24 bytes for its shape \(2, 3\), got 23"),
        (negative, r"got FP32 \[-2, 3\]"),
        (without, "expected the bytes of 2 outputs, got those of 1"),
    ]:
        with pytest.raises(NoTensor, match=text):
            read(response, declared)
    endless = sent(np.zeros((0, 3), np.float32))
    endless.outputs[0].shape[:] = [0, 2**62, 2**62]
    with pytest.raises(NoTensor, match="no array has the shape"):
        read(endless, port(FLOATS, None, None, None))
    with pytest.raises(NoTensor, match="a value is too large for UINT8"):
        read(large, port(np.uint8([0]), None, 3))
