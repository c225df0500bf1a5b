"""The life of a process: every transition is in the drawing, and every death leads to a start or to the end."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from camgraph.pipeline.errors import EXIT_ENVIRONMENT, EXIT_GAVE_UP, EXIT_USER, ProblemText, WireError
from camgraph.pipeline.plan import StagePlan
from camgraph.pipeline.supervision.deaths import Consequence, EndCameras, EndRun, GoOn, NotNeeded, OtherSettings
from camgraph.pipeline.supervision.lifecycle import STEADY_S, Lifecycle, RunState, State

NOW = 1000.0
FILES = RunState(running=True, finite=True)
LIVE = RunState(running=True, finite=False)
DRAWING: set[tuple[State, State]] = {
    ("waiting", "starting"),
    ("starting", "running"),
    ("starting", "dead"),
    ("running", "dead"),
    ("dead", "waiting"),
    ("dead", "finished"),
}
KILLED = -9
LONGEST_PAUSE_S = 30.0


def stages(number: int = 1) -> tuple[StagePlan, ...]:
    return (StagePlan("infer", "infer", {"model": number}),)


@pytest.fixture
def life() -> Lifecycle:
    return Lifecycle("infer.0", source=False, stages=stages())


def opened(life: Lifecycle, at: float = NOW) -> Lifecycle:
    """Started ten seconds ago, and open now."""
    return life.start(at - 10).ready("ipc://it", at)


def dead(life: Lifecycle, at: float = NOW, *, exit_status: int = KILLED, run: RunState = LIVE) -> Lifecycle:
    return life.reap(exit_status).judge(run, at, all_ended=False)[0]


def verdict_on(
    life: Lifecycle, *, exit_status: int = KILLED, run: RunState = LIVE, all_ended: bool = False
) -> Consequence:
    return life.reap(exit_status).judge(run, NOW, all_ended=all_ended)[1]


# ---- transitions


class AnyLife(RuleBasedStateMachine):
    """One process in a run that opens, is stopped, and closes, with everything that can happen to it in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.life = Lifecycle("infer.0", source=False, stages=stages())
        self.before = self.life
        self.now = NOW
        self.stopped_at = 0.0
        self.run = RunState(running=False, finite=True)
        self.all_ended = False
        self.deaths = 0

    def to(self, life: Lifecycle) -> None:
        """It goes from one state to the next, by the drawing or not at all."""
        self.before, self.life = self.life, life
        step = (self.before.state, self.life.state)
        assert step[0] == step[1] or step in DRAWING

    @initialize(source=st.booleans(), finite=st.booleans())
    def begin(self, source: bool, finite: bool) -> None:
        self.to(replace(self.life, source=source))
        self.run = replace(self.run, finite=finite)

    @precondition(lambda self: self.life.state == "waiting" and not self.run.closing)
    @rule(shortages=st.sampled_from([0, 0, 0, 1, 2]))
    def is_started(self, shortages: int) -> None:
        """When it is due, or one second later, as often as the machine has no room for it."""
        for _ in range(shortages):
            self.to(self.life.put_off(self.now + 1, "too few descriptors"))
            assert not self.life.is_due(self.now, self.stopped_at)
            self.now += 1
        waited_s = 0 if self.life.is_due(self.now, self.stopped_at) else self.run.longest_pause_s
        self.now += min(waited_s, LONGEST_PAUSE_S)
        assert self.life.is_due(self.now, self.stopped_at), "nobody waits longer than the longest pause"
        self.to(self.life.start(self.now))

    @precondition(lambda self: self.life.is_alive)
    @rule(reports=st.lists(st.sampled_from(["ready", "ready", "work", "opening", "failure"]), max_size=4))
    def reports(self, reports: list[str]) -> None:
        for report in reports:
            if report == "ready" and self.life.state == "running":
                with pytest.raises(WireError):
                    self.life.ready("ipc://it", self.now)
            elif report == "ready":
                self.to(self.life.ready("ipc://it", self.now))
            elif report == "work" and self.life.state == "running":
                self.to(self.life.worked())
                assert self.life.restarts.fruitless == 0
            elif report == "opening":
                self.to(self.life.note_opening("a model is compiled", self.now + 60))
            elif report == "failure":
                self.to(self.life.note_failure(EXIT_USER, "no such model"))

    @precondition(lambda self: self.life.is_alive)
    @rule(exit_status=st.sampled_from([KILLED, -11, 0, 1, 7]), why=st.sampled_from(["", "", "hangs", "nonsense"]))
    def dies(self, exit_status: int, why: str) -> None:
        if why:
            self.to(self.life.kill(why, refused=why == "nonsense"))
        self.to(self.life.reap(exit_status))
        self.deaths += 1
        self.is_judged(self.life)

    def is_judged(self, dead: Lifecycle) -> None:
        """It is started again, given up, or finished: there is nothing else."""
        after, verdict = dead.judge(self.run, self.now, all_ended=self.all_ended)
        self.to(after)
        needed = not (self.run.closing or dead.leaving or (dead.source and self.all_ended))
        assert needed != isinstance(verdict, NotNeeded)
        match verdict:
            case EndRun():
                assert after.state == "finished"
                assert verdict.problem
            case EndCameras():
                assert (after.state, after.source, bool(dead.gave_up)) == ("waiting", True, False)
                assert verdict.problem == after.gave_up
            case GoOn():
                assert after.state == "waiting"
                assert verdict.pause_s <= min(LONGEST_PAUSE_S, self.run.longest_pause_s)
                assert after.start_at == self.now + verdict.pause_s
            case OtherSettings():
                assert after.state == "waiting"
                assert after.restarts == dead.restarts, "nobody is to blame for it"
                assert bool(verdict.refused) == (after.stages != dead.stages)
            case NotNeeded():
                assert after.state == "finished"

    @rule(
        event=st.sampled_from(["time", "time", "sleep", "start_now", "settings", "settings", "running"]),
        seconds=st.sampled_from([0.01, 1.0, 40.0, 100.0]),
        number=st.integers(1, 3),
    )
    def run_goes_on(self, event: str, seconds: float, number: int) -> None:
        match event:
            case "time":
                self.now += seconds
            case "sleep":
                self.now += seconds
                self.to(self.life.slept(seconds))
            case "start_now":
                self.to(self.life.start_now())
            case "settings":
                self.to(self.life.change(stages(number)))
            case "running":
                self.run = replace(self.run, running=True)

    @rule(event=st.sampled_from([*[""] * 8, "cameras end", "leaves", "stop", "close"]), hurried=st.booleans())
    def run_comes_to_its_end(self, event: str, hurried: bool) -> None:
        match event:
            case "cameras end":
                self.all_ended = True
            case "leaves":
                self.to(self.life.leave())
            case "stop":
                self.stopped_at = self.now
                self.run = replace(self.run, longest_pause_s=1.0)
            case "close":
                self.run = replace(self.run, closing=True, hurried=hurried)

    @invariant()
    def finished_is_for_ever(self) -> None:
        if self.before.state == "finished":
            assert self.life.state == "finished"
            assert not self.life.is_due(math.inf, self.stopped_at)

    @invariant()
    def nobody_stays_dead(self) -> None:
        assert self.life.state != "dead"

    @invariant()
    def deaths_and_starts_match(self) -> None:
        life = self.life
        assert life.attempt.number == self.deaths + life.is_alive
        assert life.restarts.total <= self.deaths
        assert bool(life.attempt.endpoint) == (life.state == "running")

    @invariant()
    def only_a_needed_process_is_in_a_plight(self) -> None:
        plight = self.life.plight(self.now)
        if self.life.state == "finished" or self.life.leaving:
            assert plight is None
        elif self.life.state != "running":
            assert plight
            assert plight.since_s >= 0

    @invariant()
    def open_settings_are_proven(self) -> None:
        if self.life.state == "running" and not self.life.attempt.outdated:
            assert not self.life.on_trial


