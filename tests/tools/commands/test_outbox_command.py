"""`camgraph outbox` on runs that go on and on runs that have stopped."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from camgraph_test_stages.outboxes import deliver, make_event, open_outbox
from click.testing import CliRunner, Result

from camgraph.pipeline.dead_letters import DeadLetters
from camgraph.pipeline.graph import load_plan
from camgraph.pipeline.messages import Event
from camgraph.pipeline.monitoring.run_status import BacklogStatus
from camgraph.pipeline.supervision.supervisor import Supervisor
from camgraph.pipeline.system.run_folder import RunFolder
from camgraph.pipeline.testing import run_graph
from camgraph.tools.cli import main


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of all outboxes."""
    monkeypatch.setenv("CAMGRAPH_STATE_DIR", str(tmp_path / "state"))
    return tmp_path / "state"


def outbox_of(state: Path, name: str = "lobby") -> Path:
    """An outbox in which crm has 5 events to get, and log had all; crm gave up another."""
    folder = state / name
    folder.mkdir(parents=True)
    outbox = open_outbox(folder, ["crm", "log"], sync="none")
    outbox.accept([make_event(n, "front" if n % 2 else "yard") for n in range(5)])
    deliver(outbox, "log")
    letter = make_event(9).payload
    assert isinstance(letter, Event)
    DeadLetters(folder, "crm").add(letter, "400: no such \x1b[31mdoor", attempts=3)
    outbox.close()
    return folder


def command(*words: str, answer: str | None = None) -> Result:
    return CliRunner().invoke(main, ["outbox", *words], input=answer)


def as_json(*words: str) -> Any:
    result = command(*words, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.output)


def listed(*words: str) -> list[str]:
    return [row["id"] for row in as_json("list", *words)]


def test_the_status_of_a_run_that_has_stopped(state: Path) -> None:
    outbox_of(state)
    result = command("status", "--name", "lobby")
    assert result.exit_code == 0
    lines = result.output.splitlines()
    assert lines[0] == "lobby:"
    assert lines[1].startswith("  crm: 5 events wait, the oldest for ")
    assert lines[1].endswith(" s, 1 dead letters")
    assert lines[2:] == ["  log: nothing waits"]
    [crm, log] = as_json("status")["lobby"]
    assert (crm["sink"], crm["waiting"], crm["dead_letters"], log["waiting"]) == ("crm", 5, 1, 0)
    assert 0 <= crm["oldest_s"] < 3600


def test_events_are_listed_and_shown(state: Path) -> None:
    outbox_of(state)
    assert listed() == ["e0", "e1", "e2", "e3", "e4"]
    assert listed("--sink", "crm", "--camera", "front") == ["e1", "e3"]
    assert listed("--limit", "2") == ["e0", "e1"]
    assert listed("--since", "2030-01-01") == []
    assert listed("--dead") == ["e9"]
    assert "given up: 400: no such \\x1b[31mdoor" in command("list", "--dead").output
    shown = as_json("show", "e3")
    assert shown["in_file"][0]["waits_for"] == ["crm"]
    assert shown["in_file"][0]["event"] == {"seq": 3, "camera": "front", "text": ""}
    text = command("show", "e9").output
    assert "a dead letter of crm" in text
    assert "after 3 attempts" in text
    assert command("show", "e").exit_code == 2
    assert "6 events begin with e" in command("show", "e").output


def test_letters_and_delivered_events_are_requeued(state: Path) -> None:
    folder = outbox_of(state)
    assert command("requeue", "crm", "--all").output == "1 event waits for crm again\n"
    assert command("requeue", "log", "e2", "e4").output == "2 events wait for log again\n"
    assert listed("--sink", "crm")[-1] == "e9"
    assert listed("--sink", "log") == ["e2", "e4"]
    again = open_outbox(folder, ["crm", "log"], run=2)
    assert [name.split()[::2] for name in deliver(again, "log")] == [["again", "e2"], ["again", "e4"]]
    again.close()


