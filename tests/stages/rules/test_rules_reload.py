"""Rules that change while a graph runs: unchanged rules go on as if nothing had happened."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from camgraph_test_stages.changes import LIMIT_S, Talk, run_with
from camgraph_test_stages.waiting import json_lines, until
from click.testing import CliRunner
from tests.stages.rules.test_rules import ZONES, data_of, tracks

import camgraph
from camgraph.pipeline.errors import UserError
from camgraph.pipeline.graph import load_plan
from camgraph.pipeline.monitoring.controls import SWITCHES_FILE
from camgraph.pipeline.outbox.outbox_folder import outbox_folder
from camgraph.pipeline.plan import run_to_wire
from camgraph.pipeline.testing import feed, opened, run_graph
from camgraph.stages.rules.rules import Rules, RulesSettings
from camgraph.tools.commands.counter_command import counter_command
from camgraph.tools.commands.switch_command import switch_command

GRAPH = """
version: 1
name: reload{pid}
processes: separate
cameras:
  a: {{frames: 1000000, pace_ms: 5, bytes: 64, fps: 200}}
stages:
  src: {{use: count_source}}
  people: {{use: stands, from: src, with: {{x: {x}, stubborn: {stubborn}}}}}
  actions: {{use: rules, from: people, with: {{file: rules.yaml}}}}
  log: {{use: sink_jsonl, from: events, with: {{path: events.jsonl}}}}
"""
RULES = """
zones: {{door: [[0.1, 0], [0.5, 0], [0.5, 1], [0.1, 1]], {more}}}
rules:
  - {{id: inside, when: in door, for: 0.2s}}
  - {{id: long, when: score > 0, for: {long}}}
  - {{id: waits, when: age > 3s and in door, once: true}}
  - {rule}
