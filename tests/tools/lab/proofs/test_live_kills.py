"""What is made of kills: the faults, what could not be judged, and the page. The kills themselves are in tests/live."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from camgraph.tools.lab.proofs import live_kills
from camgraph.tools.lab.proofs.live_kills import KillProof, Limits, faults_of, not_judged, report
from camgraph.tools.lab.proofs.trials.delivery import Delivered
from camgraph.tools.lab.proofs.trials.rounds import Base, Round, Series
from camgraph.tools.lab.report_page import marks_of
from camgraph.tools.measuring.load import Load
from camgraph.tools.measuring.processor_time import CpuTime

QUIET, BUSY = Load(0.8, 0.1, 2), Load(0.8, 0.9, 2)
LIMITS = Limits()
CAPTURE = Series("capture", [Round("capture.b", 1.0, 4.0, 0.3)], {"a": 0.99}, {"a": 1.0}, QUIET)
LOG = Series("log", [Round("log.0", 1.0, 4.0, 1.2)], {"a": 0.7}, {"a": 0.99}, QUIET)


def good() -> KillProof:
    gone = [Round("supervisor", 5.0, 0.5)]
    problem = "tracks lost its state (signal 9) and began anew"
    base = Base({"a": 10.0, "b": 9.9}, {"a": 10.0, "b": 10.0}, QUIET)
    return KillProof(
        base, [CAPTURE, LOG], [LOG], gone, gone, deaths=3, exit_status=0, problems=[problem],
        delivered=Delivered(2), cpu=[CpuTime(0, 0, 0), CpuTime(20, 20, 16)],
    )  # fmt: skip


def test_a_good_proof_has_no_faults_and_its_page_says_so() -> None:
    assert faults_of(good(), LIMITS) == []
    assert not_judged(good(), LIMITS) == []
    page = report(good(), LIMITS)
    assert "**All of this is proven.**" in page
    assert "| capture | 1 | 1.00 s, 1.00 s | 0.30 s, 0.30 s | 99.0% | 100.0% | 0.10 |" in page
    assert "| log | 1 | 4.00 s, 4.00 s | 1.00 s, 1.00 s | 1.20 s, 1.20 s | all stop | 99.0% | 0.10 |" in page
    assert "Other processes took 0.20 of" in page
    assert "9.9 to 10.0 frames/s" in page
    assert "blamed or started again afterwards: never." in page


def test_a_page_claims_nothing_of_what_was_not_done() -> None:
    proof = good()
    proof.frozen, proof.supervisor_frozen, proof.supervisor_killed, proof.deaths = [], [], [], 2
    page = report(proof, LIMITS)
    assert "Nothing was frozen" in page
    assert "The supervisor was not killed." in page
    assert "blamed" not in page


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"killed": [replace(LOG, rounds=[Round("log.0", 3.5)]), CAPTURE]},
            "log: 1 of 1 were back after more than 3 s, the last after 3.5 s",
        ),
        (
            {"killed": [replace(CAPTURE, processed={"a": 0.9}), LOG]},
            "a had 90.0% of its processed frames",
        ),
        (
            {"killed": [replace(LOG, captured={"a": 0.9}), LOG]},
            "a had 90.0% of its captured frames",
        ),
        ({"killed": [replace(CAPTURE, rounds=[Round("capture.b", 1, 0, 1.6)]), LOG]}, "without frames for up to 1.6 s"),
        ({"killed": [replace(LOG, rounds=[Round("log.0", 1, faults=("log.0: zombies [5]",))]), LOG]}, "zombies"),
        ({"supervisor_killed": [Round("supervisor", 1, 2.5)]}, "2.5 s after the supervisor's death"),
        ({"supervisor_frozen": [Round("supervisor", 1, faults=("blamed others",))]}, "blamed others"),
        ({"deaths": 4}, "3 processes were harmed, and 4 died"),
        ({"delivered": Delivered(2, ("x",), 0, (), 0)}, "1 lost"),
        ({"left": ["process 7"]}, "left over: process 7"),
        ({"problems": ["camera a: gone"]}, "the run says: camera a: gone"),
    ],
)
def test_each_thing_that_is_wrong_is_said(change: dict[str, Any], message: str) -> None:
    proof = good()
    for name, value in change.items():
        setattr(proof, name, value)
    assert message in "; ".join(faults_of(proof, LIMITS))
    assert "**Not all is proven:**" in report(proof, LIMITS)


def test_output_rate_is_not_judged_for_shared_stages() -> None:
    proof = good()
    proof.killed = [CAPTURE, replace(LOG, processed={"a": 0.1}, rounds=[Round("log.0", 1, 0, 2.9)])]
    assert faults_of(proof, LIMITS) == []


@pytest.mark.parametrize("busy", ["before", "meanwhile"])
def test_rates_on_a_busy_machine_are_not_judged(busy: str) -> None:
    proof = good()
    proof.killed = [replace(CAPTURE, processed={"a": 0.5}, load=BUSY if busy == "meanwhile" else QUIET), LOG]
    if busy == "before":
        proof.base = replace(proof.base, load=BUSY)
    assert faults_of(proof, LIMITS) == []
    [first, *_] = not_judged(proof, LIMITS)
    assert first == "not judged: the cameras' rates while " + ("capture" if busy == "meanwhile" else "capture, log") + (
        " was killed: other processes took 0.90 of 2 cores"
    )
    page = report(proof, LIMITS)
    assert "**Not all is proven:**" in page
    assert "| 50.0% * | 100.0% * |" in page
    assert faults_of(proof, Limits(other=1.0)), "but you may judge them"


@pytest.mark.parametrize(("left", "status"), [([], 0), (["process 7"], 1)])
@pytest.mark.processes
def test_the_page_is_written_whatever_came_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: list[str], status: int
) -> None:
    page = tmp_path / "kills.md"
    page.write_text("\n".join(["by hand", *marks_of("proofs.live_kills")]) + "\n")
    proof = good()
    proof.left = left
    monkeypatch.setattr(live_kills, "harmed_run", lambda _: nullcontext())
    monkeypatch.setattr(live_kills, "prove", lambda *_, **__: proof)
    ran = CliRunner().invoke(live_kills.main, ["--rounds", "20", "--report", str(page)])
    assert ran.exit_code == status
    assert ran.output.startswith("about ")
    assert "--rounds 20 " in page.read_text()
    assert ("- left over: process 7" in page.read_text()) is bool(left)
