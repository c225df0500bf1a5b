"""Models that are more than anybody can look at: bounded, and said, before ONNX Runtime or anything else hangs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import onnx
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from onnx import AttributeProto, FunctionProto, NodeProto, TensorProto, helper
from onnx.inliner import inline_local_functions

from camgraph.pipeline.errors import UserError
from camgraph.stages.people.infer import Infer, InferSettings
from camgraph.stages.people.inference.model.extent import ANALYSED, contents_of
from camgraph.stages.people.inference.model.model_files import sha256_of
from camgraph.stages.people.inference.model.model_safety import checked_model
from camgraph.stages.people.inference.signatures import signature_of_file
from camgraph.tools.models.command import model as command

OPSETS = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]


def made(
    nodes: Sequence[NodeProto], functions: Sequence[FunctionProto] = (), weights: Sequence[TensorProto] = ()
) -> onnx.ModelProto:
    def port(name: str) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 3, 64, 64])

    graph = helper.make_graph(nodes, "g", [port("in")], [port("out")], weights)
    return helper.make_model(graph, opset_imports=OPSETS, ir_version=8, functions=functions)


def call(name: str, source: str, target: str) -> NodeProto:
    """Of a function, `name` or `name/overload`; names in capitals are ONNX's own."""
    name, _, overload = name.partition("/")
    return helper.make_node(name, [source], [target], domain="" if name.istitle() else "own", overload=overload)


def calling(name: str, called: Sequence[str]) -> FunctionProto:
    """A function, `name` or `name/overload`, that calls these, one after the other."""
    ends = ["x", *(f"v{n}" for n in range(len(called) - 1)), "y"]
    nodes = [call(one, ends[at], ends[at + 1]) for at, one in enumerate(called)]
    name, _, overload = name.partition("/")
    return helper.make_function("own", name, ["x"], ["y"], nodes, OPSETS, overload=overload)


def doubling(times: int, *, named: str = "f{}", called: str = "f{}", others: str = "") -> onnx.ModelProto:
    """Functions of which each calls the one before it twice. `others`: harmless ones, with these names."""
    functions = [calling(named.format(0), ["Relu"])]
    functions += [calling(named.format(n), [called.format(n - 1)] * 2) for n in range(1, times + 1)]
    functions += [calling(others.format(n), ["Relu"]) for n in range(times + 1)] if others else []
    return made([call(called.format(times), "in", "out")], functions)


def chain(length: int) -> onnx.ModelProto:
    ends = ["in", *(f"v{n}" for n in range(length - 1)), "out"]
    return made([helper.make_node("Relu", [ends[n]], [ends[n + 1]]) for n in range(length)])


@given(st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=4), min_size=1, max_size=5), st.booleans())
def test_nodes_are_counted_as_often_as_functions_are_called(calls: list[list[int]], by_overload: bool) -> None:
    names = [f"f/{n}" if by_overload else f"f{n}" for n in range(len(calls))]
    functions = [
        calling(names[n], [names[one] if one < n else "Relu" for one in called]) for n, called in enumerate(calls)
    ]
    model = made([call(names[-1], "in", "out")], functions)
    assert contents_of(model).extent.nodes == len(inline_local_functions(model).graph.node)


@pytest.mark.parametrize(
    "model",
    [
        doubling(30),
        doubling(30, others="f{}/z"),
        doubling(30, named="f/{}", called="f:{}"),
        doubling(30, named="f:{}", called="f/{}"),
        doubling(30, others="f{}"),
        made(doubling(30).graph.node, [*doubling(30).functions, helper.make_function("", "", [], [], [], OPSETS)]),
        made([helper.make_node("f", ["in"], ["out"], domain="own")], [calling("f", ["f", "f"])]),
    ],
    ids=["doubles", "overloads", "colon called", "colon named", "same names", "no name", "calls itself"],
)
def test_functions_without_end_are_refused(tmp_path: Path, model: onnx.ModelProto) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(model, str(path))
    for look in (checked_model, signature_of_file, sha256_of):
        with pytest.raises(UserError, match=r"it has more than 1,000,000 nodes, with its functions put in"):
            look(path)
    [(key, text)] = Infer.check(InferSettings.model_validate({"model": "m.onnx"}), tmp_path)
    assert (key, "more than 1,000,000 nodes" in text) == (("model",), True)


def test_two_functions_of_one_name_are_refused(tmp_path: Path) -> None:
    onnx.save(doubling(1, others="f{}"), str(tmp_path / "m.onnx"))
    with pytest.raises(UserError, match=r"it has several functions `own:f0` .* export it again"):
        checked_model(tmp_path / "m.onnx")


def handing(by_default: bool) -> onnx.ModelProto:
    """A function puts a graph in twice that it is handed. Nested 30 deep, these are a billion nodes."""
    port = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 3, 64, 64])
    given = helper.make_attribute("body", helper.make_graph([helper.make_node("Relu", ["in"], ["y"])], "b", [], [port]))
    branches = [
        AttributeProto(name=f"{which}_branch", type=AttributeProto.GRAPH, ref_attr_name="body")
        for which in ("then", "else")
    ]
    yes = helper.make_tensor("yes", TensorProto.BOOL, [], [True])
    nodes = [helper.make_node("Constant", [], ["c"], value=yes), helper.make_node("If", ["c"], ["y"])]
    nodes[1].attribute.extend(branches)
    defaults = {"attribute_protos": [given]} if by_default else {"attributes": ["body"]}
    function = helper.make_function("own", "f", ["x"], ["y"], nodes, OPSETS, **defaults)
    outer = call("f", "in", "out")
    outer.attribute.extend([] if by_default else [given])
    return made([outer], [function])


