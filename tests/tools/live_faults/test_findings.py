"""What is made of a run: the others' rates, what has grown, what is disclosed, and the page."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest

from tools.live_faults.cases import Case
from tools.live_faults.disclosure import Disclosure
from tools.live_faults.processes import Held, Sample, grown, sample, tree
from tools.live_faults.proof import FaultProof
from tools.live_faults.rates import Others, others_of, passed_over, percent, strangers_share, window, witnesses
from tools.live_faults.record import CameraStatus, Record, Seen, StateTold, Work
from tools.live_faults.report import report
from tools.live_faults.rounds import may_try_again
from tools.live_faults.trial import Result


def frames(begin_s: float, end_s: float, fps: float = 10) -> list[Seen]:
    return [Seen(begin_s + n / fps + 0.2, begin_s + n / fps, 0, n) for n in range(round((end_s - begin_s) * fps))]


def test_all_frames_are_all_however_the_window_lies() -> None:
    for shift in (0.0, 0.03, 0.0999):
        assert percent(frames(0, 100), 20 + shift, 31.7 + shift, 10) == 100


def test_a_gap_is_seen() -> None:
    came = [*frames(0, 25), *frames(26, 100)]
    assert percent(came, 20, 30, 10) == pytest.approx(90, abs=1)


def test_a_clock_that_was_wrong_for_a_while_takes_nothing_from_later_windows() -> None:
    wrong = [replace(seen, filmed_s=seen.filmed_s + 3600) for seen in frames(10, 15)]
    assert percent([*frames(0, 10), *wrong, *frames(15, 100)], 40, 50, 10) == 100


def test_a_window_is_long_and_begins_when_all_were_well() -> None:
    assert window(Result("cut", "a", 50, 52), 0) == (46, 56)
    assert window(Result("cut", "a", 50, 52), 49.5) == (49.5, 59.5)
    assert window(Result("stall", "a", 50, 70), 0) == (49, 70)


def test_the_worst_off_of_those_to_whom_nothing_was_done_counts() -> None:
    results = [Result("cut", "a", 50, 52), Result("cut", "b", 54, 60), Result("cut", "c", 80, 82)]
    record = Record(0.0)
    record.frames.update({"a": [], "b": [], "c": frames(0, 49) + frames(50, 100), "d": frames(0, 100)})
    for name in "abcd":
        record.history[name] = [
            CameraStatus(40.0),
            CameraStatus(60.0, drops={"queue_full": 7, "damaged": 99}),
            CameraStatus(90.0),
        ]
    record.work = [Work(second, 2.0 * second, 0.5 * second) for second in range(100)]
    cameras = list(record.frames)
    assert witnesses((46, 56), results, cameras) == {"c", "d"}
    others = others_of(results[0], results, record, cameras, since_s=0, fps=10, cores=2)
    assert others.came == pytest.approx(90, abs=1)
    assert others.known == pytest.approx(97, abs=1), "seven were passed over, and that is said"
    assert others.strangers == pytest.approx(0.25)
    gone = others_of(results[2], results, record, cameras, since_s=0, fps=10, cores=2)
    assert gone.came == 0, "a and b sent nothing any more, and nothing was done to them"


def test_what_was_passed_over_is_what_was_counted_meanwhile() -> None:
    looks = [CameraStatus(second, drops={"queue_full": n}) for second, n in ((1.0, 2), (2.0, 3), (3.0, 8), (4.0, 9))]
    assert passed_over(looks, 1.5, 2.5) == 6
    assert passed_over(looks, 0.5, 1.0) == 2
    assert passed_over(looks, 3.5, 9.0) == 1


def test_strangers_have_what_we_do_not() -> None:
    work = [Work(float(s), 1.5 * s, 0.5 * s) for s in range(20)]
    assert strangers_share(work, 5, 15, cores=2) == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("states", "losses", "said"),
    [
        ([], 0, ""),
        (["lost", "live", "stalled", "live"], 2, ""),
        (["lost", "live"], 2, "2 losses, events: lost back"),
        (["lost", "lost", "live", "live"], 2, "2 losses, events: lost lost back back"),
    ],
)
def test_one_loss_is_one_event_and_one_more(states: list[str], losses: int, said: str) -> None:
    record = Record(0.0)
    record.looks["a"] = CameraStatus(0.0, losses=losses)
    record.told = [StateTold(0.0, "a", "event", state) for state in states]
    assert record.unpaired("a") == said


CASE = Case("cut:fin", lambda _: None, states=("lost",))


@pytest.mark.parametrize(
    ("problems", "case", "strangers", "times", "again"),
    [
        ([], CASE, 0.6, 0, True),
        ([], CASE, 0.6, 1, True),
        ([], CASE, 0.6, 2, False),
        ([], CASE, 0.4, 0, False),
        (["never back"], CASE, 0.6, 0, False),
        ([], replace(CASE, at_start=True), 0.6, 0, False),
    ],
)
def test_only_what_was_late_on_a_machine_of_others_is_tried_again(
    problems: list[str], case: Case, strangers: float, times: int, again: bool
) -> None:
    result = Result("cut:fin", "a", problems=problems, late=["back after 9 s"])
    assert may_try_again(result, case, strangers, times) is again


SAMPLE = Sample({"run/capture.a": Held({"socket:[N]": 18, "/dev/null": 2}, 4, 40_000_000)}, 0, 3)
SAME = {"socket:[N]": 18, "/dev/null": 2}


@pytest.mark.parametrize(
    ("held", "more", "said"),
    [
        (Held({**SAME, "pipe:[N]": 1}, 4, 40_000_000), {}, "descriptors 20 -> 21: {'pipe:[N]': 1}"),
        (Held({**SAME, "/dev/shm/camgraph-N (deleted)": 2}, 4, 40_000_000), {}, "2 segments that are no more"),
        (Held(SAME, 5, 40_000_000), {}, "threads 4 -> 5"),
        (Held(SAME, 4, 60_000_000), {}, "memory 40.0 -> 60.0 MB"),
        (Held(SAME, 4, 40_000_000), {"zombies": 1}, "zombies: 1"),
        (Held(SAME, 4, 40_000_000), {"segments": 4}, "segments 3 -> 4"),
    ],
)
def test_what_has_grown_is_said(held: Held, more: dict[str, int], said: str) -> None:
    after = replace(SAMPLE, held={"run/capture.a": held}, **more)
    [found] = grown(SAMPLE, after, memory_mb=10)
    assert said in found


def test_what_is_the_same_or_less_has_not_grown() -> None:
    one_more = Held({**SAME, "/dev/shm/camgraph-N (deleted)": 1}, 4, 40_000_000)
    assert grown(SAMPLE, replace(SAMPLE, held={"run/capture.a": one_more}), memory_mb=10) == []
    assert (
        grown(SAMPLE, replace(SAMPLE, held={"run/capture.a": Held({"socket:[N]": 19}, 4, 45_000_000)}), memory_mb=10)
        == []
    )
    assert grown(SAMPLE, replace(SAMPLE, held={}), memory_mb=10) == ["run/capture.a: gone"]
    assert grown(replace(SAMPLE, held={}), SAMPLE, memory_mb=10) == ["run/capture.a: new"]


def test_a_tree_of_real_processes_is_counted() -> None:
    code = "import os, sys; child = os.fork() or os._exit(0); print(child, flush=True); sys.stdin.read()"
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", code], stdin=pipe, stdout=pipe) as process:
        assert process.stdout
        child = int(process.stdout.readline())
        while sample(process.pid, "none").zombies == 0:
            assert process.poll() is None
        assert tree(process.pid) == [process.pid, child]
        now = sample(process.pid, "none")
        assert set(now.held) == {"supervisor"}
        assert now.held["supervisor"].threads == 1
        assert now.held["supervisor"].descriptors >= 3
        assert now.held["supervisor"].memory > 1e6


def test_secrets_are_found_in_both_their_forms() -> None:
    looks = Disclosure(["ge/heim#1"])
    looks.search("log", "rtsp://me:***@door")
    assert looks.found == {}
    looks.search("log", "rtsp://me:ge%2Fheim%231@door")
    looks.search("status", "why: ge/heim#1")
    assert looks.found == {"log": 1, "status": 1}
    assert looks.searched == {"log": 2, "status": 1}


def proof() -> FaultProof:
    found = FaultProof(
        4,
        1,
        2,
        "compact",
        [Result("cut:fin", "c3", 10, 20, 0.5, 0.5, 1.5)],
        [Others(99.0, 100.0, 0.1)],
        wrong_told_s=1.0,
    )
    found.samples, found.said, found.loads = [SAMPLE, SAMPLE], ["camgraph: camera wrong: not a frame"], [1.0]
    return found


def test_a_proof_without_a_problem() -> None:
    assert proof().problems == []
    assert "| cut:fin | 1 | lost | 0.5 |  | 1.5 | 99.0 | 100.0 |" in report(proof())


def test_whatever_is_wrong_is_a_problem() -> None:
    found = proof()
    found.results[0].problems.append("told late")
    found.others = [Others(90.0, 94.9, 0.1)]
    found.wrong_told_s = None
    found.grown, found.disclosed, found.died, found.left = ["threads"], {"log": 1}, ["infer.0"], ["segment"]
    found.said, found.unpaired = [], ["a: 2 losses"]
    assert len(found.problems) == 10


def test_one_that_breaks_off_says_so_and_what_it_had_found() -> None:
    found = proof()
    found.others, found.broke = [], "all cameras after the faults: not within 120 s"
    found.results[0].problems.append("not back")
    assert len(found.problems) == 2


def test_on_a_machine_that_works_for_others_what_was_passed_over_is_no_problem_and_the_page_says_so() -> None:
    found = proof()
    found.others = [Others(80.0, 99.0, 0.7)]
    assert found.problems == []
    assert "| 1.5 | 80.0 * | 99.0 |" in report(found)
    found.others, found.results = found.others * 2, [*found.results, Result("cut:fin", "c4", 30, 40, excused=["late"])]
    assert "| cut:fin | 1 + 1 |" in report(found)
    found.results.pop()
    found.others = [Others(80.0, 90.0, 0.7)]
    assert len(found.problems) == 1
