"""A classifier's numbers as probabilities. Pure."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

F32 = NDArray[np.float32]
Activation = Literal["softmax", "sigmoid", "none"]

_TOLERANCE = 1e-2
"""Of the sum of a distribution: fp16 and int8 models round."""


def probabilities(rows: F32, activation: Activation | Literal["auto"]) -> F32:
    """(n, C) numbers of a model -> (n, C) in [0, 1]. ``auto`` looks at each row by itself, so that a result does not
    depend on its batch.
    """
    if activation == "none":
        return np.clip(rows, 0, 1)
    if activation == "sigmoid":
        return np.asarray(0.5 * (1 + np.tanh(0.5 * rows)), np.float32)
    spread = np.exp(rows - rows.max(axis=1, keepdims=True)) if rows.size else rows
    soft = np.asarray(spread / np.maximum(spread.sum(axis=1, keepdims=True), 1e-12), np.float32)
    if activation == "softmax":
        return soft
    return np.where(are_distributions(rows)[:, None], np.clip(rows, 0, 1), soft)


def are_distributions(rows: F32) -> NDArray[np.bool_]:
    """Which of the rows (n, C) are probabilities of classes that exclude each other: (n,)."""
    return np.asarray((rows >= 0).all(axis=1) & (np.abs(rows.sum(axis=1) - 1) < _TOLERANCE))