TestAnyLife = AnyLife.TestCase
TestAnyLife.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)


@pytest.mark.parametrize("call", ["start", "reap", "judge", "ready"])
def test_no_transition_outside_of_the_drawing(life: Lifecycle, call: str) -> None:
    lives = {
        "waiting": life,
        "starting": life.start(NOW),
        "running": opened(life),
        "dead": opened(life).reap(KILLED),
        "finished": replace(life, state="finished"),
    }
    calls = {
        "start": lambda one: one.start(NOW),
        "reap": lambda one: one.reap(KILLED),
        "judge": lambda one: one.judge(LIVE, NOW, all_ended=False)[0],
        "ready": lambda one: one.ready("ipc://it", NOW),
    }
    reached = set()
    for state, one in lives.items():
        try:
            reached.add((state, calls[call](one).state))
        except (AssertionError, WireError):
            continue
    assert reached
    assert reached <= DRAWING


# ---- what a death means


def test_a_process_of_a_run_that_closes_is_finished(life: Lifecycle) -> None:
    closing = replace(LIVE, closing=True)
    assert verdict_on(opened(life), exit_status=0, run=closing) == NotNeeded()
    lost = NotNeeded(
        (EXIT_GAVE_UP, "infer.0 died while it closed: signal 9; data that its stages had not written yet are lost")
    )
    assert verdict_on(opened(life), run=closing) == lost
    assert verdict_on(life.start(NOW), run=closing) == NotNeeded(), "one that is not open has nothing to lose"
    hurried = replace(closing, hurried=True)
    assert verdict_on(opened(life).kill("too slow"), run=hurried) == NotNeeded()
    assert verdict_on(opened(life), run=hurried) == lost


