"""What a run answers, and what it wants afterwards: its processes are never started here."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import structlog
from camgraph_test_stages.waiting import until

from camgraph.pipeline.graph import load_plan
from camgraph.pipeline.monitoring.reports import Report
from camgraph.pipeline.monitoring.run_status import RunStatus
from camgraph.pipeline.plan import RunPlan, run_to_wire
from camgraph.pipeline.supervision.control import Answer, Later
from camgraph.pipeline.supervision.fleet import Fleet
from camgraph.pipeline.supervision.membership import Membership
from camgraph.pipeline.supervision.process import Process
from camgraph.pipeline.supervision.requests import Requests
from camgraph.pipeline.system.redaction import redact_urls
from camgraph.pipeline.system.run_folder import RunFolder
from camgraph.pipeline.wanted import GivenVariables, LoadedGraph, WantedGraph

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


LIMIT_S = 60.0


class Still:
    """A run in which nothing happens."""

    def status(self) -> RunStatus:
        return RunStatus()

    def stop(self) -> None: ...

    def reported(self, process: Process, report: Report) -> None: ...

    def died(self, process: Process, status: int, *, opened: bool) -> None: ...


class SlowLoader:
    """Loads a graph of the name N.yaml with the cameras that are named in N, once N is let go."""

    def __init__(self, plan: RunPlan) -> None:
        self._plan = plan
        self._gates: dict[str, threading.Event] = {}
        self.at_work: list[str] = []
        self.accepted: list[str] = []
        self.further: dict[str, list[str]] = {}

    def let_go(self, *names: str) -> None:
        for name in names:
            self._gate(name).set()

    def _gate(self, name: str) -> threading.Event:
        return self._gates.setdefault(name, threading.Event())

    def plan(self, wanted: WantedGraph) -> LoadedGraph:
        name = Path(wanted.file).stem
        self.at_work.append(name)
        assert self._gate(name).wait(LIMIT_S)
        self.further[name] = list(wanted.further)
        plan = replace(self._plan, camera_settings={camera: {"frames": 1} for camera in name})
        if name == "other":
            plan = replace(plan, ordered_sinks=("out",))
        return LoadedGraph(plan, accept=lambda: self.accepted.append(name))

    def camera(
        self, name: str, values: Mapping[str, Any], run: RunPlan, given: GivenVariables
    ) -> tuple[dict[str, Any], list[str]]:
        self.at_work.append(name)
        assert self._gate(name).wait(LIMIT_S)
        if name == "bug":
            raise ZeroDivisionError
        return {"camera": name, "values": {**run.camera_defaults, **values}}, []


class Asked:
    """A run of the graph's `plan` that can be asked; nothing of it takes a step."""

    def __init__(self, plan: RunPlan, folder: RunFolder) -> None:
        self.plan = plan
        log = structlog.get_logger()
        self.loader = SlowLoader(plan)
        self.members = Membership(plan, Fleet(plan, folder, Still()), log)
        self.requests = Requests(Still(), self.members, log, self.loader)

    def ask(self, op: str, **values: Any) -> dict[str, Any]:
        answer = self.requests.answer({"op": op, **values})
        assert "error" not in answer, answer
        return answer

    def later(self, op: str, **values: Any) -> Later[Any]:
        later = self.requests.answer({"op": op, **values})
        assert isinstance(later, Later)
        return later

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


def test_pending_added_camera_outlives_reload(run: Asked) -> None:
    run.ask("add", camera="c", values={"frames": 3})
    assert run.reload()["kept"] == ["c"]
    assert run.members.wanted["c"] == {"frames": 3}
    assert run.ask("cameras")["by_command"] == ["c"]


def test_passwords_of_added_cameras_are_hidden_beside_others(run: Asked) -> None:
    """By this process, and by those that start later: they get all secrets with their plan."""
    for name in ("c", "d"):
        run.ask("add", camera=name, values={"frames": 3}, secrets=[f"password-of-{name}"])
    assert {"password-of-c", "password-of-d"} <= set(run.members.plan.secrets)
    assert redact_urls("tried password-of-c, then password-of-d") == "tried ***, then ***"


def test_one_of_the_same_name_in_the_file_takes_its_place(run: Asked) -> None:
    run.ask("add", camera="c", values={"frames": 3})
    cameras = {**run.plan.camera_settings, "c": {"frames": 9}}
    assert run.reload(camera_settings=cameras)["kept"] == []
    assert run.members.wanted["c"] == {"frames": 9}
    assert run.ask("cameras")["by_command"] == []


