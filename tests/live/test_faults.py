"""Every fault of the simulator, and two of a server that is not ours, on cameras of one running graph."""

from __future__ import annotations

import pytest

from camgraph.tools.lab.gstreamer import missing_packages
from camgraph.tools.lab.proofs.live_faults.cases import CASES
from camgraph.tools.lab.proofs.live_faults.proof import prove


@pytest.mark.lab
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_faults_are_reported_bounded_and_contained() -> None:
    """One run of one graph for all faults keeps this quick. `FaultProof.problems` lists the conditions."""
    proof = prove(cameras=6, rounds=1, at_once=5, processes="compact", report=lambda _: None, base_s=5.0)
    assert proof.problems == []
    expected = {one.name for case in CASES for one in (case, case.then) if one}
    tried = {result.case for result in proof.results}
    missing = missing_packages()
    assert tried == expected if missing is None else tried == expected - {"the server ends", "the server freezes"}
    assert len(proof.others) == len(proof.results)
    assert proof.others_began_s < 30, "an absent camera has held up the others"
    assert proof.wrong_tries < 25, "cameras lock accounts"
    assert min(proof.searched[place] for place in ("events.jsonl", "run.log", "status", "a command line")) > 5
