from __future__ import annotations

import json

import numpy as np
import pytest

from camgraph.tools.assets.movenet.tfjs import ConversionError, read_graph


def test_reads_nodes_with_typed_attributes(draft):
    draft.node("Thing", "thing", "float", "^control", "other:1", a=True, n=7, s="SAME", t="DT_FLOAT", i=[1, 2], e=[])
    node = read_graph(draft.topology(), b"").nodes["thing"]
    assert node.inputs == ("float", "other:1")
    assert node.flag("a")
    assert node.number("n") == 7
    assert (node.text("s"), node.text("t")) == ("SAME", "DT_FLOAT")
    assert (node.numbers("i", ()), node.numbers("e", (9,)), node.numbers("none", (9,))) == ((1, 2), (9,), (9,))


def test_reads_weights_in_order_and_widens_them(draft):
    draft.weight("whole", np.array([[1, -2]], np.int32))
    draft.weight("half", np.array([0.5, 2], np.float16), {"dtype": "float16", "original_dtype": "float32"})
    draft.weight("byte", np.array([0, 255], np.uint8), {"dtype": "uint8", "scale": 0.5, "min": -1.0})
    weights = read_graph(draft.topology(), draft.data).weights
    assert weights["whole"].tolist() == [[1, -2]]
    assert weights["half"].tolist() == [0.5, 2]
    assert weights["byte"].tolist() == [-1, 126.5]
    assert weights["half"].dtype == weights["byte"].dtype == np.float32


@pytest.mark.parametrize("topology", [b"", b"[]", b"{}", b'{"modelTopology": {"node": [{}]}, "weightsManifest": []}'])
def test_a_file_that_is_no_graph_is_refused(topology):
    with pytest.raises(ConversionError, match="expected a graph model in JSON"):
        read_graph(topology, b"")


def test_weights_that_do_not_fit_the_manifest_are_refused(draft):
    draft.weight("w", np.zeros((2, 3), np.float32))
    with pytest.raises(ConversionError, match="ends within w"):
        read_graph(draft.topology(), draft.data[:-1])
    with pytest.raises(ConversionError, match="describes 24 bytes, the file has 25"):
        read_graph(draft.topology(), draft.data + b"x")


def test_an_unknown_dtype_is_named(draft):
    topology = json.loads(draft.topology())
    topology["weightsManifest"][0]["weights"] = [{"name": "w", "shape": [1], "dtype": "complex64"}]
    with pytest.raises(ConversionError, match="w: dtype complex64, expected one of float32"):
        read_graph(json.dumps(topology).encode(), b"12345678")
