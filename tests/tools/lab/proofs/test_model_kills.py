"""How groups of processes that died at once are judged; `tools.lab.proofs.model_kills` does it with real models."""

from __future__ import annotations

import pytest

from camgraph.tools.lab.file_runs import Ran
from camgraph.tools.lab.proofs.model_kills import Killed, judged, report

SAME = Ran(0, [], b"events", {"a": 20}, 20, 0)
TRACKS_LOST = ["tracks lost its state (signal 9) and began anew"]


def ran(
    *processes: str, status: int = 0, problems: tuple[str, ...] = (), events: bytes = b"events", frames: int = 20
) -> Ran:
    return Ran(status, list(problems), events, {"a": frames}, frames, 0, dict.fromkeys(processes, 1.5))


def test_stateless_processes_leave_no_trace() -> None:
    killed = judged(("infer.0", "people.0"), ran("infer.0", "people.0"), SAME)
    assert killed.faults == ()
    assert killed.row == "| infer.0, people.0 | 1.50 s | byte-identical, status 0 |"


@pytest.mark.parametrize(
    ("processes", "found", "fault"),
    [
        (("infer.0",), ran("infer.0", events=b"others"), "infer.0: status 0, events others: []"),
        (("infer.0",), ran("infer.0", status=1), "infer.0: status 1, events the same: []"),
        (("infer.0", "log.0"), ran("infer.0"), "infer.0, log.0: back: infer.0"),
        (("infer.0",), ran("infer.0", frames=19), "infer.0: frames {'a': 19}, expected {'a': 20}"),
        (("tracks.0",), ran("tracks.0", status=1), "tracks.0: status 1, and of what was lost is said: []"),
        (("tracks.0",), ran("tracks.0"), "tracks.0: status 0, and of what was lost is said: []"),
    ],
)
def test_what_should_not_be_is_a_fault(processes: tuple[str, ...], found: Ran, fault: str) -> None:
    assert judged(processes, found, SAME).faults == (fault,)


def test_a_capture_that_died_may_count_frames_again() -> None:
    assert judged(("capture.south", "log.0"), ran("capture.south", "log.0", frames=25), SAME).faults == ()


def test_a_stage_with_a_memory_says_what_it_lost() -> None:
    killed = judged(("tracks.0",), ran("tracks.0", status=1, problems=tuple(TRACKS_LOST), events=b"others"), SAME)
    assert killed.faults == ()
    assert killed.row == f"| tracks.0 | 1.50 s | status 1: {TRACKS_LOST[0]} |"


def test_the_page_says_what_is_not_proven() -> None:
    good, bad = Killed(("a.0",), 1.0, "good"), Killed(("b.0",), 2.0, "bad", ("b.0: not so",))
    assert "**All of this is proven.**" in report("asset:m.onnx", [good], [good])
    page = report("/x/m.onnx", [good], [bad])
    assert page.startswith("## m.onnx\n\n**Not all is proven:**\n\n- b.0: not so\n")
    assert "| b.0 | 2.00 s | bad |" in page
