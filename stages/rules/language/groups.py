"""Groups of people: those who have been near each other for a while, directly or through others.

    distance of the feet < apart     near, from then on until it is 1.2 times as far, for longer than a short gap
    near for `together`              linked
    linked, also through others      a group (two people or more), with a number that it keeps

A group keeps its number while people join and leave: it goes on as the group with which it shares most people. If it
falls apart, the larger part keeps the number; if two become one, the one of which more people are in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from camgraph.stages.rules.language.people import Person

I64 = NDArray[np.int64]
GAP_NS = 1_000_000_000
"""Two who are not near, or not both seen, for no longer than this are still near."""
FORGET_NS = 2_000_000_000
"""People and groups that are unseen for longer are forgotten."""
_STILL = 1.2
"""Who is near stays so up to this multiple of the distance."""
_NEVER = -1


@dataclass(frozen=True, slots=True)
class Nearness:
    """`apart`: in heights of the two people's boxes, their mean; `together_ns`: for how long they must be nearer."""

    apart: float
    together_ns: int


def _no_times() -> I64:
    return np.empty((0, 0), np.int64)


@dataclass(slots=True)
class Groups:
    """The groups of one camera. Bounded by the people of its last two seconds; 100 people take about 2 ms."""

    nearness: Nearness
    _ids: I64 = field(default_factory=lambda: np.empty(0, np.int64))
    """(N,) the people of the last seconds, in order."""
    _seen_ns: I64 = field(default_factory=lambda: np.empty(0, np.int64))
    _since_ns: I64 = field(default_factory=_no_times)
    """(N, N) since when two have been near."""
    _last_ns: I64 = field(default_factory=_no_times)
    """(N, N) when they were last measured to be near."""
    _linked: NDArray[np.bool_] = field(default_factory=lambda: np.empty((0, 0), bool))
    """(N, N) whether they have been near for long enough."""
    _known: dict[int, tuple[frozenset[int], int]] = field(default_factory=dict)
    """Number -> its people, and when it was last seen."""
    _numbers: int = 0

    def step(self, people: Sequence[Person], now_ns: int, at_least_ns: int = 0) -> dict[int, tuple[Person, ...]]:
        """The groups of the next frame by number, each with its people. `people`: in the order of their ids.

        `at_least_ns`: the gaps are at least this long, for cameras with few frames.
        """
        ids = np.array([person.id for person in people], np.int64)
        self._remember(ids, now_ns, max(FORGET_NS, at_least_ns))
        here = np.searchsorted(self._ids, ids)
        at = np.ix_(here, here)
        was = self._since_ns[at] != _NEVER
        near = _distances(people) < self.nearness.apart * np.where(was, _STILL, 1.0)
        np.fill_diagonal(near, val=False)
        self._since_ns[at] = np.where(near & ~was, now_ns, self._since_ns[at])
        self._last_ns[at] = np.where(near, now_ns, self._last_ns[at])
        over = now_ns - self._last_ns > max(GAP_NS, at_least_ns)
        self._since_ns[over], self._linked[over] = _NEVER, False
        self._linked[at] |= near & (now_ns - self._since_ns[at] >= self.nearness.together_ns)
        found = [tuple(people[i] for i in one) for one in _components(self._linked[at])]
        return self._numbered(found, now_ns, max(FORGET_NS, at_least_ns))

    def knows(self, number: int) -> bool:
        """Whether a group of this number may still go on."""
        return number in self._known

    def _remember(self, ids: I64, now_ns: int, forget_ns: int) -> None:
        """Make room for those who came, and forget those who are gone."""
        kept = np.flatnonzero(now_ns - self._seen_ns <= forget_ns)
        known = np.union1d(self._ids[kept], ids)
        to = np.searchsorted(known, self._ids[kept])
        seen_ns = np.full(len(known), now_ns, np.int64)
        seen_ns[to] = self._seen_ns[kept]
        seen_ns[np.searchsorted(known, ids)] = now_ns
        for name, empty in (("_since_ns", np.int64(_NEVER)), ("_last_ns", np.int64(_NEVER)), ("_linked", np.bool_(0))):
            pairs = np.full((len(known), len(known)), empty)
            pairs[np.ix_(to, to)] = getattr(self, name)[np.ix_(kept, kept)]
            setattr(self, name, pairs)
        self._ids, self._seen_ns = known, seen_ns

    def _numbered(
        self, found: Sequence[tuple[Person, ...]], now_ns: int, forget_ns: int
    ) -> dict[int, tuple[Person, ...]]:
        """Each group under the number of the one that it goes on, or under the next number."""
        self._known = {number: one for number, one in self._known.items() if now_ns - one[1] <= forget_ns}
        members = [frozenset(person.id for person in group) for group in found]
        shared = [
            (-len(ids & before), number, index)
            for number, (before, _) in self._known.items()
            for index, ids in enumerate(members)
            if ids & before
        ]
        numbers: dict[int, int] = {}
        for _, number, index in sorted(shared):
            if index not in numbers and number not in numbers.values():
                numbers[index] = number
        for index in range(len(found)):
            if index not in numbers:
                self._numbers += 1
                numbers[index] = self._numbers
            self._known[numbers[index]] = (members[index], now_ns)
        return {numbers[index]: group for index, group in enumerate(found)}


def _distances(people: Sequence[Person]) -> NDArray[np.float64]:
    """(N, N) between the feet of each two, in the mean of their heights."""
    x, y, height = np.array([(one.x, one.bottom, one.h) for one in people], np.float64).reshape(-1, 3).T
    apart = np.hypot(x[:, None] - x, y[:, None] - y)
    mean = (height[:, None] + height) / 2
    return np.asarray(np.divide(apart, mean, out=np.full_like(apart, np.inf), where=mean > 0))


def _components(linked: NDArray[np.bool_]) -> list[list[int]]:
    """The connected parts of two or more, each in order, in the order of their first."""
    left = np.ones(len(linked), bool)
    found = []
    for first in range(len(linked)):
        part = np.zeros(len(linked), bool)
        edge = part.copy()
        edge[first] = left[first]
        while edge.any():
            part |= edge
            edge = linked[edge].any(axis=0) & ~part
        left &= ~part
        if part.sum() > 1:
            found.append(np.flatnonzero(part).tolist())
    return found
