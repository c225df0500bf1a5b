"""Each problem of a graph file has the id of its kind, and the error as a whole that of its problems if they agree."""

from __future__ import annotations

from pathlib import Path
from textwrap import indent

import pytest

from camgraph.pipeline.errors import GraphError, Problem
from camgraph.pipeline.graph import load_graph, parse_graph
from camgraph.pipeline.graph.env_file import read_env_file
from camgraph.stages.rules.rule_set import parse_rules
from camgraph.tools.cli import main
from camgraph.tools.commands.explaining.kinds import kinds

COUNT = "count: {use: count_source}"
DOUBLE = "double: {use: double, from: count}"


def graph_of(*stages: str, cameras: str = "{front: {frames: 3}}") -> str:
    return f"version: 1\ncameras: {cameras}\nstages:\n" + indent("\n".join(stages), "  ")


def graph_error(text: str, folder: Path) -> GraphError:
    with pytest.raises(GraphError) as caught:
        parse_graph(text, "g.yaml", base_folder=folder, environ={})
    return caught.value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "yaml-mistake"),
        ("stages: [", "yaml-mistake"),
        ("a: \0", "yaml-mistake"),
        (graph_of(COUNT, COUNT, "sink: {use: running_sum, from: count}"), "yaml-mistake"),
        (graph_of(COUNT, "sink: {use: running_sum, from: count, threads: 0x}"), "setting-value"),
        (graph_of(COUNT, "sink: {use: running_sum, from: count, thread: 1}"), "key-unknown"),
        (graph_of(COUNT, "sink: {use: running_sum, from: count, with: {nothing: 1}}"), "key-unknown"),
        (graph_of(COUNT, "sink: {use: running_sum}"), "setting-missing"),
        (graph_of(COUNT, "log: {use: collect_events, from: count}"), "setting-missing"),
        (graph_of(COUNT, "sink: {from: count}"), "setting-missing"),
        (graph_of(COUNT, "sink: {use: runing_sum, from: count}"), "stage-unknown"),
        (graph_of(COUNT, "sink: {use: running_sum, from: cuont}"), "stage-not-in-graph"),
        (graph_of(COUNT, "a: {use: double, from: [count, b]}", "b: {use: double, from: a}"), "graph-loop"),
        (graph_of(COUNT, DOUBLE, "both: {use: pair, from: double}"), "stages-do-not-fit"),
        (graph_of(COUNT, "outbox: {use: running_sum, from: count}"), "name-not-allowed"),
        (graph_of(COUNT, cameras='{"日 本": {frames: 3}}'), "name-not-allowed"),
        (graph_of(COUNT, cameras='{front: {frames: 3, fail: "${WHY}"}}'), "variable-missing"),
        (graph_of(COUNT, cameras='{front: {frames: 3, fail: "${WHY"}}'), "variable-missing"),
        (graph_of("count: {use: capture}", cameras="{front: {url: none.mp4}}"), "file-missing"),
        (graph_of("count: {use: capture}", cameras="{front: {url: 'rtps://10.0.0.1/x'}}"), "camera-address"),
    ],
)
def test_a_problem_has_the_id_of_its_kind(text: str, expected: str, tmp_path: Path) -> None:
    found = graph_error(text, tmp_path)
    assert expected in found.error_ids, str(found)
    assert {problem.error_id for problem in found.problems} <= kinds().keys()


def test_a_graph_that_is_not_there(tmp_path: Path) -> None:
    for path, expected in ((tmp_path / "g.yaml", "file-missing"), (tmp_path, "file-kind")):
        with pytest.raises(GraphError) as caught:
            load_graph(path)
        assert caught.value.error_id == expected


def test_an_error_has_the_id_that_all_of_its_problems_share(tmp_path: Path) -> None:
    unknown = graph_of(COUNT, "sink: {use: running_sum, from: count, thread: 1, batches: 2}")
    assert graph_error(unknown, tmp_path).error_id == "key-unknown"
    several = graph_error(unknown.replace("front", '"日 本"'), tmp_path)
    assert several.error_id == "graph-mistake"
    assert several.error_ids == ("name-not-allowed", "key-unknown")


def test_an_id_is_no_part_of_a_text_or_of_equality() -> None:
    one, other = (Problem("g.yaml", 1, 2, "wrong", error_id=error_id) for error_id in ("graph-loop", "key-unknown"))
    assert one == other
    assert str(one) == "g.yaml:1:2: wrong"


def test_a_stages_check_gives_the_kind_of_its_mistake(tmp_path: Path) -> None:
    text = "infer: {use: infer, from: count, with: {model: none.onnx, custom_ops: [ops.so]}}"
    ids = {problem.error_id for problem in graph_error(graph_of(COUNT, text), tmp_path).problems}
    assert {"model-missing", "file-missing"} <= ids


@pytest.mark.processes
def test_a_damaged_file_of_a_camera(tmp_path: Path) -> None:
    (tmp_path / "a.mp4").write_bytes(b"\0" * 5000)
    (tmp_path / "g.yaml").write_text(
        graph_of("look: {use: capture}", "sink: {use: sink_null, from: look}", cameras="{front: {url: a.mp4}}")
    )
    with pytest.raises(GraphError) as caught:
        load_graph(tmp_path / "g.yaml", strict=True)
    assert caught.value.error_id == "video-unreadable"


def test_mistakes_in_rules_are_of_one_kind_unless_no_yaml(tmp_path: Path) -> None:
    wrong = "version: 1\nrules:\n  - {id: a, when: hands(, label: 1}\n  - {ids: b}\n  - {id: b, id: c}\n"
    for text, expected in ((wrong, ("rule-mistake",)), ("rules: [", ("yaml-mistake",))):
        with pytest.raises(GraphError) as caught:
            parse_rules(text, "rules.yaml")
        assert caught.value.error_ids == expected
    inline = "rules: {use: rules, from: count, with: {rules: [{id: a, when: 'hands(', for: 1s}]}}"
    assert "rule-mistake" in graph_error(graph_of(COUNT, inline), tmp_path).error_ids


def test_a_file_of_variables(tmp_path: Path) -> None:
    file = tmp_path / "vars.env"
    file.write_text("no line\n")
    with pytest.raises(GraphError) as caught:
        read_env_file(file)
    assert caught.value.error_id == "env-file"


@pytest.mark.parametrize("terminal", [True, False])
def test_check_ends_with_the_ids_of_the_problems_in_one_line(
    terminal: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "g.yaml"
    file.write_text(graph_of(COUNT, "sink: {use: running_sum, from: cuont, thread: 1}"))
    monkeypatch.setattr("sys.stderr.isatty", lambda: terminal)
    main.main(["check", str(file)], standalone_mode=False)
    last = capsys.readouterr().err.splitlines()[-1]
    assert (last == "more: camgraph explain stage-not-in-graph key-unknown") is terminal
