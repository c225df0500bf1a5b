"""Each kind of process killed or frozen once under live cameras; `python -m tools.live_kills` is the large version.

How soon is measured there: here the bounds are generous, and what counts is that all comes back, that nothing is left,
and that no event is lost.
"""

from __future__ import annotations

from tools.live_kills import Limits, faults_of, prove
from tools.trials.harm import LIMIT_S, harmed_run

GENEROUS = Limits(back_s=LIMIT_S, gone_s=10.0, rate=0.5)


def test_any_process_may_die_or_freeze_under_live_cameras() -> None:
    with harmed_run(4, hang_s=15.0) as found:
        proof = prove(found, rounds=1, frozen=0, round_s=0.0)
        assert faults_of(proof, GENEROUS) == []


def test_a_frozen_process_is_noticed_and_a_frozen_supervisor_blames_nobody() -> None:
    with harmed_run(2, hang_s=4.0) as found:
        rounds = [found.freeze("capture.c1"), found.freeze("infer.0"), found.freeze_supervisor()]
        assert [fault for one in rounds for fault in one.faults] == []
        assert all(2.0 < one.noticed_s < LIMIT_S for one in rounds[:2])
        _, delivered, left = found.end()
        assert delivered.good, delivered
        assert left == []
