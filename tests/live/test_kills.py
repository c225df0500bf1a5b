"""Each kind of process killed or frozen once under live cameras; `tools.lab.proofs.live_kills` is the large version.

How soon, and at what rate, is measured there. Here the bounds are generous, for the machine may be busy with other
things; what must not be is a process or a camera that does not come back, another camera that is lost or goes without
frames for long, something left over, and a lost event.
"""

from __future__ import annotations

import pytest

from camgraph.tools.lab.proofs.live_kills import Limits, faults_of, prove, report
from camgraph.tools.lab.proofs.trials.harm import LIMIT_S, harmed_run

GENEROUS = Limits(back_s=LIMIT_S, gone_s=10.0, rate=0.3, silent_s=10.0, other=1.0)


@pytest.mark.lab
def test_any_process_may_die_under_live_cameras() -> None:
    with harmed_run(4, hang_s=15.0) as run:
        proof = prove(run, rounds=1, frozen=0, round_s=3.0, base_s=3.0)
    assert faults_of(proof, GENEROUS) == []
    assert proof.delivered.committed > 100
    assert "| capture | 1 |" in report(proof, GENEROUS)


@pytest.mark.lab
def test_frozen_process_and_frozen_supervisor() -> None:
    with harmed_run(2, hang_s=4.0) as run:
        rounds = [run.freeze("capture.c1"), run.freeze("infer.0"), run.freeze_supervisor()]
        assert [fault for one in rounds for fault in one.faults] == []
        assert all(2.0 < one.noticed_s < LIMIT_S for one in rounds[:2])
        assert rounds[0].silent_s < 10.0, "the other camera had no frames for long"
        _, delivered, left = run.end()
        assert delivered.good, delivered
        assert left == []