def test_weights_in_a_function_count_as_often_as_it_is_called(tmp_path: Path) -> None:
    """ONNX Runtime has a copy for each call."""
    weights = helper.make_tensor("w", TensorProto.FLOAT, [1_000_000], bytes(4_000_000), raw=True)
    nodes = [
        helper.make_node("Constant", [], ["c"], value=weights),
        helper.make_node("ReduceMean", ["c"], ["m"], keepdims=0),
        helper.make_node("Add", ["x", "m"], ["y"]),
    ]
    function = helper.make_function("own", "f", ["x"], ["y"], nodes, OPSETS)
    for count, refused in ((20, False), (300, True)):
        ends = ["in", *(f"v{n}" for n in range(count - 1)), "out"]
        path = tmp_path / f"{count}.onnx"
        onnx.save(made([call("f", ends[n], ends[n + 1]) for n in range(count)], [function]), str(path))
        assert path.stat().st_size < 5_000_000
        if refused:
            with pytest.raises(UserError, match=r"it has more than 1,000,000,000 bytes in its functions, put in where"):
                checked_model(path)
        else:
            assert contents_of(checked_model(path)).extent.copied == pytest.approx(count * 4_000_000, rel=0.01)


@pytest.mark.parametrize("by_default", [True, False])
def test_weights_passed_to_functions_count_per_use(tmp_path: Path, by_default: bool) -> None:
    weights = helper.make_attribute(
        "w", helper.make_tensor("w", TensorProto.FLOAT, [100_000], bytes(400_000), raw=True)
    )
    taking = helper.make_node("Constant", [], ["c"])
    taking.attribute.append(AttributeProto(name="value", type=AttributeProto.TENSOR, ref_attr_name="w"))
    nodes = [
        taking,
        helper.make_node("ReduceMean", ["c"], ["m"], keepdims=0),
        helper.make_node("Add", ["x", "m"], ["y"]),
    ]
    defaults = {"attribute_protos": [weights]} if by_default else {"attributes": ["w"]}
    inner = helper.make_function("own", "f0", ["x"], ["y"], nodes, OPSETS, **defaults)
    handing_on = []
    for ends in (("x", "v"), ("v", "y")):
        handing_on.append(call("f0", *ends))
        if not by_default:
            handing_on[-1].attribute.append(AttributeProto(name="w", type=AttributeProto.TENSOR, ref_attr_name="w"))
    outer = helper.make_function("own", "f1", ["x"], ["y"], handing_on, OPSETS, attributes=[] if by_default else ["w"])
    once = call("f1", "in", "out")
    once.attribute.extend([] if by_default else [weights])
    assert contents_of(made([once], [inner, outer])).extent.copied >= 2 * 400_000
    many = [call("f1", "in" if not n else f"v{n}", f"v{n + 1}" if n < 1999 else "out") for n in range(2000)]
    small = helper.make_attribute("w", helper.make_tensor("w", TensorProto.FLOAT, [1], [1.0]))
    for number, one in enumerate([] if by_default else many):
        one.attribute.append(small if number else weights)
    onnx.save(made(many, [inner, outer]), str(tmp_path / "m.onnx"))
    with pytest.raises(UserError, match="more than 1,000,000,000 bytes in its functions"):
        checked_model(tmp_path / "m.onnx")


@pytest.mark.parametrize("by_default", [True, False])
def test_graphs_handed_to_functions_are_refused(tmp_path: Path, by_default: bool) -> None:
    onnx.save(handing(by_default), str(tmp_path / "m.onnx"))
    with pytest.raises(UserError, match=r"it hands graphs to its functions as attributes: .* export it without them"):
        checked_model(tmp_path / "m.onnx")


@pytest.mark.parametrize(
    ("model", "what"),
    [
        (chain(ANALYSED.nodes + 1), "20,000 nodes, with its functions put in where they are called"),
        (
            made(
                [helper.make_node("Relu", ["in"], ["out"])],
                weights=[helper.make_tensor(f"w{n}", TensorProto.FLOAT, [1], [0.0]) for n in range(20_001)],
            ),
            "20,000 weights",
        ),
        (
            made([helper.make_node("Sum", ["in"] * (ANALYSED.parts + 1), ["out"])]),
            "200,000 attributes, names and entries",
        ),
    ],
    ids=["nodes", "weights", "names"],
)
def test_what_is_too_large_is_said_with_what_the_file_states(tmp_path: Path, model: onnx.ModelProto, what: str) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(model, str(path))
    signature = signature_of_file(path)
    assert [(port.name, port.shape) for port in (*signature.inputs, *signature.outputs)] == [
        ("in", (1, 3, 64, 64)),
        ("out", (1, 3, 64, 64)),
    ]
    [remark] = Infer.remarks(InferSettings.model_validate({"model": "m.onnx"}), tmp_path, {})
    assert f"too large to analyse: it has more than {what}" in remark
    ran = CliRunner().invoke(command, ["inspect", str(path), "--json", str(tmp_path / "m.json")])
    assert ran.exit_code == 0, ran.output
    assert f"too large to analyse: it has more than {what}" in ran.output
    assert "input  in  tensor(float) [1, 3, 64, 64]" in ran.output
    record = json.loads((tmp_path / "m.json").read_text())
    assert (record["runs_on"], record["flops"]["total"], what in record["too_large"]) == (None, 0, True)


def test_a_type_that_there_is_not_is_a_mistake_of_the_model(tmp_path: Path) -> None:
    model = chain(ANALYSED.nodes + 1)
    model.graph.output[0].type.tensor_type.elem_type = 99
    onnx.save(model, str(tmp_path / "m.onnx"))
    with pytest.raises(UserError, match=r"output `out` is tensor\(undefined\)"):
        signature_of_file(tmp_path / "m.onnx")
