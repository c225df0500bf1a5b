"""What a tracker does wrong in a scene, by kind: when people get another id, and why.

A mistake is counted when somebody is followed with an id that was another one's, or that nobody had before:

    PASSED_IN_SIGHT     an id that was another one's, who is in sight as well: two were mistaken for each other
    PASSED_UNSEEN       an id that was somebody's who is out of sight: hidden, or gone
    NEW_AT_ONCE         a new id, though they were followed until just before
    NEW_SOON            a new id after up to 3 s in which nobody followed them: hidden, or not found
    NEW_LATE            a new id after more than that, within the picture
    NEW_RETURNED        a new id after they left the picture and came back
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from camgraph.tools.lab.benchmarks.track_accuracy.measures import Labelled, pairs_of

Kind = Literal[
    "id passed on, both in sight",
    "id passed on, the other out of sight",
    "new id, followed until just before",
    "new id after up to 3 s",
    "new id after longer, in the picture",
    "new id, back from outside",
]
PASSED_IN_SIGHT: Kind = "id passed on, both in sight"
PASSED_UNSEEN: Kind = "id passed on, the other out of sight"
NEW_AT_ONCE: Kind = "new id, followed until just before"
NEW_SOON: Kind = "new id after up to 3 s"
NEW_LATE: Kind = "new id after longer, in the picture"
NEW_RETURNED: Kind = "new id, back from outside"
KINDS: Sequence[Kind] = (
    PASSED_IN_SIGHT, PASSED_UNSEEN, NEW_AT_ONCE, NEW_SOON, NEW_LATE, NEW_RETURNED,
)  # fmt: skip
_JUST_NS, _LONG_NS = 500_000_000, 3_000_000_000


@dataclass
class Mistakes:
    """Sums over a scene. ``ids``: of all people together, how many different ids each had."""

    kinds: Counter[Kind] = field(default_factory=Counter)
    people: int = 0
    ids: int = 0
    nobodys: int = 0
    """Tracks that were nobody's in more than half of their frames."""


@dataclass
class _Person:
    """How somebody was followed last: with which id, when, and in which visit."""

    own: int
    followed_ns: int
    visit: int
    owns: set[int]


def mistakes(
    times_ns: Sequence[int], truths: Sequence[Labelled], visits: Sequence[Labelled], founds: Sequence[Labelled]
) -> Mistakes:
    """Those of the tracks ``founds``. ``visits``: the people of ``truths``, with another identity in each visit."""
    result, people, owners = Mistakes(), dict[int, _Person](), dict[int, int]()
    frames, hits, pairs = Counter[int](), Counter[int](), dict[int, int]()
    for time_ns, truth, visit, found in zip(times_ns, truths, visits, founds, strict=True):
        visit_of = dict(zip(truth[0].tolist(), visit[0].tolist(), strict=True))
        pairs = pairs_of(truth, found, pairs)
        for one, own in pairs.items():
            now, before = _Person(own, time_ns, visit_of[one], {own}), people.get(one)
            if owners.get(own, one) != one:
                result.kinds[PASSED_IN_SIGHT if owners[own] in visit_of else PASSED_UNSEEN] += 1
            elif before and own not in before.owns:
                result.kinds[_kind(before, now)] += 1
            now.owns |= before.owns if before else set()
            people[one] = now
        owners |= {own: one for one, own in pairs.items()}
        frames.update(found[0].tolist())
        hits.update(pairs.values())
    result.people, result.ids = len(people), sum(len(one.owns) for one in people.values())
    result.nobodys = sum(2 * hits[own] < count for own, count in frames.items())
    return result


def _kind(before: _Person, now: _Person) -> Kind:
    """Why somebody has a new id."""
    if before.visit != now.visit:
        return NEW_RETURNED
    gap_ns = now.followed_ns - before.followed_ns
    if gap_ns <= _JUST_NS:
        return NEW_AT_ONCE
    return NEW_SOON if gap_ns <= _LONG_NS else NEW_LATE
