"""Cameras take turns in proportion to their priorities; none starves, and none saves turns up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from camgraph.pipeline.stage import HIGHEST_PRIORITY, LOWEST_PRIORITY
from camgraph.pipeline.transport.mailboxes import Shares

Turns = list[list[str]]

PRIORITIES = st.dictionaries(st.sampled_from("abcdef"), st.integers(LOWEST_PRIORITY, HIGHEST_PRIORITY), min_size=2)
SMALL = st.dictionaries(st.sampled_from("abcdef"), st.integers(LOWEST_PRIORITY, 9), min_size=2)


def serve(shares: Shares, waiting: Sequence[str]) -> str:
    camera = min(waiting, key=shares.rank)
    shares.charge(camera)
    return camera


@st.composite
def comings_and_goings(draw: st.DrawFn) -> tuple[dict[str, int], Turns]:
    """Priorities, and who has something at each turn."""
    priorities = draw(SMALL)
    some = st.lists(st.sampled_from(sorted(priorities)), min_size=1, unique=True)
    stretches = draw(st.lists(st.tuples(some, st.integers(1, 30)), min_size=1, max_size=12))
    return priorities, [waiting for waiting, turns in stretches for _ in range(turns)]


@given(PRIORITIES, st.integers(1, 400))
def test_busy_cameras_always_have_their_share(priorities: dict[str, int], turns: int) -> None:
    shares, got = Shares(priorities), Counter[str]()
    for _ in range(turns):
        got[serve(shares, sorted(priorities))] += 1
        for a, b in combinations(priorities, 2):
            apart = abs(got[a] / priorities[a] - got[b] / priorities[b])
            assert apart <= 1 / priorities[a] + 1 / priorities[b] + 1e-3  # strides are whole numbers


def test_three_to_one_is_three_to_one() -> None:
    shares = Shares({"a": 3})
    assert "".join(serve(shares, "ab") for _ in range(12)) == "abaaabaaabaa"


@given(comings_and_goings())
def test_idle_time_gives_no_advantage(case: tuple[dict[str, int], Turns]) -> None:
    priorities, turns = case
    shares = Shares(priorities)
    since: dict[tuple[str, str], Counter[str]] = {}
    for waiting in turns:
        camera = serve(shares, waiting)
        for a, b in combinations(sorted(priorities), 2):
            if not {a, b} <= set(waiting):
                since.pop((a, b), None)
                continue
            got = since.setdefault((a, b), Counter())
            got[camera] += 1
            apart = abs(got[a] / priorities[a] - got[b] / priorities[b])
            assert apart <= 1 + 1 / priorities[a] + 1 / priorities[b] + 1e-3


@given(comings_and_goings())
def test_nobody_starves(case: tuple[dict[str, int], Turns]) -> None:
    priorities, turns = case
    shares, passed_over = Shares(priorities), Counter[str]()
    for waiting in turns:
        camera = serve(shares, waiting)
        for other in priorities:
            passed_over[other] = 0 if other == camera or other not in waiting else passed_over[other] + 1
            others = [priority for name, priority in priorities.items() if name != other]
            assert passed_over[other] <= sum(priority / priorities[other] + priority + 1 for priority in others)


@given(comings_and_goings())
def test_the_same_calls_make_the_same_choices(case: tuple[dict[str, int], Turns]) -> None:
    priorities, turns = case
    one, other = Shares(priorities), Shares(priorities)
    assert [serve(one, waiting) for waiting in turns] == [serve(other, waiting) for waiting in turns]