def test_added_camera_gets_latest_defaults(run: Asked) -> None:
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


def test_refused_settings_are_named_without_values(run: Asked) -> None:
    answer = run.requests.answer({"op": "add", "camera": "c", "values": {"frames": "secr3t"}})
    assert answer["error"].startswith("camera c: frames: ")
    assert answer["error"].endswith("; expected the settings of `count_source`")
    assert "secr3t" not in answer["error"]


def test_outbox_expects_returning_camera_until_removed(run: Asked) -> None:
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


def test_removed_joining_camera_does_not_join(run: Asked) -> None:
    run.ask("add", camera="c", values={})
    run.members.turn(stopping=False)
    assert list(run.members.joining) == ["c"]
    run.ask("remove", camera="c")
    for _ in range(3):
        run.members.turn(stopping=False)
    assert list(run.members.plan.camera_settings) == ["a", "b"]
    assert run.members.leaving == []
    assert not run.members.differs


# ---- what takes a while


def polled(*laters: Later[Any]) -> list[Answer]:
    """Their answers, asked for in the order that is least favourable: the last one first."""
    answers: dict[int, Answer] = {}

    def are_there() -> bool:
        for number in reversed(range(len(laters))):
            answer = None if number in answers else laters[number].poll()
            if answer is not None:
                answers[number] = answer
        return len(answers) == len(laters)

    until(are_there, LIMIT_S)
    return [answers[number] for number in range(len(laters))]


def wanted(run: Asked) -> str:
    return "".join(sorted(run.members.wanted))


def test_latest_of_two_reloads_counts(run: Asked) -> None:
    first, second = run.later("reload", file="abc.yaml", text=""), run.later("reload", file="abd.yaml", text="")
    run.loader.let_go("abd")
    assert second.poll() is None
    run.loader.let_go("abc")
    assert [answer["added"] for answer in polled(first, second)] == [["c"], ["d"]]
    assert wanted(run) == "abd"
    assert run.loader.at_work == run.loader.accepted == ["abc", "abd"]


def test_reloads_apply_in_order(run: Asked) -> None:
    first = run.later("reload", file="abc.yaml", text="")
    second = run.later("reload", plan=run_to_wire(run.plan))
    run.loader.let_go("abc")
    polled(first, second)
    assert wanted(run) == "ab"


def test_a_reload_behind_a_further_camera_knows_it(run: Asked) -> None:
    first, second = run.later("add", camera="c", given={}), run.later("reload", file="ab.yaml", text="")
    run.loader.let_go("c", "ab")
    polled(first, second)
    assert run.loader.further["ab"] == ["c"]
    assert wanted(run) == "abc"


def test_a_further_camera_behind_a_reload_has_its_defaults(run: Asked) -> None:
    first = run.later("reload", file="ab.yaml", text="")
    second = run.later("add", camera="c", given={})
    run.loader._plan = replace(run.plan, camera_defaults={"frames": 7})
    run.loader.let_go("ab", "c")
    polled(first, second)
    assert run.members.wanted["c"] == {"frames": 7}


def test_a_plan_that_the_run_refuses_is_not_accepted(run: Asked) -> None:
    run.loader.let_go("other")
    [answer] = polled(run.later("reload", file="other.yaml", text=""))
    assert "stop it and start it again" in answer["error"]
    assert run.loader.accepted == []


def test_a_hangup_waits_for_its_turn(run: Asked) -> None:
    first = run.later("add", camera="c", given={})
    assert run.requests.reload()
    assert not run.requests.reload(), "one is under way"
    run.requests.turn()
    name = Path(run.plan.file).stem
    assert run.loader.at_work == ["c"]
    run.loader.let_go("c", name)
    polled(first)
    until_reloaded(run)
    assert run.loader.accepted == [name]


def test_a_bug_in_loading_ends_neither_the_run_nor_the_line(run: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    with structlog.testing.capture_logs() as lines:
        monkeypatch.setattr(run.loader, "plan", lambda _: 1 / 0)
        run.requests.reload()
        until_reloaded(run)
    assert [line["event"] for line in lines] == ["reload_failed"]
    later = run.later("add", camera="bug", given={})
    run.loader.let_go("bug", "c")
    with pytest.raises(ZeroDivisionError):
        polled(later)
    polled(run.later("add", camera="c", given={}))
    assert wanted(run) == "abc"


def until_reloaded(run: Asked) -> None:
    """Take turns until the reload by a signal is over."""

    def is_over() -> bool:
        run.requests.turn()
        return run.requests._signalled is None

    until(is_over, LIMIT_S)
