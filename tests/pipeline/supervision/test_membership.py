"""Cameras come and go, rest, and get other settings while a graph runs in real processes; nobody else is touched."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from camgraph_test_stages.changes import ENDLESS, LIMIT_S, Talk, lives, run_with, whole, write

from camgraph.pipeline.errors import EXIT_GAVE_UP, UserError
from camgraph.pipeline.graph import load_plan
from camgraph.pipeline.plan import run_to_wire
from camgraph.pipeline.testing import run_graph


@pytest.mark.parametrize(
    ("processes", "each", "live"), [("separate", 0, "false"), ("compact", 0, "false"), ("separate", 2, "true")]
)
def test_cameras_come_and_go_and_nobody_else_is_touched(tmp_path: Path, processes: str, each: int, live: str) -> None:
    own = {**ENDLESS, "live": live}

    def talk(run: Talk) -> None:
        run.moves("a", "b")
        before = run.pids()
        values = {**ENDLESS, "live": live == "true"}
        run.ask("add", camera="c", values=values)
        run.moves("a", "b", "c")
        run.ask("remove", camera="b")
        run.until(lambda known: "b" not in known["cameras"])
        run.ask("add", camera="b", values=values)
        run.moves("a", "b", "c")
        run.ask("remove", camera="c")
        run.until(lambda known: "c" not in known["cameras"])
        run.moves("a", "b")
        after = run.pids()
        assert {name: pid for name, pid in before.items() if after.get(name) != pid}.keys() <= {"src.b"}

    run_with(write(tmp_path, {"a": own, "b": own}, processes=processes, each=each), talk)
    if live == "false":
        found = lives(tmp_path)
        assert [len(found[camera]) for camera in "abc"] == [1, 2, 1]
        assert all(whole(life) for own_lives in found.values() for life in own_lives)


LOSES = """
version: 1
name: l{pid}
processes: compact
cameras: {{a: {own}, b: {own}}}
stages:
  src: {{use: count_source}}
  bad: {{use: crash, from: src, with: {{how: bad_item, at_seq: 3, camera: b}}}}
  out: {{use: collect, from: bad, workers: 1, with: {{path: numbers}}}}