"""


def write(folder: Path, *, rules: dict[str, str], x: int = 150, stubborn: str = "false") -> Path:
    (folder / "rules.yaml").write_text(RULES.format(**rules))
    path = folder / "graph.yaml"
    path.write_text(GRAPH.format(pid=os.getpid(), x=x, stubborn=stubborn))
    return path


BEFORE = {"more": "hall: [[0, 0], [1, 0], [1, 1], [0, 1]]", "long": "2s", "rule": "{id: passing, when: in hall}"}
AFTER = {"more": "shop: [[0, 0], [1, 0], [1, 1], [0, 1]]", "long": "2s", "rule": "{id: new, when: in shop}"}


def reload(run: Talk, path: Path) -> dict[str, Any]:
    answer = run.ask("reload", plan=run_to_wire(load_plan(path)))
    run.settled()
    return answer


def events(folder: Path) -> list[dict[str, Any]]:
    return [event["data"] for event in json_lines(folder / "events.jsonl")]


def started(run: Talk, *actions: str) -> None:
    run.until_status(lambda known: set(actions) <= {event["action"] for event in known["events"]})


def test_incidents_go_on_over_a_reload(tmp_path: Path) -> None:
    path = write(tmp_path, rules=BEFORE)

    def talk(run: Talk) -> None:
        started(run, "inside", "passing")
        before = run.pids()
        answer = reload(run, write(tmp_path, rules=AFTER))
        assert (answer["going_on"], answer["restarted"]) == (["actions.0"], [])
        started(run, "new", "long", "waits")
        assert run.pids() == before
        assert reload(run, path)["going_on"] == []

    run_with(path, talk)
    known = {(event["action"], event["phase"]): event for event in events(tmp_path)}
    assert len(known) == len(events(tmp_path)) == 9
    assert known["passing", "end"]["reason"] == "reload"
    assert known["inside", "end"]["reason"] == known["new", "end"]["reason"] == "stopped"
    first = "1970-01-01T00:00:00.000Z"
    assert known["inside", "start"]["start_time"] == known["long", "start"]["start_time"] == first
    assert known["waits", "single"]["start_time"] == "1970-01-01T00:00:03.005Z"
    assert known["new", "start"]["start_time"] > first


def test_a_stage_that_takes_no_settings_begins_anew(tmp_path: Path) -> None:
    path = write(tmp_path, rules=BEFORE)

    def talk(run: Talk) -> None:
        started(run, "inside")
        before = run.pids()
        answer = reload(run, write(tmp_path, rules=BEFORE, x=300))
        assert (answer["going_on"], answer["restarted"]) == (["people.0"], [])
        run.until_status(lambda known: any(event["phase"] == "end" for event in known["events"]))
        assert run.pids() == before
        answer = reload(run, write(tmp_path, rules=BEFORE, x=160, stubborn="true"))
        assert answer["going_on"] == ["people.0"]
        started_before = len(events(tmp_path))
        run.moves("a")
        changed = {name for name, pid in run.pids().items() if pid != before[name]}
        assert (changed, started_before > 0) == ({"people.0"}, True)
        run.until_status(lambda known: sum(event["action"] == "inside" for event in known["events"]) >= 3)

    run_with(path, talk)


SWITCHED = {
    **BEFORE,
    "more": "hall: [[0, 0], [1, 0], [1, 1]]}\nswitches: {armed: true, spare: 'off'",
    "rule": "{id: watched, when: in door, while: armed}",
}


def test_a_switch_ends_and_begins_and_outlives_a_death(tmp_path: Path) -> None:
    def talk(run: Talk) -> None:
        def events_of(phase: str) -> int:
            events = run.ask("status")["events"]
            return sum((event["action"], event["phase"]) == ("watched", phase) for event in events)

        started(run, "watched", "inside")
        assert run.ask("status")["switches"] == {"armed": True, "spare": False}
        done = CliRunner().invoke(switch_command, ["armed", "off", "--name", run.name])
        assert (done.exit_code, done.output.splitlines()[-1]) == (0, "armed is off")
        until(lambda: events_of("end") == 1, LIMIT_S, lambda: run.ask("status"))
        run.kill("actions.0")
        run.until_status(lambda known: known["processes"]["actions.0"]["restarts"] == 1)
        run.moves("a", by=100)
        assert run.ask("status")["switches"] == {"armed": False, "spare": False}
        assert events_of("start") == 1
        assert run.ask("switch", switch="armed") == {"switches": {"armed": False}}
        run.ask("switch", switch="armed", on=True)
        until(lambda: events_of("start") == 2, LIMIT_S, lambda: run.ask("status"))
        with pytest.raises(UserError, match=r"the run has no switch 'amred'; did you mean `armed`\?"):
            run.ask("switch", switch="amred", on=True)
        done = CliRunner().invoke(switch_command, ["--name", run.name])
        assert (done.exit_code, done.output) == (0, "armed is on\nspare is off\n")

    talking = Talk(talk)
    outcome, _ = run_graph(load_plan(write(tmp_path, rules=SWITCHED)), talking)
    assert talking.error is None, talking.error
    assert [problem for problem in outcome.problems if "actions" not in problem] == []  # it lost its state
    ends = [one for one in events(tmp_path) if (one.get("action"), one.get("phase")) == ("watched", "end")]
    assert [one["reason"] for one in ends] == ["switch", "stopped"]


def test_the_next_run_is_armed_as_this_one_was(tmp_path: Path) -> None:
    """What is kept is on the disk while the run goes on, as before a power cut."""
    switched = {**SWITCHED, "more": SWITCHED["more"].replace("armed: true", "armed: {default: true, keep: true}")}
    path = write(tmp_path, rules=switched)
    path.write_text(path.read_text().replace("processes: separate", "processes: compact"))
    plan = load_plan(path)
    folder = outbox_folder(plan)
    assert folder
    states: list[dict[str, bool]] = []

    def talk(run: Talk) -> None:
        states.append(run.ask("switch")["switches"])
        run.ask("switch", switch="armed", on=False)
        run.ask("switch", switch="spare", on=True)
        states.append(json.loads((folder / SWITCHES_FILE).read_text()))
        run.moves("a", by=50)

    for _ in range(2):
        run_with(path, talk)
    assert states == [
        {"armed": True, "spare": False},
        {"armed": False},
        {"armed": False, "spare": False},
        {"armed": False},
    ]
    actions = {data.get("action") for data in events(tmp_path)[-4:]}
    assert "watched" not in actions


@pytest.mark.parametrize("processes", ["one", "compact"])
def test_a_program_turns_a_switch(tmp_path: Path, processes: str) -> None:
    path = write(tmp_path, rules=SWITCHED)
    path.write_text(path.read_text().replace("processes: separate", f"processes: {processes}"))
    found = []
    with camgraph.run(path) as run:
        for event in run:
            if event.action == "watched":
                found.append((event.phase, event.json()["data"].get("reason")))
                if event.phase == "start":
                    run.switch("armed", on=False)
                    with pytest.raises(UserError, match="no switch 'nothing'; there are: armed, spare"):
                        run.switch("nothing", on=False)
                else:
                    assert run.status().switches == {"armed": False, "spare": False}
                    break
    assert found == [("start", None), ("end", "switch")]


COUNTED = {
    **BEFORE,
    "more": "hall: [[0, 0], [1, 0], [1, 1]]}\nlines: {gate: {from: [0.5, 1], to: [0.5, 0]}}\n"
    "counters: {visitors: {line: gate, report: reset}, in_door: {zone: door}",
    "rule": "{id: full, scope: scene, when: visitors.rightward > 3}",
}


def test_a_counter_is_shown_reset_and_survives_a_death(tmp_path: Path) -> None:
    path = write(tmp_path, rules=COUNTED)
    path.write_text(path.read_text().replace("stubborn:", "to_and_fro: 10, stubborn:"))

    def command(run: Talk, *words: str) -> str:
        done = CliRunner().invoke(counter_command, [*words, "--name", run.name])
        assert done.exit_code == 0, done.output
        return done.output

    def talk(run: Talk) -> None:
        def rightward() -> int:
            counters = run.ask("status")["counters"]
            return int(counters["a"]["visitors"]["rightward"]) if counters else 0

        started(run, "full")
        run.kill("actions.0")
        run.until_status(lambda known: known["processes"]["actions.0"]["restarts"] == 1)
        until(lambda: rightward() > 3, LIMIT_S, lambda: run.ask("status"))
        assert re.search(r"a: visitors [01] inside \(\d+ rightward, \d+ leftward\)\n", command(run, "visitors"))
        assert "in_door" in command(run)
        with pytest.raises(UserError, match=r"the run has no counter 'vistors'; did you mean `visitors`\?"):
            run.ask("counter", reset="vistors")
        with pytest.raises(UserError, match="the run has no camera 'b'"):
            run.ask("counter", reset="visitors", camera="b")
        said = command(run, "visitors", "reset", "--camera", "a")
        assert said.endswith("visitors begins at zero with the next frame of the camera a\n")
        until(lambda: reports(tmp_path), LIMIT_S, lambda: run.ask("status"))

    def reports(folder: Path) -> list[dict[str, Any]]:
        return [data for data in events(folder) if "counter" in data]

    talking = Talk(talk)
    run_graph(load_plan(path), talking)
    assert talking.error is None, talking.error
    reset, end = reports(tmp_path)
    assert (reset["reason"], end["reason"]) == ("reset", "end")
    assert reset["since_reset"]["rightward"] > 3
    assert reset["end_time"] == end["start_time"]


@pytest.mark.parametrize("processes", ["one", "compact"])
def test_a_program_resets_a_counter(tmp_path: Path, processes: str) -> None:
    path = write(tmp_path, rules=COUNTED)
    text = path.read_text().replace("stubborn:", "to_and_fro: 10, stubborn:")
    path.write_text(text.replace("processes: separate", f"processes: {processes}"))
    with camgraph.run(path) as run:
        for event in run:
            data = event.json()["data"]
            if event.action == "full" and event.phase == "start":
                until(run.counters, LIMIT_S)
                assert run.counters()["a"]["visitors"]["rightward"] > 0
                run.reset_counter("visitors")
                with pytest.raises(UserError, match="no counter 'nothing'; there are: in_door, visitors"):
                    run.reset_counter("nothing")
            elif event.kind == "counter":
                assert (event.action, event.camera) == ("visitors", "a")
                assert (data["reason"], data["since_reset"]["rightward"] > 3) == ("reset", True)
                break
        else:
            pytest.fail("the counter was not reset")


def settings(*rules: dict[str, Any], **more: Any) -> RulesSettings:
    return RulesSettings.model_validate({"zones": ZONES, "rules": list(rules), **more})


IN_DOOR = {"id": "in_door", "when": "in door", "for": "1s"}
STANDS = {"id": "stands", "when": "in door and age > 0.5s", "hold": "0.2s", "cooldown": "2s"}


def test_only_what_has_changed_begins_anew(tmp_path: Path) -> None:
    items = [tracks(seq, [(7, 150.0, 200.0)]) for seq in range(30)]
    first = settings(IN_DOOR, STANDS).model_dump(by_alias=True, exclude_unset=True)
    with opened(Rules, first, folder=tmp_path) as stage:
        before = data_of(feed(stage, items[:8]))
        stage.change_settings(settings(STANDS, {**IN_DOOR, "for": "1.1s"}))
        after = data_of(feed(stage, items[8:], end=True))
    assert [(data.action, data.phase) for data in before] == [("stands", "start")]
    assert [(data.action, data.phase, data.start_time[-6:-1]) for data in after] == [
        ("in_door", "start", "0.800"),
        ("stands", "end", "0.600"),
        ("in_door", "end", "0.800"),
    ]


def test_a_changed_rule_ends_its_incidents(tmp_path: Path) -> None:
    items = [tracks(seq, [(7, 150.0, 200.0)]) for seq in range(30)]
    first = settings(STANDS).model_dump(by_alias=True, exclude_unset=True)
    with opened(Rules, first, folder=tmp_path) as stage:
        feed(stage, items[:10])
        stage.change_settings(settings({**STANDS, "hold": "9s"}))
        end, start, *_ = data_of(feed(stage, items[10:], end=True))
    assert (end.phase, end.reason, end.end_time) == ("end", "reload", "1970-01-01T00:00:00.900Z")
    assert (start.phase, start.start_time) == ("start", "1970-01-01T00:00:01.000Z")
    assert end.rule.hash != start.rule.hash


def test_a_line_that_has_moved_was_not_crossed(tmp_path: Path) -> None:
    """The person stays; the line comes to lie on their other side."""
    rule = {"id": "c", "when": "crosses(gate)", "once": True}
    other = {"id": "o", "when": "score > 0"}
    here, there = ({"gate": {"from": [x, 0.0], "to": [x, 1.0]}} for x in (0.2, 0.6))
    first = settings(rule, other, lines=here).model_dump(by_alias=True, exclude_unset=True)
    with opened(Rules, first, folder=tmp_path) as stage:
        feed(stage, [tracks(seq, [(7, 150.0, 200.0)]) for seq in range(5)])
        stage.change_settings(settings(rule, other, lines=there))
        after = data_of(feed(stage, [tracks(seq, [(7, 150.0, 200.0)]) for seq in range(5, 9)]))
        crossed = data_of(feed(stage, [tracks(seq, [(7, 150.0 + 20 * (seq - 8), 200.0)]) for seq in range(9, 19)]))
    assert after == []
    assert [data.action for data in crossed] == ["c"]


def test_a_zone_that_has_moved_was_not_entered(tmp_path: Path) -> None:
    rule = {"id": "e", "when": "enters(door)", "once": True}
    away = {"door": [[0.6, 0], [0.9, 0], [0.9, 1], [0.6, 1]]}
    first = {"rules": [rule], "zones": away}
    with opened(Rules, first, folder=tmp_path) as stage:
        feed(stage, [tracks(seq, [(7, 150.0, 200.0)]) for seq in range(5)])
        stage.change_settings(settings(rule))
        assert feed(stage, [tracks(seq, [(7, 150.0, 200.0)]) for seq in range(5, 9)]) == []
        came = data_of(feed(stage, [tracks(9, [(7, 10.0, 200.0)]), tracks(10, [(7, 150.0, 200.0)])]))
    assert [data.action for data in came] == ["e"]


def test_wrong_rules_leave_the_stage_as_it_is(tmp_path: Path) -> None:
    first = settings(STANDS).model_dump(by_alias=True, exclude_unset=True)
    with opened(Rules, first, folder=tmp_path) as stage:
        feed(stage, [tracks(seq, [(7, 150.0, 200.0)]) for seq in range(10)])
        for wrong in ({**STANDS, "when": "in dor"}, {**STANDS, "when": "in door and age > 0.5"}):
            with pytest.raises(UserError, match=r"rules\.0\.when"):
                stage.change_settings(settings(wrong))
        [end] = data_of(feed(stage, [tracks(seq, []) for seq in range(10, 30)]))
    assert (end.phase, end.reason) == ("end", "unseen")


def test_memory_of_unchanged_conditions_goes_on(tmp_path: Path) -> None:
    rules = [{"id": "dwells", "when": "in door for 1s"}, {"id": "back", "when": "dwell(door) > 1.2s"}]
    first = settings(*rules).model_dump(by_alias=True, exclude_unset=True)
    with opened(Rules, first, folder=tmp_path) as stage:
        feed(stage, [tracks(seq, [(7, 150.0, 200.0)]) for seq in range(6)])
        stage.change_settings(settings(rules[0], {**rules[1], "for": "0.3s"}))
        after = data_of(feed(stage, [tracks(seq, [(7, 150.0, 200.0)]) for seq in range(6, 30)]))
    assert [(data.action, data.frame.seq) for data in after] == [("dwells", 10), ("back", 22)]


def test_a_rule_is_judged_while_all_its_switches_are_on(tmp_path: Path) -> None:
    rule = {"id": "a", "when": "in door", "while": ["one", "two"], "hold": "0s"}
    first = settings(rule, switches={"one": True, "two": "off"}).model_dump(by_alias=True, exclude_unset=True)
    found = []
    with opened(Rules, first, folder=tmp_path) as stage:
        for seq, changed in enumerate([{}, {"two": True}, {"one": False, "two": True}, {"one": True}, {"two": True}]):
            stage.context.switches = changed
            found += [
                (seq, data.phase, data.reason) for data in data_of(feed(stage, [tracks(seq, [(7, 150.0, 200.0)])]))
            ]
    assert found == [(1, "start", None), (2, "end", "switch"), (4, "start", None)]
