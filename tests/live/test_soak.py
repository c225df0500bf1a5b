"""A soak in small: faults and a killed process, and nothing that grows.

`tools.lab.proofs.soak` is the large version.
"""

from __future__ import annotations

import pytest

from camgraph.tools.lab.proofs.soak import faults_of, report
from camgraph.tools.lab.proofs.trials.flatness import Bound
from camgraph.tools.lab.proofs.trials.soaking import Plan, soak
from camgraph.tools.lab.proofs.trials.verdict import Bounds

SHORT = Bounds(memory=Bound(0.25, 10), total=Bound(0.1, 40), threads=Bound(0.05, 4), descriptors=Bound(0.05, 12))
"""In less than a minute, memory is still warming up, and one death is many samples."""


@pytest.mark.lab
def test_a_soaked_run_stays_as_it_is_and_loses_no_event() -> None:
    soaked = soak(Plan(30.0, cameras=4, seed=2, fault_s=2.5, kill_s=9.0, sample_s=1.0))
    verdict, faults = faults_of(soaked, SHORT)
    assert faults == []
    assert sum(soaked.killed.values()) == 3
    assert len(soaked.faults) > 5
    assert soaked.delivered.committed > 20
    assert "| c0 |" in report(soaked, verdict, faults)
