"""A run loads graphs and cameras with its own variables, and takes those of others over only with their graph."""

from __future__ import annotations

from pathlib import Path

import pytest

from camgraph.pipeline.errors import GraphError, UserError
from camgraph.pipeline.graph import load_plan
from camgraph.pipeline.graph.env_file import Variables
from camgraph.pipeline.graph.graph_source import GraphSource
from camgraph.pipeline.plan import RunPlan
from camgraph.pipeline.wanted import GivenVariables, LoadedGraph, WantedGraph

GRAPH = """
version: 1
name: loaded
cameras: {a: {frames: "${FRAMES}"}}
stages:
  src: {use: count_source}
  out: {use: sink_null, from: src}
"""


@pytest.fixture
def wanted(tmp_path: Path) -> WantedGraph:
    (tmp_path / "g.yaml").write_text(GRAPH)
    return WantedGraph(str(tmp_path / "g.yaml"), "loaded")


def env_file(folder: Path, name: str, frames: int) -> Path:
    file = folder / name
    file.write_text(f"FRAMES={frames}\n")
    file.chmod(0o600)
    return file


def with_files(wanted: WantedGraph, *files: Path) -> WantedGraph:
    return WantedGraph(wanted.file, wanted.name, env_files=files)


def frames(loaded: LoadedGraph) -> int:
    return int(str(loaded.plan.camera_settings["a"]["frames"]))


def test_the_text_is_that_of_the_file_unless_one_is_given(wanted: WantedGraph) -> None:
    source = GraphSource(Variables(environ={"FRAMES": "3"}))
    assert frames(source.plan(wanted)) == 3
    other = WantedGraph(wanted.file, wanted.name, text=GRAPH.replace("${FRAMES}", "5"))
    assert frames(source.plan(other)) == 5


def test_client_variables_fill_in_missing_ones(wanted: WantedGraph) -> None:
    asked = WantedGraph(wanted.file, wanted.name, besides={"FRAMES": "9"})
    assert frames(GraphSource(Variables(environ={})).plan(asked)) == 9
    assert frames(GraphSource(Variables(environ={"FRAMES": "3"})).plan(asked)) == 3


def test_env_files_change_once_graph_is_accepted(wanted: WantedGraph, tmp_path: Path) -> None:
    old, new = env_file(tmp_path, "old.env", 1), env_file(tmp_path, "new.env", 2)
    source = GraphSource(Variables([old], {}))
    loaded = source.plan(with_files(wanted, new))
    assert frames(loaded) == 2
    assert frames(source.plan(wanted)) == 1, "the run may have refused it"
    loaded.accept()
    assert frames(source.plan(wanted)) == 2


def test_what_is_settled_besides_is_remarked_on(wanted: WantedGraph) -> None:
    def finish(plan: RunPlan, say: object) -> RunPlan:
        assert callable(say)
        say("settled")
        return plan

    source = GraphSource(Variables(environ={"FRAMES": "3"}), finish)
    assert list(source.plan(wanted).remarks) == ["settled"]


def test_a_graph_that_is_wrong_is_told(wanted: WantedGraph) -> None:
    with pytest.raises(GraphError, match=r"g\.yaml:4:23: the environment variable FRAMES is not set"):
        GraphSource(Variables(environ={})).plan(wanted)


def test_a_further_camera_is_checked_like_those_of_the_file(wanted: WantedGraph) -> None:
    source = GraphSource(Variables(environ={"FRAMES": "3", "DOOR_PASSWORD": "Zq9 door"}))
    run = load_plan(wanted.file, environ={"FRAMES": "3"})
    asked, remarks = source.camera("b", {"frames": "${MORE}"}, run, GivenVariables(besides={"MORE": "4"}))
    assert (asked["camera"], asked["values"], remarks) == ("b", {"frames": "4"}, [])
    with pytest.raises(UserError, match="unknown key `frobs`") as caught:
        source.camera("b", {"frobs": "${DOOR_PASSWORD}"}, run, GivenVariables())
    assert caught.value.error_id == "key-unknown"


def test_given_variables_precede_for_added_camera(wanted: WantedGraph) -> None:
    source = GraphSource(Variables(environ={"FRAMES": "3"}))
    run = load_plan(wanted.file, environ={"FRAMES": "3"})
    given = GivenVariables(first={"FRAMES": "7"}, besides={"FRAMES": "9"})
    assert source.camera("b", {"frames": "${FRAMES}"}, run, given)[0]["values"] == {"frames": "7"}
    assert source.camera("c", {"frames": "${FRAMES}"}, run, GivenVariables())[0]["values"] == {"frames": "3"}
