"""The page says what was found, whatever that is."""

from __future__ import annotations

from dataclasses import replace

from camgraph.tools.lab.proofs.live_faults.proof import FaultProof
from camgraph.tools.lab.proofs.live_faults.rates import Others
from camgraph.tools.lab.proofs.live_faults.report import lowest_rate, report
from camgraph.tools.lab.proofs.live_faults.trial import Result
from camgraph.tools.measuring.load import Load
from camgraph.tools.measuring.processes import Sample

BUSY = Others(80.0, 99.0, Load(0.9, 0.9, 2), "other processes took 0.90 of 2 cores")


def test_a_good_proof(proof: FaultProof) -> None:
    page = report(proof)
    assert "**All of this is proven.**" in page
    assert "| cut:fin | 1 | lost | 0.5 |  | 1.5 | 99.0 | 100.0 |" in page
    assert "9.8 to 10.0 frames/s" in page
    assert "Other processes took 0.10 of" in page
    assert "answer:401 10 s, answer:404 9 s" in page
    assert "had more of than before" in page
    assert ": nothing." in page
    assert "Processes that died: none." in page
    assert "| before | 1 | 20 | 4 | 0 | 3 | 40 |" in page


def test_what_was_found_stands_where_else_nothing_is_said_to_be(proof: FaultProof, sample: Sample) -> None:
    proof.grown, proof.died, proof.left = ["capture.a: threads 4 -> 5"], ["infer.0: signal 11"], ["segment"]
    proof.unpaired = ["a: 2 losses, events: lost"]
    proof.samples.append(replace(sample, shm_files=9))
    page = report(proof)
    assert "**Not all is proven:**" in page
    assert "- leak: capture.a: threads 4 -> 5" in page
    for found in ("16 MB): capture.a: threads 4 -> 5.", "died: infer.0: signal 11.", "segments): segment.", "2 losses"):
        assert found in page


def test_rates_that_were_not_judged_are_no_figures(proof: FaultProof) -> None:
    assert lowest_rate([BUSY, BUSY]) == "not judged"
    assert lowest_rate([BUSY, *proof.others]) == "99.0 (1 not judged)"
    proof.others, proof.results = [BUSY, BUSY], [*proof.results, Result("cut:fin", "c4", 30, 40, excused=["late"])]
    page = report(proof)
    assert "| cut:fin | 1 | lost | 0.5 |  | 1.5 | not judged | 99.0 |" in page
    assert "while it was late: 1 (these are not in the table)." in page


def test_a_run_that_broke_off_has_a_page_too(proof: FaultProof) -> None:
    proof.others, proof.base, proof.samples, proof.broke = [], None, [], "the start of the graph: not within 120 s"
    page = report(proof)
    assert "- it was not gone through to the end: the start of the graph: not within 120 s" in page
    assert "| fault |" not in page
