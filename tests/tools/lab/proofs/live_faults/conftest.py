"""Samples and results made by hand."""

from __future__ import annotations

import pytest

from camgraph.tools.lab.proofs.live_faults.proof import FaultProof
from camgraph.tools.lab.proofs.live_faults.rates import Base, Others
from camgraph.tools.lab.proofs.live_faults.trial import Result
from camgraph.tools.measuring.load import Load
from camgraph.tools.measuring.processes import Member, Sample
from camgraph.tools.measuring.processor_time import CpuTime

SAME = {"socket:[N]": 18, "/dev/null": 2}
QUIET = Load(0.9, 0.1, 2)


@pytest.fixture
def member() -> Member:
    return Member(5, "capture.a", 90_000, 40_000, 4, SAME)


@pytest.fixture
def sample(member: Member) -> Sample:
    return Sample(0.0, (member,), 5_000_000, 3)


@pytest.fixture
def proof(sample: Sample) -> FaultProof:
    """One without a problem."""
    found = FaultProof(4, 1, 2, "compact", wrong_reported_s=1.0)
    found.results = [Result("cut:fin", "c3", 10, 20, 0.5, 0.5, 1.5)]
    found.base = Base({"c3": 10.0, "c4": 9.8}, QUIET)
    found.others = [Others(99.0, 100.0, QUIET)]
    found.samples, found.problems_reported = [sample, sample], ["camgraph: camera wrong: not a frame"]
    found.work = [CpuTime(0, 0, 0), CpuTime(10, 11, 10)]
    return found
