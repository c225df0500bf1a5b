"""Which tests of the lab `make test` runs: a sample. `make lab` runs all."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent
SAMPLE = (
    "test_",  # the frame; each command is imported and answers `--help`, each figure has its place on a page
    "reference/",  # docs/reference, and that counters and options of the product are declared
    "proofs/test_mutants.py",  # the list of faults fits the code
    "proofs/test_fuzz_rules.py",  # promises of the product, in small: any file of rules has an answer,
    "proofs/test_fuzz_stores.py",  # any damaged file of a run is gone on with,
    "benchmarks/cost_curves/test_hops.py",  # and a picture that was made in a slot is not copied
)
"""How the paths of these tests begin."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark all other tests of this folder as `lab`."""
    for item in items:
        if item.path.is_relative_to(HERE) and not str(item.path.relative_to(HERE)).startswith(SAMPLE):
            item.add_marker("lab")
