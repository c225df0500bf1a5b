"""What is done to a soaked run is the same for the same seed, and leaves nothing out."""

from __future__ import annotations

from itertools import pairwise

from camgraph.tools.lab.proofs.trials.schedule import FAULTS, Kill, harms, kills
from camgraph.tools.lab.proofs.trials.subject import KINDS

CAMERAS = [f"c{number}" for number in range(8)]


def test_the_same_seed_does_the_same_and_another_something_else() -> None:
    first, second, other = (list(harms(CAMERAS, seed, every_s=4, until_s=600)) for seed in (1, 1, 2))
    assert first == second != other


def test_every_fault_comes_before_any_comes_again() -> None:
    found = list(harms(CAMERAS, 3, every_s=4, until_s=4 * (len(FAULTS) + 1)))
    assert {harm.faults for harm in found} == set(FAULTS)


def test_a_camera_is_whole_before_it_is_harmed_again() -> None:
    found = list(harms(CAMERAS, 5, every_s=1, until_s=600))
    for camera in CAMERAS:
        own = [harm for harm in found if harm.camera == camera]
        assert own
        assert all(after.at_s > before.at_s + before.for_s for before, after in pairwise(own))


def test_every_kind_of_process_is_killed_before_any_is_again() -> None:
    found = list(kills(1, every_s=60, until_s=60 * (len(KINDS) + 1)))
    assert {kill.kind for kill in found} == set(KINDS)
    assert [kill.at_s for kill in found] == [60.0 * (n + 1) for n in range(len(KINDS))]


def test_the_victim_is_one_of_its_kind() -> None:
    processes = ["log.0", "capture.c1", "capture.c0", "captures.0"]
    assert Kill(0, "capture", 0.0).victim(processes) == "capture.c0"
    assert Kill(0, "capture", 0.999).victim(processes) == "capture.c1"
    assert Kill(0, "infer", 0.5).victim(processes) is None
