"""The arithmetic of the benchmark beside others, on figures made by hand."""

from __future__ import annotations

import pytest

from camgraph.tools.lab.benchmarks.peers.contestants import BARE, LIGHT
from camgraph.tools.lab.benchmarks.peers.figures import ULTRALYTICS, Mark, Run, disagreeing, marks_of, rows_of, run_of
from camgraph.tools.lab.benchmarks.peers.job import Answer, Job
from camgraph.tools.lab.benchmarks.peers.meter import Watched
from camgraph.tools.lab.benchmarks.peers.page import tables

JOB = Job("model.onnx", ["a.mp4", "a.mp4"], 50, (640, 640), 0.3, 0.5, 2)
SEPARATE, COMPACT, LOOP = "camgraph, separate", "camgraph, compact", "OpenCV + ONNX Runtime loop"


def run(name: str, seconds: float, *, number: int = 1, cpu_s: float = 1.0, frames: int = 100, people: int = 7) -> Run:
    return Run(name, 2, number, 100, frames, (people, people), seconds, cpu_s, 100.0, None, None)


def test_a_run_is_what_was_said_and_what_was_seen() -> None:
    answer = Answer(10 * 10**9, 14 * 10**9, [50, 49], [7, 8], [float(n) for n in range(100)])
    looks = [(0.0, 0.0), (8.0, 2.0), (12.0, 6.0), (16.0, 8.0), (20.0, 8.0)]
    one = run_of("x", 1, JOB, answer, Watched("", looks, [(9.0, 321.0), (12.0, 320.0)]))
    assert (one.asked, one.frames, one.people, one.seconds, one.fps) == (100, 99, (7, 8), 4.0, 24.75)
    assert one.cpu_s == 7.0 - 4.0
    assert (one.peak_mb, one.p50_ms, one.p95_ms) == (321.0, 50.0, 95.0)


def test_cpu_time_outside_samples_is_the_nearest() -> None:
    watched = Watched("", [(1.0, 3.0), (2.0, 4.0)], [])
    assert watched.cpu_between(0.0, 9.0) == 1.0


def test_ratios_are_taken_within_a_round_and_medians_over_rounds() -> None:
    times = {1: (2.0, 4.0), 2: (4.0, 5.0), 3: (2.0, 2.0)}
    runs = [
        one for n, (bare, ours) in times.items() for one in (run(BARE, bare, number=n), run(SEPARATE, ours, number=n))
    ]
    bare, ours = rows_of(runs, cores=2)
    assert (bare.ratio, bare.fps) == (1.0, 50.0)
    assert (ours.ratio, ours.lowest, ours.highest) == (0.8, 0.5, 1.0)
    assert (ours.fps, ours.busy, ours.cpu_ms) == (25.0, 1 / 4 / 2, 10.0)


def test_marks_compare_faster_placement_with_best_peer() -> None:
    runs = [
        run(BARE, 2.0), run(SEPARATE, 4.0), run(COMPACT, 2.5, cpu_s=4.9), run(LIGHT, 1.25),
        run(LOOP, 5.0), run(ULTRALYTICS, 4.0),
    ]  # fmt: skip
    marks = marks_of(runs, rows_of(runs, cores=2), 2)
    assert [mark.got for mark in marks] == pytest.approx([0.8, 0.98, 1.6, 3.2, 1.0])
    assert [mark.verdict for mark in marks] == ["not held", "held", "held", "held", "not held"]


def test_who_is_not_there_leaves_marks_unmeasured() -> None:
    runs = [run(SEPARATE, 4.0)]
    marks = marks_of(runs, rows_of(runs, cores=2), 2)
    assert [mark.verdict for mark in marks] == ["not measured", "not held", *["not measured"] * 3]
    assert {mark.verdict for mark in marks_of(runs, rows_of(runs, cores=2), 4)} == {"not measured"}


@pytest.mark.parametrize(("got", "verdict"), [(0.5, "held"), (0.51, "not held")])
def test_some_marks_are_upper_bounds(got: float, verdict: str) -> None:
    assert Mark("memory", "<=", 0.5, got).verdict == verdict


def test_a_peer_that_does_less_is_named() -> None:
    runs = [run(BARE, 1.0, people=0), run(SEPARATE, 2.0), run(LOOP, 2.0, frames=98), run(ULTRALYTICS, 2.0, people=9)]
    assert disagreeing(rows_of(runs, cores=2)) == [
        f"{LOOP}, cameras 2: 2 frames came to no result.",
        f"{ULTRALYTICS}, cameras 2: people 9 a clip, ours 7.",
    ]


def test_what_nobody_saw_is_a_dash_and_no_mark() -> None:
    answer = Answer(10 * 10**9, 11 * 10**9, [50, 50], [7, 7])
    runs = [run_of(name, 1, JOB, answer, Watched("", [(9.9, 1.0)], [(9.9, 0.2)])) for name in (SEPARATE, ULTRALYTICS)]
    rows = rows_of(runs, cores=2)
    assert {(row.busy, row.cpu_ms, row.peak_mb) for row in rows} == {(None, None, None)}
    marks = marks_of(runs, rows, 2)
    assert [mark.verdict for mark in marks] == [*["not measured"] * 2, "not held", *["not measured"] * 2]
    assert "| 2 | camgraph, separate | - | - | 100.0 | - | - | - | - | 7 | 0 |" in tables(rows, marks, 2, {})


def test_the_page_has_a_line_for_each_and_says_who_is_missing() -> None:
    runs = [run(BARE, 2.0), run(SEPARATE, 2.5)]
    rows = rows_of(runs, cores=2)
    page = tables(rows, marks_of(runs, rows, 2), 2, {"Roboflow": "no network"})
    assert "| 2 | bare loop | 1.000 | 1.000, 1.000 | 50.0 | 10.0 | 0.25 | 100 | - | - | 0 |" in page
    assert "| 2 | camgraph, separate | 0.800 | 0.800, 0.800 | 40.0 | 10.0 | 0.20 | 100 | - | 7 | 0 |" in page
    assert "- Roboflow did not take part: no network" in page
    assert "| throughput / bare loop | >= 0.93 | 0.800 | not held |" in page
    assert "| total memory, ours / Ultralytics | <= 0.5 | - | not measured |" in page


@pytest.mark.parametrize(
    ("output", "why"),
    [
        ("starting\n", "no answer"),
        ('{"begun_ns": 1}', "answer is none"),
        ('{"begun_ns": 5, "ended_ns": 5, "frames": [], "people": []}', "before it began"),
    ],
)
def test_what_is_no_answer_is_refused(output: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Answer.from_output(output)


def test_an_answer_is_the_last_object_among_other_lines() -> None:
    answer = Answer(1, 2, [3], [4], [5.0], {"onnxruntime": "1"})
    assert Answer.from_output(f"hello\n{{}} not this\n{answer.to_json()}\nbye\n") == answer
    assert Job.from_json(JOB.to_json()) == JOB