"""


def test_what_a_removed_camera_has_lost_is_a_problem(tmp_path: Path) -> None:
    """`bad` is in the process of its camera, and what that has counted outlives it."""

    def talk(run: Talk) -> None:
        run.moves("a", "b")
        run.ask("remove", camera="b")
        run.until(lambda known: "b" not in known["cameras"])
        run.moves("a")
        assert "src.b" not in run.pids()

    path, talking = tmp_path / "graph.yaml", Talk(talk)
    path.write_text(LOSES.format(pid=os.getpid(), own=json.dumps(ENDLESS)))
    outcome, _ = run_graph(load_plan(path), talking)
    if talking.error:
        raise talking.error
    [problem] = outcome.problems
    assert (outcome.status, problem.partition(":")[0]) == (EXIT_GAVE_UP, "frames dropped (1 of b)")


def test_a_camera_that_rests_goes_on_where_it_was(tmp_path: Path) -> None:
    def talk(run: Talk) -> None:
        def frames() -> int:
            return int(run.ask("cameras")["cameras"]["b"]["frames"])

        run.moves("a", "b")
        run.ask("pause", camera="b")
        run.moves("a", by=200)  # longer than what a process has counted takes to be heard
        still = frames()
        run.kill("src.b")
        run.moves("a", by=200)
        run.until(lambda known: run.ask("status")["processes"]["src.b"]["state"] == "running")
        run.moves("a", by=200)
        assert run.ask("cameras")["paused"] == ["b"]
        assert frames() == still
        run.ask("resume", camera="b")
        run.moves("b")

    run_with(write(tmp_path, {"a": ENDLESS, "b": ENDLESS}), talk)
    found = lives(tmp_path)
    assert [len(found[camera]) for camera in "ab"] == [1, 1]
    assert all(whole(life) for own in found.values() for life in own)


def test_a_change_gets_through_whatever_dies_meanwhile(tmp_path: Path) -> None:
    def talk(run: Talk) -> None:
        run.moves("a", "b")
        run.ask("add", camera="c", values=ENDLESS)
        for process in ("left.0", "left.1", "both.0", "outbox.0"):
            run.kill(process)
        run.moves("a", "b", "c")
        for _ in range(3):  # the third time it is not started again at once
            run.kill("src.b")
        run.ask("remove", camera="b")
        run.kill("numbers.0")
        run.until(lambda known: "b" not in known["cameras"])
        run.moves("a", "c")

    run_with(write(tmp_path, {"a": ENDLESS, "b": ENDLESS}), talk)
    found = lives(tmp_path)
    assert [len(found[camera]) for camera in "abc"] == [1, 1, 1]
    assert all(whole(life) for own in found.values() for life in own)


def test_a_changed_graph_file_is_taken_over(tmp_path: Path) -> None:
    path = write(tmp_path, {"a": ENDLESS, "b": ENDLESS, "c": ENDLESS})

    def talk(run: Talk) -> None:
        run.moves("a", "b", "c")
        before = run.pids()
        run.ask("add", camera="extra", values=ENDLESS)
        run.moves("extra")
        write(tmp_path, {"a": ENDLESS, "b": {**ENDLESS, "bytes": 100}, "d": ENDLESS}, every=2)
        answer = run.ask("reload", plan=run_to_wire(load_plan(path)))
        assert (answer["added"], answer["removed"], answer["changed"]) == (["d"], ["c"], ["b"])
        assert (answer["restarted"], answer["kept"]) == (["thin.0"], ["extra"])
        run.settled()
        run.moves("a", "b", "d", "extra")
        assert list(run.ask("cameras")["cameras"]) == ["a", "b", "d", "extra"], "as the file has them"
        after = run.pids()
        assert {name for name, pid in before.items() if after.get(name) != pid} == {"thin.0", "src.b", "src.c"}
        same = run.ask("reload", plan=run_to_wire(load_plan(path)))
        assert not any(same[kind] for kind in ("added", "removed", "changed", "restarted"))

    run_with(path, talk)


def test_settings_that_a_stage_does_not_open_with_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path, {"a": ENDLESS, "b": ENDLESS})

    def talk(run: Talk) -> None:
        run.moves("a", "b")
        path.write_text(path.read_text().replace("path: numbers", "path: no/such/folder/numbers"))
        assert run.ask("reload", plan=run_to_wire(load_plan(path)))["restarted"] == ["numbers.0"]
        run.moves("a", "b")

    run_with(path, talk)
    found = lives(tmp_path)
    assert [[whole(life) for life in found[camera]] for camera in "ab"] == [[True], [True]]


def test_the_only_camera_gets_other_settings(tmp_path: Path) -> None:
    path = write(tmp_path, {"a": ENDLESS})

    def talk(run: Talk) -> None:
        run.moves("a")
        write(tmp_path, {"a": {**ENDLESS, "bytes": 50000}})
        assert run.ask("reload", plan=run_to_wire(load_plan(path)))["changed"] == ["a"]
        run.settled()
        run.moves("a")

    run_with(path, talk)
    assert [whole(life) for life in lives(tmp_path)["a"]] == [True, True]


@pytest.mark.parametrize(
    ("op", "values", "why"),
    [
        ("add", {"camera": "a", "values": {}}, "there is a camera called a"),
        ("add", {"camera": "../x", "values": {}}, "cannot be called"),
        ("add", {"camera": "x"}, "expected an object `values`"),
        ("add", {"camera": "x", "values": {"frames": "no"}}, "camera x: frames: .* settings of `count_source`"),
        ("add", {"camera": "x", "values": {"live": True}}, "is live, and those of this run are files"),
        ("remove", {"camera": "x"}, "no camera called x; there are: a, b"),
        ("pause", {}, "no camera called None"),
        ("reload", {"plan": {"processes": 3}}, "expected the plan of a graph"),
        ("explode", {}, "unknown request 'explode'"),
    ],
)
def test_what_cannot_be_is_said(
    asked: Callable[..., dict[str, Any]], op: str, values: dict[str, Any], why: str
) -> None:
    with pytest.raises(UserError, match=why):
        asked(op, **values)


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Asks a run that goes on through all tests that want it."""
    folder = tmp_path_factory.mktemp("asked")
    begun, over = threading.Event(), threading.Event()

    def talk(run: Talk) -> None:
        holder["run"] = run
        begun.set()
        over.wait()

    holder: dict[str, Talk] = {}
    path = write(folder, {"a": ENDLESS, "b": ENDLESS}, name="asked")  # it goes on while others run
    thread = threading.Thread(target=lambda: run_graph(load_plan(path), Talk(talk), limit_s=200), daemon=True)
    thread.start()
    assert begun.wait(LIMIT_S)
    yield holder["run"].ask
    over.set()
    thread.join(LIMIT_S)
    assert not thread.is_alive()
