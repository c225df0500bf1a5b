"""What of a run is a problem, and what could not be judged."""

from __future__ import annotations

from camgraph.tools.lab.proofs.live_faults.proof import FaultProof
from camgraph.tools.lab.proofs.live_faults.rates import Others
from camgraph.tools.measuring.load import Load

QUIET = Load(0.9, 0.1, 2)


def test_a_proof_without_a_problem(proof: FaultProof) -> None:
    assert proof.problems == []
    assert proof.not_judged == []


def test_whatever_is_wrong_is_a_problem(proof: FaultProof) -> None:
    proof.results[0].problems.append("told late")
    proof.others = [Others(90.0, 94.9, QUIET)]
    proof.wrong_reported_s = None
    proof.grown, proof.disclosed, proof.died, proof.left = ["threads"], {"log": 1}, ["infer.0"], ["segment"]
    proof.problems_reported, proof.unpaired, proof.hurt = (
        [],
        ["a: 2 losses"],
        ["b was lost while nothing was done to it"],
    )
    assert len(proof.problems) == 11


def test_a_slowdown_on_a_quiet_machine_is_a_problem(proof: FaultProof) -> None:
    proof.others = [Others(94.0, 100.0, QUIET)]
    assert proof.problems == ["cut:fin on c3: another camera had 94.0 % of its rate before"]


def test_one_that_breaks_off_says_so_and_what_it_had_found(proof: FaultProof) -> None:
    proof.others, proof.broke = [], "all cameras after the faults: not within 120 s"
    proof.results[0].problems.append("not back")
    assert len(proof.problems) == 2


def test_rates_on_a_busy_machine_are_not_judged(proof: FaultProof) -> None:
    proof.others = [Others(80.0, 99.0, Load(0.9, 0.9, 2), "other processes took 0.90 of 2 cores")]
    assert proof.problems == []
    assert proof.not_judged == [
        "the others' rate was not judged around 1 of 1 faults: other processes took 0.90 of 2 cores"
    ]
    proof.others = [Others(80.0, 90.0, Load(0.9, 0.9, 2), "other processes took 0.90 of 2 cores")]
    assert len(proof.problems) == 1, "what is lost and not counted is a problem on any machine"
