"""The set of mutants fits the code: each fault has its place, and each named test is there."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from camgraph.tools.lab.proofs.mutants.__main__ import main
from camgraph.tools.lab.proofs.mutants.mutant import Place, place_of, read_mutants

ROOT = Path(__file__).parents[4]
MUTANTS = read_mutants()


def test_each_mutant_stands_once_in_its_file() -> None:
    wrong = {one.id: place for one in MUTANTS if (place := place_of(one, ROOT)) != Place(one.file)}
    assert wrong == {}, "if code has moved, correct `file` and `find` in tools/lab/proofs/mutants/mutants.yaml"


def test_each_named_test_is_there() -> None:
    missing = []
    for named in {test for one in MUTANTS for test in one.tests}:
        path, _, function = named.partition("::")
        text = (ROOT / path).read_text() if (ROOT / path).is_file() else ""
        if not text or (function and f"def {function.partition('[')[0]}(" not in text):
            missing.append(named)
    assert missing == []


def test_each_named_test_is_run_by_make_test() -> None:
    left_out = []
    for named in {test for one in MUTANTS for test in one.tests}:
        path, _, function = named.partition("::")
        marks = (ROOT / path).read_text().partition(f"def {function.partition('[')[0]}(")[0].rpartition("\n\n")[2]
        if "mark.lab" in marks or path.startswith("tests/tools/lab/"):
            left_out.append(named)
    assert left_out == []


def test_an_unknown_name_is_refused_with_the_areas() -> None:
    result = CliRunner().invoke(main, ["--only", "nothing", "--area", "transport"])
    assert result.exit_code == 2
    assert "no mutant has nothing; the areas are: transport, " in result.output
