"""What becomes of mutants, on a project of a few lines: caught, not caught, moved, or without a place."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from camgraph.tools.lab.proofs.mutants.mutant import Mutant
from camgraph.tools.lab.proofs.mutants.report import report
from camgraph.tools.lab.proofs.mutants.trial import prove

pytestmark = pytest.mark.slow

PRICES = """\
def total(prices):
    return sum(prices)


def is_free(price):
    return price <= 0
"""
TESTS = """\
from shop.prices import is_free, total


def test_total():
    assert total([1, 2]) == 3


def test_free():
    assert is_free(-1)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A checkout with a package and its tests, of which nothing has been committed."""
    for name, text in {"shop/__init__.py": "", "shop/prices.py": PRICES, "tests/test_prices.py": TESTS}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    return tmp_path


def mutant(name: str, find: str, replace: str, test: str, file: str = "shop/prices.py") -> Mutant:
    return Mutant(name, "shop", "Something is too cheap.", file, find, replace, (f"tests/test_prices.py::{test}",))


def test_what_becomes_of_mutants(project: Path) -> None:
    proof = prove(
        project,
        [
            mutant("caught", "sum(prices)", "sum(prices[1:])", "test_total"),
            mutant("moved", "sum(prices)", "max(prices)", "test_total", file="shop/old.py"),
            mutant("not-caught", "price <= 0", "price < 0", "test_free"),
            mutant("gone", "price == 0", "price < 0", "test_free"),
            mutant("twice", "price", "cost", "test_free"),
            mutant("no-program", "return price <= 0", "return price <=", "test_free"),
        ],
    )
    assert {one.mutant.id: one.caught_by for one in proof.tried if one.caught_by} == dict.fromkeys(
        ["caught", "moved"], "tests/test_prices.py::test_total"
    )
    not_caught, gone, twice, no_program = proof.wrong
    assert not_caught == "not-caught: NOT CAUGHT: its tests pass"
    assert gone.startswith("gone: its text stands in no module any more (it was in shop/prices.py)")
    assert twice.startswith("twice: its text stands 4 times in shop/prices.py, expected once")
    assert no_program.startswith("no-program: its tests did not run (status ")
    assert "| not-caught | shop | Something is too cheap. | **NOT CAUGHT** |" in report(proof)
    assert (project / "shop/prices.py").read_text() == PRICES


@pytest.mark.parametrize(
    ("tests", "why"),
    [
        ("def test_other():\n    pass\n", "there is no test tests/test_prices.py::test_total"),
        ("def test_total():\n    assert 0\n", "without a mutant, tests/test_prices.py::test_total does not pass"),
    ],
    ids=["missing", "fails"],
)
def test_nothing_is_tried_while_a_test_is_missing_or_fails(project: Path, tests: str, why: str) -> None:
    (project / "tests/test_prices.py").write_text(tests)
    proof = prove(project, [mutant("caught", "sum(prices)", "sum(prices[1:])", "test_total")])
    assert (proof.tried, proof.wrong) == ([], [why])