def test_a_source_whose_cameras_have_ended_is_finished(life: Lifecycle) -> None:
    source = replace(life, source=True)
    assert verdict_on(opened(source), all_ended=True, run=FILES) == NotNeeded()
    assert verdict_on(opened(life), all_ended=True, run=FILES) == GoOn(lost=True)


def test_a_stage_that_cannot_be_closed_is_reported(life: Lifecycle) -> None:
    failed = opened(life).note_failure(EXIT_ENVIRONMENT, "the disk is full").leave()
    assert verdict_on(failed, exit_status=3) == NotNeeded((EXIT_ENVIRONMENT, "the disk is full"))


def test_other_settings_come_at_once_and_are_no_death(life: Lifecycle) -> None:
    changed = opened(life).change(stages(2))
    assert changed.changing
    after, verdict = changed.reap(0).judge(LIVE, NOW, all_ended=False)
    assert verdict == OtherSettings(lost=True)
    assert (after.stages, after.restarts.total) == (stages(2), 0)
    assert after.is_due(NOW, 0.0)
    assert not opened(after).changing


def test_settings_that_do_not_open_give_way_to_the_proven_ones(life: Lifecycle) -> None:
    trial = dead(opened(life).change(stages(2)), exit_status=0)
    assert trial.on_trial
    refused = trial.start(NOW).note_failure(EXIT_USER, "no such\nmodel").reap(2)
    after, verdict = refused.judge(LIVE, NOW, all_ended=False)
    assert verdict == OtherSettings(refused="no such model")
    assert (after.stages, after.on_trial, after.restarts.total) == (stages(1), False, 0)


def test_settings_that_are_changed_back_in_time_are_no_trial(life: Lifecycle) -> None:
    back = opened(life).change(stages(2)).change(stages(1))
    assert not back.on_trial
    assert verdict_on(back, exit_status=0) == OtherSettings(lost=True), "it has been told to close all the same"


def test_dying_file_source_ends_its_cameras_then_the_run(life: Lifecycle) -> None:
    source, verdicts = replace(life, source=True), list[Consequence]()
    while source.state != "finished":
        source, verdict = opened(source).reap(KILLED).judge(FILES, NOW, all_ended=False)
        verdicts.append(verdict)
    assert [type(verdict) for verdict in verdicts] == [GoOn] * 7 + [EndCameras, EndRun]


def test_live_processes_are_never_given_up(life: Lifecycle) -> None:
    for _ in range(50):
        life, verdict = opened(life).reap(KILLED).judge(LIVE, NOW, all_ended=False)
        assert isinstance(verdict, GoOn)
    assert life.start_at - NOW == LONGEST_PAUSE_S


def test_a_stop_shortens_the_pause(life: Lifecycle) -> None:
    for _ in range(20):
        life = dead(life.start(NOW), exit_status=1)
    assert not life.is_due(NOW + 20, 0.0)
    assert life.is_due(NOW + 20, stopped_at=NOW + 19), "it is needed, or its frames are lost"
    assert life.is_due(NOW, stopped_at=life.died_at), "also if it died in the moment of the stop"
    stopping = replace(LIVE, longest_pause_s=1.0)
    assert dead(life.start(NOW), exit_status=1, run=stopping).is_due(NOW + 1, 0.0)


def test_a_refused_process_is_killed_for_its_report(life: Lifecycle) -> None:
    refused = dead(opened(life).kill("not msgpack", refused=True))
    assert refused.death.killed_for == "", "it did not hang"
    assert refused.died_of == "not msgpack"
    assert not refused.start(NOW).attempt.refused


