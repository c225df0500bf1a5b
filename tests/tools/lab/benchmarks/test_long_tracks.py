"""Long scenes: who is who in them, the mistakes on stories that are known, and the report."""

from __future__ import annotations

from collections.abc import Sequence as Rows

import numpy as np
import pytest
from click.testing import CliRunner

from camgraph.tools.lab.benchmarks.track_accuracy import sequences
from camgraph.tools.lab.benchmarks.track_accuracy.long import Judged, Results, Size, main, report
from camgraph.tools.lab.benchmarks.track_accuracy.long_scenes import LONG_SCENES, long_scene, visits
from camgraph.tools.lab.benchmarks.track_accuracy.long_settings import RATES, chosen
from camgraph.tools.lab.benchmarks.track_accuracy.measures import Labelled, measure
from camgraph.tools.lab.benchmarks.track_accuracy.mistakes import (
    NEW_AT_ONCE,
    NEW_LATE,
    NEW_RETURNED,
    NEW_SOON,
    PASSED_IN_SIGHT,
    PASSED_UNSEEN,
    Kind,
    Mistakes,
    mistakes,
)
from camgraph.tools.lab.benchmarks.track_accuracy.peers import ENVIRONMENTS, NAMES

STEP_NS = 200_000_000
Person = tuple[int, float]
"""An identity and the left edge; everybody is 20 x 60 pixels."""


def frame(*people: Person) -> Labelled:
    boxes = np.array([[x, 0, x + 20, 60] for _, x in people], np.float64).reshape(-1, 4)
    return np.array([i for i, _ in people], np.int64), boxes


def story(frames: Rows[Labelled]) -> sequences.Sequence:
    return sequences.Sequence("story", [number * STEP_NS for number in range(len(frames))], frames, [])


def wrong(truths: Rows[Labelled], found: Rows[Labelled]) -> Mistakes:
    scene = story(truths)
    return mistakes(scene.times_ns, truths, visits(scene, 640), found)


def kinds(truths: Rows[Labelled], found: Rows[Labelled]) -> dict[Kind, int]:
    return dict(wrong(truths, found).kinds)


def test_who_is_followed_with_one_id_is_no_mistake() -> None:
    truths = [frame((1, 100.0), (2, 300.0))] * 5
    result = wrong(truths, [frame((7, 100.0), (8, 300.0))] * 5)
    assert (dict(result.kinds), result.people, result.ids, result.nobodys) == ({}, 2, 2, 0)


@pytest.mark.parametrize(("frames", "expected"), [(1, NEW_AT_ONCE), (5, NEW_SOON), (20, NEW_LATE)])
def test_a_new_id_counts_by_the_time_without_any(frames: int, expected: Kind) -> None:
    one = frame((1, 100.0))
    found = [frame((7, 100.0)), *[frame()] * frames, frame((8, 100.0))]
    assert kinds([one] * len(found), found) == {expected: 1}


def test_a_new_id_of_who_came_back_is_of_its_own_kind() -> None:
    truths = [frame((1, 0.0)), *[frame()] * 10, frame((1, 50.0))]
    found = [frame((7, 0.0)), *[frame()] * 10, frame((8, 50.0))]
    assert kinds(truths, found) == {NEW_RETURNED: 1}


def test_two_who_exchange_ids_are_two_mistakes() -> None:
    truths = [frame((1, 100.0), (2, 300.0))] * 2
    found = [frame((7, 100.0), (8, 300.0)), frame((8, 100.0), (7, 300.0))]
    assert kinds(truths, found) == {PASSED_IN_SIGHT: 2}


def test_an_id_of_somebody_who_is_gone_is_of_its_own_kind() -> None:
    truths = [frame((1, 100.0)), frame((2, 110.0))]
    assert kinds(truths, [frame((7, 100.0)), frame((7, 110.0))]) == {PASSED_UNSEEN: 1}


def test_a_track_that_is_mostly_nobodys_counts_once() -> None:
    found = [frame((7, 100.0), (9, 400.0))] * 3
    assert wrong([frame((1, 100.0))] * 3, found).nobodys == 1


def test_who_leaves_and_returns_is_another_visit() -> None:
    away = [frame()] * 10
    came = visits(story([frame((1, 0.0)), *away, frame((1, 0.0)), frame((1, 50.0)), *away, frame((1, 50.0))]), 640)
    assert [ids.tolist() for ids, _ in came if len(ids)] == [[1000], [1001], [1001], [1001]]


@pytest.mark.slow
@pytest.mark.parametrize("name", LONG_SCENES)
def test_a_long_scene_is_the_same_again(name: str) -> None:
    one, again = long_scene(name, 2, 0.15), long_scene(name, 2, 0.15)
    assert [part.boxes.tolist() for part in one.found] == [part.boxes.tolist() for part in again.found]
    people = {i for ids, _ in one.truths for i in ids.tolist()}
    assert len(people) > len(one.truths[0][0])


@pytest.mark.parametrize("fps", RATES)
def test_everybody_has_settings_at_each_rate(fps: float) -> None:
    runs = [run for environment in ENVIRONMENTS for run in chosen(environment, fps)]
    assert sorted(run.tracker for run in runs) == sorted(NAMES)


def test_the_report_counts_by_the_hour() -> None:
    truths = [frame((1, 100.0))] * 10
    found = [frame((7, 100.0))] * 5 + [frame((8, 100.0))] * 5
    judged = Judged("camgraph", "hall", 1, 5.0, measure(truths, found), 0.5, wrong(truths, found))
    text = report(Results([judged], [Size(1800.0, 3600.0, 1, 1)]), [5.0], {"SORT": "no network"})
    assert "1 scenes, 0.5 hours of video with 1.0 hours of people in sight: 1 people" in text
    assert "| camgraph | 50.0 ± 0.0 | 70.7 | 90.0 | 0 | 1.0 | 0 |" in text
    assert "| new id, followed until just before | 2 |" in text
    assert "SORT is left out: no network" in text


@pytest.mark.processes
def test_the_command_writes_tables() -> None:
    options = ["--alone", "--rate", "3", "--seed", "2", "--minutes", "0.2"]
    result = CliRunner().invoke(main, options, catch_exceptions=False)
    assert result.exit_code == 0
    assert "3 scenes, 0.0 hours of video" in result.output
    assert "| camgraph | " in result.output
