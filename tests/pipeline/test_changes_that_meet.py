"""Changes of a running graph that meet others, deaths, or settings that do not open: nobody else is touched."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from camgraph_test_stages.changes import ENDLESS, Talk, lives, run_with, whole, write

from camgraph.pipeline.graph import load_plan
from camgraph.pipeline.plan import run_to_wire
from camgraph.pipeline.supervision.deaths import Restarts
from camgraph.pipeline.supervision.supervisor import Supervisor
from camgraph.pipeline.testing import hit, run_graph

CHAIN = """
version: 1
name: {name}
cameras:
{cameras}
stages:
  src: {{use: count_source, cameras_per_process: {each}}}
  calm: {{use: crash, from: src, workers: {workers}, with: {settings}}}
  numbers: {{use: collect, from: calm, with: {{path: numbers}}}}
  beside: {{use: collect, from: src, with: {{path: beside}}}}
"""
NEVER = {"at_seq": 10**9}
FILES = ("numbers", "timed")


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def chain(folder: Path, cameras: str, *, each: int = 1, workers: int = 1, live: bool = False, **crash: Any) -> Path:
    path = folder / "graph.yaml"
    own = {**ENDLESS, "live": str(live).lower()}
    lines = "\n".join(f"  {name}: {{{', '.join(f'{k}: {v}' for k, v in own.items())}}}" for name in cameras)
    settings = "{" + ", ".join(f"{key}: {value}" for key, value in {**NEVER, **crash}.items()) + "}"
    text = CHAIN.format(name=f"x{os.getpid()}", cameras=lines, each=each, workers=workers, settings=settings)
    path.write_text(text)
    return path


def reload(run: Talk, path: Path) -> dict[str, Any]:
    return run.ask("reload", plan=run_to_wire(load_plan(path)))


def all_whole(folder: Path, every: int = 1) -> bool:
    return all(whole(life, every) for own in lives(folder).values() for life in own)


# ---- stages with other settings


def test_camera_is_added_though_settings_are_refused(tmp_path: Path) -> None:
    path = chain(tmp_path, "ab")

    def talk(run: Talk) -> None:
        run.moves("a", "b")
        answer = reload(run, chain(tmp_path, "abc", how="open"))
        assert (answer["added"], answer["restarted"]) == (["c"], ["calm.0"])
        run.moves("a", "b", "c", by=50)
        refused = run.ask("cameras")["refused"]
        assert list(refused) == ["calm.0"]
        assert "RuntimeError while it was opened" in refused["calm.0"]
        assert run.ask("status")["processes"]["calm.0"]["restarts"] == 0
        assert reload(run, chain(tmp_path, "abc"))["restarted"] == []
        assert run.ask("cameras")["refused"] == {}

    run_with(path, talk)
    assert sorted(lives(tmp_path)) == ["a", "b", "c"]
    assert all_whole(tmp_path)


def test_settings_refused_while_opening_others(tmp_path: Path) -> None:
    path = chain(tmp_path, "a")
    (tmp_path / "shut").touch()

    def talk(run: Talk) -> None:
        run.moves("a")
        for settings in ({"open_s": 2.0}, {"open_s": 0.1, "shut": "shut"}):
            assert reload(run, chain(tmp_path, "a", **settings))["restarted"] == ["calm.0"]
            run.until(lambda _: run.ask("status")["processes"]["calm.0"]["state"] == "starting")
        run.moves("a", by=50)
        assert "the file shut is there" in run.ask("cameras")["refused"]["calm.0"]
        assert run.ask("status")["processes"]["calm.0"]["restarts"] == 0

    run_with(path, talk)
    assert [whole(life, 1) for life in lives(tmp_path)["a"]] == [True]


def test_settings_during_trial_of_refused_ones(tmp_path: Path) -> None:
    path = chain(tmp_path, "a")
    (tmp_path / "shut").touch()

    def talk(run: Talk) -> None:
        run.moves("a")
        reload(run, chain(tmp_path, "a", open_s=2.0, shut="shut"))
        run.until(lambda _: run.ask("status")["processes"]["calm.0"]["state"] == "starting")
        good = chain(tmp_path, "a", open_s=0.1)
        reload(run, good)
        run.moves("a", by=50)
        assert run.ask("cameras")["refused"] == {}
        assert reload(run, good)["restarted"] == []

    run_with(path, talk)
    assert [whole(life, 1) for life in lives(tmp_path)["a"]] == [True]


def test_settings_reverted_before_their_trial(tmp_path: Path) -> None:
    path = chain(tmp_path, "a")

    def talk(run: Talk) -> None:
        run.moves("a")
        pid = run.pids()["calm.0"]
        hit(pid, signal.SIGSTOP)
        reload(run, chain(tmp_path, "a", open_s=0.1))
        reload(run, chain(tmp_path, "a"))
        hit(pid, signal.SIGCONT)
        run.until(lambda _: run.pids()["calm.0"] not in (0, pid))
        run.moves("a", by=50)
        assert run.ask("cameras")["refused"] == {}
        assert run.ask("status")["processes"]["calm.0"]["restarts"] == 0

    run_with(path, talk)
    assert [whole(life, 1) for life in lives(tmp_path)["a"]] == [True]


# ---- cameras


@pytest.mark.parametrize("how", ["remove", "reload"])
def test_camera_readded_while_leaving(tmp_path: Path, how: str) -> None:
    path = write(tmp_path, {"a": ENDLESS, "b": ENDLESS})
    other = {**ENDLESS, "bytes": 100}

    def talk(run: Talk) -> None:
        run.moves("a", "b")
        pid = run.pids()["src.b"]
        hit(pid, signal.SIGSTOP)  # so that it has not left before it is wanted again
        if how == "remove":
            run.ask("remove", camera="b")
        else:
            reload(run, write(tmp_path, {"a": ENDLESS, "b": other}))
        run.until(lambda known: known["leaving"] == ["b"])
        run.moves_meanwhile("a", by=200)
        answer = reload(run, write(tmp_path, {"a": ENDLESS, "b": ENDLESS}))
        assert (answer["added"], answer["removed"], answer["changed"]) == ([], [], ["b"])
        hit(pid, signal.SIGCONT)
        run.moves("a", "b", by=50)

    run_with(path, talk)
    found = lives(tmp_path)
    assert [len(found[camera]) for camera in "ab"] == [1, 2]
    assert all_whole(tmp_path, 3)


def test_settings_change_while_process_waits_for_restart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Restarts, "pause_s", 60.0)
    path = write(tmp_path, {"a": ENDLESS})

    def talk(run: Talk) -> None:
        run.moves("a")
        run.kill("src.a")
        run.until(lambda _: run.ask("status")["processes"]["src.a"]["state"] == "waiting")
        reload(run, write(tmp_path, {"a": {**ENDLESS, "bytes": 100}}))
        run.moves("a", by=400)
        assert run.ask("cameras")["cameras"]["a"]["error"] == ""

    run_with(path, talk)
    assert len(lives(tmp_path)["a"]) == 2
    assert all_whole(tmp_path, 3)
    seqs = {name: {int(line.split()[2]) for line in (tmp_path / name).read_text().splitlines()} for name in FILES}
    assert seqs["timed"] == {seq for seq in seqs["numbers"] if seq % 6 == 0}


@pytest.mark.parametrize("processes", ["separate", "compact"])
def test_the_last_camera_that_has_not_ended_gets_other_settings(tmp_path: Path, processes: str) -> None:
    over = {**ENDLESS, "frames": 31}
    path = write(tmp_path, {"a": over, "b": ENDLESS}, processes=processes)

    def talk(run: Talk) -> None:
        run.moves("b")
        run.until(lambda known: known["cameras"]["a"]["state"] == "done")
        reload(run, write(tmp_path, {"a": over, "b": {**ENDLESS, "bytes": 100}}, processes=processes))
        run.moves("b", by=400)
        assert run.ask("cameras")["problems"] == {}

    run_with(path, talk)
    found = lives(tmp_path)
    assert [len(found[camera]) for camera in "ab"] == [1, 2]
    assert all_whole(tmp_path, 3)
    seqs = {name: {int(line.split()[2]) for line in (tmp_path / name).read_text().splitlines()} for name in FILES}
    assert seqs["timed"] == {seq for seq in seqs["numbers"] if seq % 6 == 0}


def test_process_ready_before_a_new_worker(tmp_path: Path) -> None:
    path = chain(tmp_path, "a", each=2, workers=2)

    def talk(run: Talk) -> None:
        run.moves("a")
        before = run.pids()
        hit(before["beside.0"], signal.SIGSTOP)  # it does not take the plan, which names calm.1
        run.ask("add", camera="b", values=ENDLESS)
        run.kill("src.0")
        run.until(lambda _: run.pids()["src.0"] not in (0, before["src.0"]))
        run.until(lambda _: run.ask("status")["processes"]["src.0"]["state"] == "running")
        assert "calm.1" not in run.pids()
        hit(before["beside.0"], signal.SIGCONT)
        run.moves("a", "b")

    run_with(path, talk)
    assert all_whole(tmp_path)


def test_camera_begins_once_all_processes_know_it(tmp_path: Path) -> None:
    path = chain(tmp_path, "a", each=2)

    def talk(run: Talk) -> None:
        run.moves("a")
        pid = run.pids()["beside.0"]
        hit(pid, signal.SIGSTOP)
        run.ask("add", camera="b", values=ENDLESS)
        source = next(process for process in run.supervisor.processes if process.plan.name == "src.0")
        run.until(lambda _: source.revision == 1)
        reported_at = source.reported.heartbeat_at
        run.until(
            lambda _: source.reported.heartbeat_at > reported_at + 0.6
        )  # then it has said twice what it has counted
        assert run.ask("cameras")["cameras"]["b"]["frames"] == 0
        run.ask("pause", camera="b")
        hit(pid, signal.SIGCONT)
        run.moves("a", by=200)
        assert run.ask("cameras")["cameras"]["b"]["frames"] == 0
        run.ask("resume", camera="b")
        run.moves("a", "b")

    run_with(path, talk)
    assert all_whole(tmp_path)


# ---- live cameras: what cannot be opened again


def test_live_run_survives_stage_that_does_not_open(tmp_path: Path, logs: list[Any]) -> None:
    path = chain(tmp_path, "ab", live=True, shut="shut")

    def talk(run: Talk) -> None:
        run.moves("a", "b")
        (tmp_path / "shut").touch()
        run.kill("calm.0")
        known = run.until_status(lambda status: status["processes"]["calm.0"]["why"])
        assert known["processes"]["calm.0"]["why"] == "the file shut is there"
        assert known["stages"]["calm"]["blocked_on"] == "the file shut is there"
        beside = len((tmp_path / "beside").read_text().splitlines())
        run.moves("a", "b", by=50)
        assert len((tmp_path / "beside").read_text().splitlines()) > beside
        (tmp_path / "shut").unlink()
        known = run.until_status(lambda status: status["processes"]["calm.0"]["state"] == "running")
        assert known["processes"]["calm.0"]["why"] == ""
        run.moves("a", "b")

    run_with(path, talk)
    logged = [line for line in logs if line["event"] == "process_died" and "why" in line]
    assert logged
    assert {(line["process"], line["why"]) for line in logged} == {("calm.0", "the file shut is there")}


def test_stop_reports_stage_that_does_not_open(tmp_path: Path) -> None:
    path = chain(tmp_path, "a", live=True, shut="shut")
    path.write_text(path.read_text() + "drain_s: 2\n")

    def talk(run: Talk) -> None:
        run.moves("a")
        (tmp_path / "shut").touch()
        run.kill("calm.0")
        run.until_status(lambda status: status["processes"]["calm.0"]["why"])

    outcome, _ = run_graph(load_plan(path), Talk(talk))
    assert outcome.status == 1
    assert "calm.0 did not open again: the file shut is there" in outcome.problems


def test_a_stage_of_files_that_no_longer_opens_ends_the_run(tmp_path: Path) -> None:
    path = chain(tmp_path, "a", shut="shut")

    def harm(supervisor: Supervisor) -> None:
        if supervisor.status().cameras["a"].frames > 20 and not (tmp_path / "shut").exists():
            (tmp_path / "shut").touch()
            hit(next(process.pid for process in supervisor.processes if process.plan.name == "calm.0"))

    outcome, _ = run_graph(load_plan(path), harm)
    assert (outcome.status, outcome.problems) == (2, ["the file shut is there"])