def test_a_kill_without_a_child_is_nothing(life: Lifecycle) -> None:
    assert life.kill("nothing moves") == life


# ---- its plight, as people are told


def plight_of(life: Lifecycle, now: float = NOW) -> str:
    plight = life.plight(now)
    return f"{plight.why} ({plight.since_s:.0f} s)" if plight else ""


def test_the_first_start_is_no_trouble_of_its_own(life: Lifecycle) -> None:
    starting = life.start(NOW - 40)
    plight = starting.plight(NOW)
    assert plight
    assert (plight.why, plight.since_s, plight.opening) == ("is being opened", 40.0, True)
    assert (
        plight_of(starting.note_opening("a model is compiled", NOW + 9))
        == "is being opened: a model is compiled (40 s)"
    )
    assert plight_of(starting.ready("", NOW)) == ""


def test_a_dead_process_names_its_death_until_it_is_open_again(life: Lifecycle) -> None:
    life = dead(opened(life, NOW - 10))
    assert plight_of(life, NOW + 1) == "has died of: signal 9; it is started again in 0 s (1 s)"
    life = life.start(NOW + 1)
    assert plight_of(life, NOW + 30) == "has died of: signal 9; it is being opened again (30 s)"
    assert plight_of(life.ready("", NOW + 31), NOW + 31) == "", "one death is over when it is open again"


def test_deaths_in_a_row_are_told_of_a_process_that_runs(life: Lifecycle) -> None:
    for _ in range(4):
        life = dead(opened(life, NOW - 1), exit_status=-11)
    assert plight_of(life) == "has died 4 times in a row, last of: signal 11; it is started again in 0 s (0 s)"
    life = opened(life, NOW + 1)
    assert plight_of(life, NOW + 5) == "runs, but has died 4 times in a row, last of: signal 11 (5 s)"
    assert plight_of(life, NOW + 1 + STEADY_S) == "", "it has been steady since"


def test_a_failed_opening_is_told_with_the_next_try(life: Lifecycle) -> None:
    for _ in range(4):
        life = dead(life.start(NOW).note_failure(EXIT_USER, "no such model"), exit_status=2)
    assert plight_of(life) == "has died 4 times in a row, last of: no such model; it is started again in 2 s (0 s)"
    life = opened(life, NOW + 3)
    assert (plight_of(life, NOW + 4), life.trouble) == ("", ""), "what kept it from opening is over"


def test_a_process_that_is_not_needed_is_in_no_plight(life: Lifecycle) -> None:
    assert plight_of(life.leave()) == ""
    assert plight_of(replace(life, state="finished")) == ""


def test_a_shortage_is_named(life: Lifecycle) -> None:
    life = dead(opened(life, NOW - 10)).put_off(NOW + 1, "too few descriptors")
    assert plight_of(life, NOW + 3) == "cannot be started: too few descriptors (3 s)"
    assert not life.is_due(NOW, 0.0)
    assert life.is_due(NOW + 1, 0.0)
    assert life.start(NOW + 1).short == ""


def test_time_in_which_the_supervisor_slept_is_not_counted(life: Lifecycle) -> None:
    slept = life.start(NOW).note_opening("a model is compiled", NOW + 60).slept(100)
    assert (slept.attempt.started_at, slept.attempt.opening[1]) == (NOW + 100, NOW + 160)


# ---- those that the run does not wait for


@pytest.mark.parametrize("running", [False, True])
def test_slow_start_of_unawaited_process_ends_no_run(running: bool) -> None:
    page = Lifecycle("page.0", source=False, stages=(StagePlan("page", "serve", {}, awaited=False),))
    run = RunState(running=running, finite=False)
    slow = page.start(NOW - 100).kill("not ready after 90 s (open_s)")
    assert isinstance(verdict_on(slow, run=run), GoOn)
    mistake = page.start(NOW).note_failure(EXIT_USER, ProblemText("a port in use", error_id="port-in-use"))
    assert isinstance(verdict_on(mistake, run=run), EndRun), "as of all others"
    again = dead(slow, run=run).start(NOW).note_failure(EXIT_USER, ProblemText("a port in use", error_id="port-in-use"))
    assert isinstance(verdict_on(again, run=run), GoOn), "cameras go on for a while by then"
