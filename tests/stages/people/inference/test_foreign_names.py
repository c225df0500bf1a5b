"""Names that a model's file brings along, in what is said of it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from camgraph.pipeline.errors import UserError
from camgraph.pipeline.testing import stamp
from camgraph.stages.messages import Tensor
from camgraph.stages.people.inference.contracts import InputSettings, read_contract
from camgraph.stages.people.inference.engines.engine import one_line
from camgraph.stages.people.inference.feeds import ArrayFeed, read_feeds
from camgraph.stages.people.inference.model.model_safety import checked_model
from camgraph.stages.vision.recognition import Port, Signature, Unrecognised, recognise
from camgraph.tools.models.profile.events import Node, Profile
from camgraph.tools.models.profile.report import lines

EVIL = "\x1b[2J\x1b]0;title\x07"
SHOWN = r"\x1b[2J\x1b]0;title\x07"
PICTURE = Port(f"images{EVIL}", ("n", 3, 64, 64), "tensor(float)")


def printable(error: Exception) -> str:
    assert str(error).isprintable()
    return str(error)


def test_in_a_contract() -> None:
    nothing = InputSettings()
    with pytest.raises(UserError) as caught:
        read_contract(Signature((Port(f"images{EVIL}", ("n", 5), "tensor(float)"),), ()), "m", nothing)
    assert f"input `images{SHOWN}` is" in printable(caught.value)
    with pytest.raises(UserError) as caught:
        read_contract(Signature((PICTURE, Port(f"size{EVIL}", ("n", f"k{EVIL}"), "tensor(int64)")), ()), "m", nothing)
    assert f"`size{SHOWN}` (tensor(int64) ['n', 'k{SHOWN}'])" in printable(caught.value)


def test_in_what_a_feed_lacks() -> None:
    port = Port(f"template{EVIL}", ("n", f"k{EVIL}"), "tensor(float)")
    signature, declared = Signature((PICTURE, port), ()), {port.name: ArrayFeed(array="template")}
    _, feeds = read_feeds(signature, read_contract(signature, "m", InputSettings(), declared), "m", declared)
    item = Tensor(stamp(), {"image": np.zeros((1, 64, 64, 3), np.uint8)}, np.ones((1, 4), np.float32), (9, 9), (64, 64))
    with pytest.raises(UserError) as caught:
        feeds.of_item(item)
    assert f"nothing fills `template{SHOWN}`: expected an array `template`, float32 (n, k{SHOWN})" in printable(
        caught.value
    )


def test_in_outputs_that_nobody_knows() -> None:
    signature = Signature((PICTURE,), (Port(f"o{EVIL}", ("n", 5, 5, 5), "tensor(float)"),), {"task": f"pose{EVIL}"})
    with pytest.raises(Unrecognised) as caught:
        recognise(signature)
    assert f"its outputs (o{SHOWN} " in printable(caught.value)
    assert f"task `pose{SHOWN}`" in printable(caught.value)


def test_in_a_model_that_is_not_opened(tmp_path: Path) -> None:
    value = helper.make_tensor_value_info
    ports = [value("x", TensorProto.FLOAT, [1])], [value("y", TensorProto.FLOAT, [1])]
    weights = numpy_helper.from_array(np.zeros(1, np.float32), f"w{EVIL}")
    weights.ClearField("raw_data")
    weights.data_location = TensorProto.EXTERNAL
    weights.external_data.add(key="location", value=f"absent{EVIL}")
    foreign = helper.make_node("Own", ["x"], ["y"], domain=f"somebody{EVIL}")
    for node, constants, words in (
        (foreign, [], f"operators of somebody{SHOWN}"),
        (helper.make_node("Add", ["x", weights.name], ["y"]), [weights], f"`w{SHOWN}` lie in `absent{SHOWN}`"),
    ):
        path = tmp_path / "m.onnx"
        path.write_bytes(helper.make_model(helper.make_graph([node], "g", *ports, constants)).SerializeToString())
        with pytest.raises(UserError) as caught:
            checked_model(path)
        assert words in printable(caught.value)


def test_in_what_an_engine_says_and_does() -> None:
    assert one_line(RuntimeError(f"node\n {EVIL}")) == f"node {SHOWN}"
    node = Node(f"node{EVIL}", f"Conv{EVIL}", "cpu", 1.0, 0, 0, "-")
    reported = list(lines(Profile(1, 1.0, 1.0, [node], 0, 0), "cpu", 5))
    assert Counter(line.isprintable() for line in reported) == {True: len(reported)}
    assert any(f"| node{SHOWN} | Conv{SHOWN} |" in line for line in reported)
