"""What a run has more of than before."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from camgraph.tools.lab.proofs.live_faults.proof import grown
from camgraph.tools.measuring.processes import Member, Sample

SAME = {"socket:[N]": 18, "/dev/null": 2}


@pytest.mark.parametrize(
    ("held", "more", "message"),
    [
        ({"open": {**SAME, "pipe:[N]": 1}}, {}, "descriptors 20 -> 21: {'pipe:[N]': 1}"),
        ({"open": {**SAME, "/dev/shm/camgraph-N (deleted)": 2}}, {}, "2 segments that are no more"),
        ({"threads": 5}, {}, "threads 4 -> 5"),
        ({"own_kb": 60_000}, {}, "memory 40.0 -> 60.0 MB"),
        ({}, {"shm_files": 4}, "segments 3 -> 4"),
    ],
)
def test_what_has_grown_is_said(
    sample: Sample, member: Member, held: dict[str, Any], more: dict[str, int], message: str
) -> None:
    after = replace(sample, members=(replace(member, **held),), **more)
    [found] = grown(sample, after, memory_mb=10)
    assert message in found
    assert grown(sample, after, memory_mb=10, but="capture.a") == ([found] if more else [])


def test_a_zombie_is_said(sample: Sample, member: Member) -> None:
    dead = replace(member, pid=9, zombie=True)
    assert grown(sample, replace(sample, members=(member, dead)), memory_mb=10) == ["zombies: 1"]


def test_what_is_the_same_or_less_has_not_grown(sample: Sample, member: Member) -> None:
    for held in ({**SAME, "/dev/shm/camgraph-N (deleted)": 1}, {"socket:[N]": 19}):
        after = replace(sample, members=(replace(member, open=held, own_kb=45_000),))
        assert grown(sample, after, memory_mb=10) == []
    nobody = replace(sample, members=())
    assert grown(sample, nobody, memory_mb=10) == ["capture.a: gone"]
    assert grown(nobody, sample, memory_mb=10) == ["capture.a: new"]
