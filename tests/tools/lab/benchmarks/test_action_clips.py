"""The library of actions over clips."""

from __future__ import annotations

from pathlib import Path

import pytest

from camgraph.stages.rules.library import library
from camgraph.tools.lab.benchmarks.action_clips import listed, rules_of, videos_in
from camgraph.tools.lab.report_page import at_most


def test_clips_are_found_in_folders(tmp_path: Path) -> None:
    for name in ("b.mkv", "a.MP4", "notes.txt"):
        (tmp_path / name).touch()
    alone = tmp_path / "b.mkv"
    assert [clip.name for clip in videos_in([tmp_path, alone])] == ["a.MP4", "b.mkv", "b.mkv"]


def test_every_action_has_its_place() -> None:
    assert set(rules_of(tuple(library().templates)).rules) == set(library().templates)


@pytest.mark.parametrize(("count", "most"), [(0, 3.0), (1, 4.74), (4, 9.15), (100, 118.1)])
def test_how_often_it_is_at_most(count: int, most: float) -> None:
    """The upper limits of a Poisson rate with 95 %, as tables have them; of none, the rule of three."""
    assert at_most(count, 1.0) == pytest.approx(most, rel=0.005)
    assert at_most(count, 0.5) == pytest.approx(2 * most, rel=0.005)


def test_what_never_fired_is_listed_with_its_limit() -> None:
    assert list(listed([], {"model": 0.1}, ["fall", "lying"])) == [
        "model  none in 6.0 minutes, at most 30 an hour: fall, lying"
    ]
