"""What was late may be tried again where other processes had the machine."""

from __future__ import annotations

from dataclasses import replace

import pytest

from camgraph.tools.lab.proofs.live_faults.cases import Case
from camgraph.tools.lab.proofs.live_faults.rounds import may_try_again
from camgraph.tools.lab.proofs.live_faults.trial import Result
from camgraph.tools.measuring.load import Load

CASE = Case("cut:fin", lambda _: None, states=("lost",))


@pytest.mark.parametrize(
    ("problems", "case", "other", "times", "again"),
    [
        ([], CASE, 1.2, 0, True),
        ([], CASE, 1.2, 1, True),
        ([], CASE, 1.2, 2, False),
        ([], CASE, 0.8, 0, False),
        (["never back"], CASE, 1.2, 0, False),
        ([], replace(CASE, at_start=True), 1.2, 0, False),
    ],
)
def test_only_what_was_late_on_a_busy_machine_is_tried_again(
    problems: list[str], case: Case, other: float, times: int, again: bool
) -> None:
    result = Result("cut:fin", "a", problems=problems, late=["back after 9 s"])
    assert may_try_again(result, case, Load(0.5, other, 2), times) is again