def test_a_drop_asks_first(state: Path) -> None:
    outbox_of(state)
    asked = command("drop", "crm", "e1", answer="n\n")
    assert "Give up 1 events that wait for crm?" in asked.output
    assert len(listed("--sink", "crm")) == 5
    assert command("drop", "crm", "e1", answer="y\n").output.endswith("1 event given up\n")
    assert command("drop", "crm", "--older", "1h", "--yes").output == "0 events given up\n"
    assert command("drop", "crm", "--all", "--yes").output == "4 events given up\n"
    assert command("drop", "crm", "--all", "--dead", "--yes").output == "1 event given up\n"
    assert [row["dead_letters"] for row in as_json("status")["lobby"]] == [0, 0]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["list", "--name", "other"], "nothing waits for a run called other; there are: lobby, yard"),
        (["list"], "which outbox? choose one with --name; there are: lobby, yard"),
        (["requeue", "crm", "--name", "lobby"], "which events? give one of ID, --all or --since"),
        (["drop", "crm", "e1", "--all", "--name", "lobby"], "which events? give one of ID, --all or --older"),
        (["drop", "cmr", "--all", "--name", "lobby"], "the outbox has no sink 'cmr'; did you mean `crm`?"),
        (["requeue", "crm", "zz", "--name", "lobby"], "no event that is kept there begins with zz"),
        (["list", "--since", "yesterday", "--name", "lobby"], "--since yesterday: expected 2h, 3d"),
        (["list", "--name", "../x"], "no run can be called ../x"),
    ],
)
def test_mistakes_name_the_way_out(state: Path, words: list[str], said: str) -> None:
    outbox_of(state)
    outbox_of(state, "yard")
    result = command(*words)
    assert (result.exit_code, said in result.output) == (2, True), result.output


def test_the_outbox_of_the_run_of_this_folder_is_meant(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outbox_of(state)
    outbox_of(state, "yard")
    monkeypatch.chdir(tmp_path)
    with closing(RunFolder("lobby", str(tmp_path))), closing(RunFolder("yard", "/etc/yard")):
        assert command("list").exit_code == 0
        monkeypatch.chdir("/")
        assert "which outbox? choose one with --name" in command("list").output


def test_nothing_to_look_at(state: Path) -> None:
    assert command("status").output == "nothing waits: there is no outbox\n"
    assert command("list").exit_code == 2


GRAPH = """
version: 1
name: m{pid}
cameras: {{a: {{frames: 30}}}}
stages:
  src: {{use: count_source}}
  emit: {{use: emit, from: src}}
  log: {{use: collect_events, from: {{stage: emit, depth: 4}}, with: {{path: taken, away: away}}}}
"""


def test_a_run_that_goes_on(state: Path, tmp_path: Path) -> None:
    """Its sink does not take anything; a person looks, drops half of it, and lets it go on."""
    (tmp_path / "graph.yaml").write_text(GRAPH.format(pid=os.getpid()))
    (tmp_path / "away").touch()
    started: list[subprocess.Popen[str]] = []
    backlogs: list[BacklogStatus] = []

    def look(supervisor: Supervisor) -> None:
        waiting = supervisor.status().outbox.get("log", BacklogStatus())
        if started and started[0].poll() is not None and waiting.waiting == 20:
            (tmp_path / "away").unlink(missing_ok=True)
        if not started and waiting.waiting == 30 and waiting.oldest_s:
            backlogs.append(waiting)
            code = (
                "import json, subprocess, sys; call = [sys.executable, '-m', 'camgraph', 'outbox']\n"
                "rows = json.loads(subprocess.run([*call, 'list', '--limit', '99', '--json'], stdout=-1).stdout)\n"
                "ids = [row['id'] for row in rows][20:]\n"
                "sys.exit(subprocess.run([*call, 'drop', 'log', *ids, '--yes']).returncode or len(ids) - 10)"
            )
            started.append(subprocess.Popen([sys.executable, "-c", code], text=True))

    outcome, status = run_graph(load_plan(tmp_path / "graph.yaml"), look)
    assert (outcome.status, outcome.problems) == (0, [])
    assert started[0].wait(60) == 0
    assert backlogs[0].dead_letters == 0
    assert sorted(int(line.split()[2]) for line in (tmp_path / "taken").read_text().splitlines()) == [*range(20)]
    assert status["outbox_folder"] == str(state / f"m{os.getpid()}")
