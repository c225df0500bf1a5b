"""What the proof of a stuck model counts as too late."""

from __future__ import annotations

import pytest

from camgraph.tools.lab.proofs.stuck_model import RED_S, Found


@pytest.mark.parametrize(("red_s", "is_wrong"), [(RED_S, False), (RED_S + 0.1, True)])
def test_too_late_is_wrong(red_s: float, is_wrong: bool) -> None:
    found = Found()
    found.note("frozen", 5.0, 1.0)
    found.note("frozen", red_s, 1.0)
    assert found.wrong == [f"frozen: noticed after {red_s:.1f} s"] * is_wrong
    [row] = found.rows()
    assert row.startswith("| frozen | ")
