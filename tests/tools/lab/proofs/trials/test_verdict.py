"""The verdict on a soak, on samples that are made up: it sees each kind of leak, and nothing where there is none."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from camgraph.tools.lab.proofs.trials.subject import KINDS
from camgraph.tools.lab.proofs.trials.verdict import Bounds, judge_samples, undisturbed_bounds
from camgraph.tools.measuring.processes import SUPERVISOR, Member, Sample

SECONDS = 1800.0
STEP_S = 5.0
Change = Callable[[int], object]


def member(
    pid: int, process: str, *, own_kb: int = 40_000, threads: int = 4, fds: int = 20, dead: bool = False
) -> Member:
    return Member(pid, process, 80_000, own_kb, threads, {"socket:[N]": fds}, dead)


def family(n: int, **changed: int) -> list[Member]:
    """The supervisor and one process of each kind; what `changed` says is of the tracker."""
    processes = [SUPERVISOR, *(f"{kind}.0" for kind in KINDS)]
    values = {"own_kb": 40_000 + 50 * (n % 3), **changed}
    return [
        member(pid, process, **(values if process == "tracks.0" else {})) for pid, process in enumerate(processes, 100)
    ]


def samples(at: Callable[[int], list[Member]], shm: Callable[[int], int] = lambda n: 5_000_000) -> list[Sample]:
    return [Sample(n * STEP_S, tuple(at(n)), shm(n), 9) for n in range(int(SECONDS / STEP_S))]


def faults(found: list[Sample]) -> str:
    return "; ".join(judge_samples(found, SECONDS, Bounds()).faults)


def test_a_family_that_stays_as_it_is_has_no_faults() -> None:
    assert faults(samples(family)) == ""


@pytest.mark.parametrize(
    ("leak", "what"),
    [
        (lambda n: {"own_kb": 40_000 + 10 * n}, "tracks: memory of one"),
        (lambda n: {"fds": 20 + n // 20}, "descriptors is not flat"),
        (lambda n: {"threads": 4 + n // 60}, "threads is not flat"),
    ],
)
def test_one_process_that_leaks_among_nine_is_found(leak: Callable[[int], dict[str, int]], what: str) -> None:
    assert what in faults(samples(lambda n: family(n, **leak(n))))


def test_shared_memory_that_grows_is_found() -> None:
    assert "shared memory (MB) is not flat" in faults(samples(family, lambda n: 5_000_000 + n * 1000))


def test_processes_that_become_more_are_found() -> None:
    more = samples(lambda n: [*family(n), *(member(1000 + k, "log.0") for k in range(n // 100))])
    assert "processes is not flat" in faults(more)


def test_only_lasting_zombies_are_faults() -> None:
    dead = member(7, "capture.0", dead=True)
    assert faults(samples(lambda n: [*family(n), *([dead] if n == 50 else [])])) == ""
    assert "stayed zombies: 7" in faults(samples(lambda n: [*family(n), *([dead] if n in (50, 51) else [])]))


def test_undisturbed_memory_of_all_may_gain_a_megabyte_an_hour() -> None:
    def judged(mb_per_hour: float) -> list[str]:
        grown = samples(lambda n: family(n, own_kb=40_000 + round(n * STEP_S * mb_per_hour / 3.6)))
        return judge_samples(grown, SECONDS, undisturbed_bounds(SECONDS)).faults

    assert judged(0.9) == []
    assert "memory of all (MB) is not flat: +1.1 an hour" in judged(1.1)[0]


def test_what_happens_while_it_warms_up_is_not_judged() -> None:
    assert faults(samples(lambda n: family(n, own_kb=20_000 + 400 * min(n, 50)))) == ""
