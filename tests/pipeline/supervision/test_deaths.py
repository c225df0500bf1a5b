"""What a death means for the run, and how long a process then waits."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camgraph.pipeline.errors import EXIT_ENVIRONMENT, EXIT_GAVE_UP, EXIT_USER
from camgraph.pipeline.graph import load_plan
from camgraph.pipeline.supervision.deaths import (
    MOST_DEATHS,
    NO_DEATHS,
    Consequence,
    Death,
    EndCameras,
    EndRun,
    GoOn,
    Restarts,
    is_finite,
    judge,
)

GRAPH = """
version: 1
name: finite
cameras: {{a: {{frames: 5, live: {live}}}}}
stages:
  src: {{use: count_source}}
  out: {{use: collect, from: {{stage: src, policy: {policy}}}, with: {{path: numbers}}}}
"""
KILLED = Death("infer.0", -9, opened=True, failure=None, failed_starts=0, fruitless=1)
REFUSED = replace(KILLED, status=3, failure=(EXIT_ENVIRONMENT, "no memory"))


@pytest.mark.parametrize(
    ("death", "running", "finite", "verdict"),
    [
        (KILLED, True, True, GoOn(lost=True)),
        (KILLED, False, True, GoOn(lost=True)),
        (replace(KILLED, failure=(EXIT_USER, "no such model")), True, False, EndRun(EXIT_USER, "no such model")),
        (replace(REFUSED, opened=False), False, False, EndRun(EXIT_ENVIRONMENT, "no memory")),
        (replace(KILLED, opened=False, failure=(EXIT_USER, "changed on disk")), True, False, GoOn(lost=False)),
        (
            replace(KILLED, opened=False, failure=(EXIT_USER, "changed on disk")),
            True,
            True,
            EndRun(EXIT_USER, "changed on disk"),
        ),
        (
            replace(KILLED, opened=False, failure=(EXIT_USER, "no such model")),
            False,
            False,
            EndRun(EXIT_USER, "no such model"),
        ),
        (REFUSED, True, True, GoOn(lost=True)),
        (replace(REFUSED, opened=False), True, True, GoOn(lost=False)),
        (replace(KILLED, status=7, opened=False, failed_starts=2), False, False, GoOn(lost=True)),
        (
            replace(KILLED, status=7, opened=False, failed_starts=3),
            False,
            False,
            EndRun(EXIT_GAVE_UP, "infer.0 does not start: exit status 7"),
        ),
        (replace(KILLED, opened=False, failed_starts=3), False, False, GoOn(lost=True)),
        (replace(KILLED, opened=False, killed_for="not ready after 9 s"), True, True, GoOn(lost=True)),
        (replace(KILLED, fruitless=MOST_DEATHS), True, False, GoOn(lost=True)),
        (
            replace(KILLED, opened=False, killed_for="not ready after 9 s", fruitless=MOST_DEATHS),
            True,
            True,
            EndRun(EXIT_GAVE_UP, "infer.0 died 8 times in a row, last of not ready after 9 s"),
        ),
        (
            replace(KILLED, fruitless=MOST_DEATHS),
            True,
            True,
            EndRun(EXIT_GAVE_UP, "infer.0 died 8 times in a row, last of signal 9"),
        ),
        (
            replace(KILLED, process="src.a", fruitless=MOST_DEATHS, last_chance=False),
            True,
            True,
            EndCameras("src.a died 8 times in a row, last of signal 9"),
        ),
    ],
)
def test_what_a_death_means(death: Death, running: bool, finite: bool, verdict: Consequence) -> None:
    assert judge(death, running=running, finite=finite) == verdict


@pytest.mark.parametrize("finite", [True, False])
def test_endless_first_opening_ends_run_with_advice(finite: bool) -> None:
    death = replace(KILLED, opened=False, killed_for="not ready after 9 s (open_s)")
    verdict = judge(death, running=False, finite=finite)
    assert isinstance(verdict, EndRun)
    assert verdict.status == EXIT_GAVE_UP
    assert verdict.problem.startswith("infer.0 does not start: not ready after 9 s (open_s): ")
    assert "raise `open_s`" in verdict.problem


def deaths(number: int, restarts: Restarts = NO_DEATHS, *, opened: bool, works: bool = False) -> list[Restarts]:
    """The state after each of so many deaths; `works`: between them the process brings something through."""
    found = []
    for _ in range(number):
        restarts = restarts.after_death(opened=opened, steady=False)
        found.append(restarts)
        restarts = restarts.after_work() if works else restarts
    return found


def pauses(number: int, restarts: Restarts = NO_DEATHS, *, opened: bool, works: bool = False) -> list[float]:
    return [after.pause_s for after in deaths(number, restarts, opened=opened, works=works)]


def test_a_process_that_works_is_back_within_a_second() -> None:
    waits = pauses(20, opened=True, works=True)
    assert waits[0] == 0
    assert waits == sorted(waits)
    assert max(waits) <= 1


def test_deaths_of_a_poison_message_are_followed_by_short_pauses() -> None:
    assert sum(pauses(5, opened=True)) < 2


def test_pauses_grow_without_work() -> None:
    for opened in (True, False):
        waits = pauses(15, opened=opened)
        assert waits == sorted(waits)
        assert waits[-1] == 30
    assert pauses(4, opened=False) == [0, 0.5, 1, 2]


def test_failed_starts_are_counted_apart_from_deaths_at_work() -> None:
    worked = deaths(9, opened=True, works=True)[-1].after_work()
    assert pauses(3, worked, opened=False) == [0, 0.5, 1]
    failed = deaths(3, worked, opened=False)[-1]
    assert pauses(1, deaths(1, failed, opened=True)[-1], opened=False) == [0]


def test_a_steady_process_is_back_at_once() -> None:
    after = deaths(9, opened=True)[-1].after_work().after_death(opened=True, steady=True)
    assert (after.pause_s, after.total) == (0, 10)


def test_before_the_first_death_there_is_no_pause() -> None:
    assert Restarts().pause_s == 0


@given(st.lists(st.tuples(st.booleans(), st.booleans(), st.booleans())))
def test_no_pause_is_longer_than_half_a_minute(lives: list[tuple[bool, bool, bool]]) -> None:
    restarts = Restarts()
    for opened, steady, worked in lives:
        restarts = restarts.after_work() if worked else restarts
        restarts = restarts.after_death(opened=opened, steady=steady)
        assert 0 <= restarts.pause_s <= 30


@pytest.mark.parametrize(("live", "finite"), [(False, True), (True, False)])
def test_a_graph_is_finite_by_its_cameras(tmp_path: Path, live: bool, finite: bool) -> None:
    for policy in ("block", "drop_oldest"):
        path = tmp_path / f"{policy}.yaml"
        path.write_text(GRAPH.format(live=json.dumps(live), policy=policy))
        assert is_finite(load_plan(path)) == finite
