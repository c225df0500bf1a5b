"""A classifier's numbers as probabilities."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from camgraph.stages.vision.probabilities import probabilities

LOGITS = np.array([[2.0, 1.0, -1.0], [0.0, 0.0, 0.0]], np.float32)


def test_logits_become_a_distribution_and_a_distribution_stays() -> None:
    soft = probabilities(LOGITS, "auto")
    np.testing.assert_allclose(soft, np.exp(LOGITS) / np.exp(LOGITS).sum(1, keepdims=True), rtol=1e-6)
    np.testing.assert_array_equal(probabilities(soft, "auto"), soft)
    np.testing.assert_array_equal(probabilities(soft, "none"), soft)


def test_classes_that_do_not_exclude_each_other() -> None:
    np.testing.assert_allclose(probabilities(LOGITS, "sigmoid"), 1 / (1 + np.exp(-LOGITS)), rtol=1e-5)


@given(st.lists(st.lists(st.floats(-1e4, 1e4, width=32), min_size=3, max_size=3), max_size=5))
@pytest.mark.parametrize("activation", ["auto", "softmax", "sigmoid", "none"])
def test_each_is_a_probability_and_depends_on_its_own_row(activation: str, rows: list[list[float]]) -> None:
    given_ = np.array(rows, np.float32).reshape(-1, 3)
    found = probabilities(given_, activation)  # type: ignore[arg-type]
    assert found.shape == given_.shape
    assert ((found >= 0) & (found <= 1)).all()
    for row, alone in zip(found, given_, strict=True):
        np.testing.assert_array_equal(probabilities(alone[None], activation)[0], row)  # type: ignore[arg-type]
