"""Entries of a model file are counted without loading it."""

from __future__ import annotations

import mmap
from pathlib import Path

import onnx
import pytest
from google.protobuf.message import Message
from onnx import TensorProto, helper

from camgraph.pipeline.errors import UserError
from camgraph.stages.people.inference.model.file_entries import MOST_ENTRIES, _counted, has_too_many_entries
from camgraph.stages.people.inference.model.model_safety import checked_model, weight_files


def varint(value: int) -> bytes:
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def entries_of(message: Message) -> int:
    """The slow way: of what was loaded."""
    found = 0
    for field, value in message.ListFields():
        values = value if field.is_repeated else [value]
        if field.message_type is not None:
            found += sum(1 + entries_of(one) for one in values)
        else:
            found += 1 if field.is_repeated and field.has_options and field.GetOptions().packed else len(values)
    return found


def counted(path: Path) -> int:
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return _counted(data)


def model() -> onnx.ModelProto:
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", 3]) for name in ("in", "out")]
    branch = helper.make_graph([helper.make_node("Relu", ["in"], ["x"])], "b", [], [ports[1]])
    nodes = [
        helper.make_node("If", ["in"], ["out"], then_branch=branch, else_branch=branch),
        helper.make_node("Conv", ["in", "w"], ["out"], strides=[2, 300], name="n" * 300),
    ]
    weights = [helper.make_tensor("w", TensorProto.FLOAT, [2, 2], [1.0, 2.0, 3.0, 4.0])]
    return helper.make_model(helper.make_graph(nodes, "g", [ports[0]], [ports[1]], weights))


def test_as_many_as_are_loaded(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(model(), str(path))
    assert counted(path) == entries_of(onnx.load(str(path))) > 60


@pytest.mark.slow
def test_a_small_file_that_takes_gigabytes_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    nodes = b"\x0a\x00" * MOST_ENTRIES
    path.write_bytes(b"\x08\x08\x3a" + varint(len(nodes)) + nodes)
    for look in (checked_model, weight_files):
        with pytest.raises(UserError, match=r"it has more than 2,000,000 entries: such a model is not opened"):
            look(path)


@pytest.mark.parametrize("cut", [0, 1, 2, 3, 50, -1])
def test_damage_is_left_to_the_loader(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(model().SerializeToString()[:cut])
    assert not has_too_many_entries(path)


@pytest.mark.parametrize(
    "data", [b"\x3b\x0b\x08", b"\x3e\x01\x02", b"\xff" * 300, b"\x3a\xff\xff\xff\xff\xff\xff\x01\x0a"]
)
def test_nonsense_has_an_end(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(data)
    assert not has_too_many_entries(path)
