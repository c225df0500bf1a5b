"""What nobody thought of: `check` answers for whatever it is handed. `tools.lab.proofs.fuzz_check` tries 100,000."""

from __future__ import annotations

from pathlib import Path

import pytest

from camgraph.tools.lab.proofs.fuzz_check import GRAPH, RULES, Case, case_of, check_case, make_folder, try_cases

pytestmark = [pytest.mark.slow, pytest.mark.processes]


def test_what_the_cases_are_made_of_is_right(tmp_path: Path) -> None:
    make_folder(tmp_path)
    assert check_case(Case(GRAPH, RULES), tmp_path) == "right"


def test_a_case_is_known_by_its_number() -> None:
    assert case_of(3, 17) == case_of(3, 17) != case_of(4, 17)


def test_broken_graphs_rules_and_settings_are_answered(tmp_path: Path) -> None:
    make_folder(tmp_path)
    # How long an answer takes says nothing on a machine that is busy: `make prove` looks at that.
    tried = try_cases(1, range(250), tmp_path, limit_s=60)
    assert tried.faults == tried.late == []
    assert tried.answers["mistakes"] > 150
    assert tried.answers["right"] > 5
