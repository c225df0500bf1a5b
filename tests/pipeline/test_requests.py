"""What a run answers, and what it wants afterwards: its processes are never started here."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import structlog

from pipeline.fleet import Fleet
from pipeline.graph import load_plan
from pipeline.membership import Membership
from pipeline.plan import RunPlan, run_to_wire
from pipeline.process import Process
from pipeline.reports import Report
from pipeline.requests import Requests
from pipeline.run_folder import RunFolder

GRAPH = """
version: 1
name: {name}
camera_defaults: {{frames: 5}}
cameras: {{a: {{}}, b: {{}}}}
stages:
  src: {{use: count_source}}
  emit: {{use: emit, from: src}}
  out: {{use: collect_events, from: emit, with: {{path: events}}}}
"""


class Still:
    """A run in which nothing happens."""

    def status(self) -> dict[str, Any]:
        return {"cameras": {}}

    def stop(self) -> None: ...

    def heard(self, process: Process, report: Report) -> None: ...

    def died(self, process: Process, status: int, *, opened: bool) -> None: ...


class Asked:
    """A run of the graph's `plan` that can be asked; nothing of it takes a step."""

    def __init__(self, plan: RunPlan, folder: RunFolder) -> None:
        self.plan = plan
        log = structlog.get_logger()
        self.members = Membership(plan, Fleet(plan, folder, Still()), log)
        self.requests = Requests(Still(), self.members, log)

    def ask(self, op: str, **values: Any) -> dict[str, Any]:
        answer = self.requests.answer({"op": op, **values})
        assert "error" not in answer, answer
        return answer

    def reload(self, **changes: Any) -> dict[str, Any]:
        return self.ask("reload", plan=run_to_wire(replace(self.plan, **changes)))


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Asked]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    path = tmp_path / "graph.yaml"
    path.write_text(GRAPH.format(name=f"q{os.getpid()}"))
    plan = load_plan(path)
    folder = RunFolder(plan.graph)
    yield Asked(plan, folder)
    folder.close()


def test_a_camera_that_was_added_and_has_not_come_yet_outlives_a_reload(run: Asked) -> None:
    run.ask("add", camera="c", values={"frames": 3})
    assert run.reload()["kept"] == ["c"]
    assert run.members.wanted["c"] == {"frames": 3}
    assert run.ask("cameras")["by_command"] == ["c"]


def test_one_of_the_same_name_in_the_file_takes_its_place(run: Asked) -> None:
    run.ask("add", camera="c", values={"frames": 3})
    cameras = {**run.plan.camera_settings, "c": {"frames": 9}}
    assert run.reload(camera_settings=cameras)["kept"] == []
    assert run.members.wanted["c"] == {"frames": 9}
    assert run.ask("cameras")["by_command"] == []


def test_a_further_camera_has_the_defaults_of_the_file_that_was_taken_over_last(run: Asked) -> None:
    assert run.ask("cameras")["defaults"] == {"frames": 5}
    run.reload(camera_defaults={"frames": 7})
    assert run.ask("cameras")["defaults"] == {"frames": 7}


@pytest.mark.parametrize("again", ["reload", "add"])
def test_nothing_is_said_against_a_camera_that_is_wanted_again(run: Asked, again: str) -> None:
    run.members.problems["c"] = "no memory"
    if again == "reload":
        run.reload(camera_settings={**run.plan.camera_settings, "c": {}})
    else:
        run.ask("add", camera="c", values={})
    assert run.ask("cameras")["problems"] == {}


def test_settings_that_are_refused_are_named_without_their_values(run: Asked) -> None:
    answer = run.requests.answer({"op": "add", "camera": "c", "values": {"frames": "secr3t"}})
    assert answer["error"].startswith("camera c: frames: ")
    assert answer["error"].endswith("; expected the settings of `count_source`")
    assert "secr3t" not in answer["error"]


def test_the_outbox_expects_a_camera_that_comes_again_and_no_longer_when_it_does_not(run: Asked) -> None:
    run.reload(camera_settings={"a": run.plan.camera_settings["a"], "b": {"frames": 9}})
    run.members.turn(stopping=False)
    assert list(run.members.plan.camera_settings) == ["a"]
    assert run.members.plan.expects_more
    run.ask("remove", camera="b")
    assert run.members.differs
    for _ in range(3):
        run.members.turn(stopping=False)
    assert list(run.members.plan.camera_settings) == ["a"]
    assert not run.members.plan.expects_more
    assert not run.members.differs


def test_a_camera_that_is_not_wanted_any_more_when_it_would_come_does_not(run: Asked) -> None:
    run.ask("add", camera="c", values={})
    run.members.turn(stopping=False)
    assert list(run.members.joining) == ["c"]
    run.ask("remove", camera="c")
    for _ in range(3):
        run.members.turn(stopping=False)
    assert list(run.members.plan.camera_settings) == ["a", "b"]
    assert run.members.leaving == []
    assert not run.members.differs
