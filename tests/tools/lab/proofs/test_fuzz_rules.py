"""Files of rules that nobody would write: `tools.lab.proofs.fuzz_rules` tries 100,000."""

from __future__ import annotations

import pytest

from camgraph.tools.lab.proofs.fuzz_check import confirm_late, try_each
from camgraph.tools.lab.proofs.fuzz_rules import answer_to, case_of, files

pytestmark = pytest.mark.slow


def test_the_files_that_are_changed_are_right() -> None:
    assert len(files()) > 10
    assert {answer_to(text) for text in files()} == {"right"}


def test_a_case_is_known_by_its_number() -> None:
    assert case_of(3, 17) == case_of(3, 17) != case_of(4, 17)


def test_any_file_of_rules_is_answered_and_judged_by() -> None:
    # How long an answer takes says nothing on a machine that is busy: `make prove` looks at that.
    tried = try_each(range(150), lambda number: answer_to(case_of(1, number)), limit_s=60)
    assert tried.faults == tried.late == []
    assert tried.answers["wrong in part"] > 50
    assert tried.answers["right"] > 0


def test_a_crash_is_a_fault_with_its_number_and_place() -> None:
    def crash(number: int) -> str:
        return "right" if number else str(1 / number)

    tried = try_each(range(2), crash, limit_s=60)
    assert (tried.answers["right"], len(tried.faults)) == (1, 1)
    assert tried.faults[0].startswith("case 0: ZeroDivisionError at test_fuzz_rules.py:")


def test_a_late_answer_is_a_fault_if_it_is_late_again() -> None:
    tried = try_each(range(3), lambda _: "right", limit_s=0)
    assert (tried.faults, tried.late) == ([], [0, 1, 2])
    confirm_late(tried, lambda number: try_each([number], lambda _: "right", limit_s=0 if number == 1 else 60))
    assert tried.faults == ["case 1: no answer within the limit, twice"]
