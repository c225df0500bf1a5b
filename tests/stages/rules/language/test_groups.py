"""Who forms a group: by distance and time, with numbers that stay, against a slow reference, and in bounded time."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from camgraph.stages.rules.language.groups import Groups, Nearness, _components
from camgraph.stages.rules.language.people import Person

SECOND = 1_000_000_000
Place = tuple[int, float]
"""Id, and x of the feet; everybody is 100 pixels tall."""


def people(places: Sequence[Place]) -> list[Person]:
    return [Person(track, row, x - 20, 100.0, x + 20, 200.0, 0.9, []) for row, (track, x) in enumerate(sorted(places))]


def seen(groups: Groups, places: Sequence[Place], at_s: float) -> dict[int, list[int]]:
    found = groups.step(people(places), round(at_s * SECOND))
    return {number: [person.id for person in one] for number, one in found.items()}


def after(groups: Groups, places: Sequence[Place], begin_s: float, end_s: float) -> dict[int, list[int]]:
    """Five frames a second."""
    found: dict[int, list[int]] = {}
    for i in range(round(5 * begin_s), round(5 * end_s) + 1):
        found = seen(groups, places, i / 5)
    return found


def two_seconds() -> Groups:
    return Groups(Nearness(0.8, 2 * SECOND))


def test_a_group_is_near_for_a_while_directly_or_through_others() -> None:
    groups = two_seconds()
    places = [(4, 0.0), (9, 70.0), (2, 140.0), (7, 300.0)]
    assert after(groups, places, 0, 1.8) == {}
    assert after(groups, places, 2, 2) == {1: [2, 4, 9]}


def test_passing_each_other_makes_no_group() -> None:
    groups = two_seconds()
    for i in range(60):
        assert seen(groups, [(1, 10.0 * i), (2, 600 - 10.0 * i)], i / 5) == {}


def test_a_short_gap_breaks_nothing() -> None:
    groups = two_seconds()
    near, far = [(1, 0.0), (2, 70.0)], [(1, 0.0), (2, 300.0)]
    after(groups, near, 0, 1)
    after(groups, far, 1.2, 1.8)
    assert after(groups, near, 2, 2) == {1: [1, 2]}
    assert after(groups, [(1, 0.0), (2, 90.0)], 2.2, 9) == {1: [1, 2]}  # still near, up to 1.2 times as far
    assert after(groups, far, 9.2, 10) == {1: [1, 2]}
    assert after(groups, far, 10.2, 10.4) == {}
    assert after(groups, near, 11, 12.8) == {}
    assert after(groups, near, 13, 13) == {2: [1, 2]}


def test_numbers_stay_while_people_join_and_leave() -> None:
    groups = two_seconds()
    assert after(groups, [(1, 0.0), (2, 70.0)], 0, 2) == {1: [1, 2]}
    assert after(groups, [(1, 0.0), (2, 70.0), (3, 140.0)], 2.2, 4.4) == {1: [1, 2, 3]}
    assert after(groups, [(2, 70.0), (3, 140.0)], 4.6, 5) == {1: [2, 3]}
    assert after(groups, [], 5.2, 6.6) == {}
    assert after(groups, [(2, 70.0), (3, 140.0)], 6.8, 6.8) == {}  # the gap was too long
    assert after(groups, [(2, 70.0), (3, 140.0)], 7, 8.8) == {2: [2, 3]}


def test_the_larger_part_keeps_the_number() -> None:
    groups = two_seconds()
    row = [(i, 70.0 * i) for i in range(5)]
    assert after(groups, row, 0, 2) == {1: [0, 1, 2, 3, 4]}
    apart = [(i, 70.0 * i + (500 if i > 1 else 0)) for i in range(5)]
    assert after(groups, apart, 2.2, 3.4) == {1: [2, 3, 4], 2: [0, 1]}
    assert after(groups, row, 3.6, 5.6) == {1: [0, 1, 2, 3, 4]}


@given(
    st.integers(1, 9).flatmap(
        lambda n: st.tuples(st.just(n), st.sets(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1))))
    )
)
def test_components_are_those_of_a_slow_search(graph: tuple[int, set[tuple[int, int]]]) -> None:
    n, edges = graph
    linked = np.zeros((n, n), bool)
    for a, b in edges:
        linked[a, b] = linked[b, a] = a != b
    parts = [{i} for i in range(n)]
    for a, b in edges:
        one, other = next(p for p in parts if a in p), next(p for p in parts if b in p)
        if one is not other:
            parts.remove(other)
            one |= other
    assert _components(linked) == sorted(sorted(part) for part in parts if len(part) > 1)


def test_a_hundred_people_take_a_few_milliseconds() -> None:
    groups = two_seconds()
    random = np.random.default_rng(1)
    crowd = [(i, float(x)) for i, x in enumerate(random.uniform(0, 2000, 100))]
    after(groups, crowd, 0, 2)
    begin = time.process_time()
    after(groups, crowd, 2.2, 6.2)
    assert (time.process_time() - begin) / 21 < 0.05


def test_people_who_came_and_went_are_forgotten() -> None:
    groups = two_seconds()
    for i in range(300):
        seen(groups, [(i, 0.0), (i + 1, 70.0)], i / 5)
    assert len(groups._ids) <= 13
    assert groups._since_ns.shape == (len(groups._ids),) * 2
