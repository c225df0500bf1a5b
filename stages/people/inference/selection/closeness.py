"""How near the outputs of one provider are to those of another, for the same input. Pure.

    difference of a channel = root mean square of (provider - CPU) / standard deviation of the CPU's values in it
    channel                 = a row of YOLO's heads, a joint's heat map: one place of axis 1 or of the last axis,
                              whichever is shorter; all of an output if it would have fewer than 16 values

Each provider rounds in its own way, and some calculate in 16 bits, so nothing is equal. Measured on pictures of patches
with OpenVINO against ONNX Runtime's CPU, four pose and detection models:

    float32                           0.0001 at most in any channel
    bf16                              0.25 at most in the typical (median) channel of an output, 0.59 in the worst
    models in eight bits              0.17 and 0.25
    zeros, or the mean everywhere     1 or more
    values that have nothing to do with the CPU's    1.4

Models that choose (NMS, top k, arg max) may choose otherwise after the smallest difference. So each channel's
distribution is compared, and the number of rows may differ if the model leaves it open.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from camgraph.pipeline.messages import Array

MOST_TYPICAL = 0.4
MOST_ANYWHERE = 0.9
_CHOOSING = frozenset({"NonMaxSuppression", "TopK", "ArgMax", "ArgMin", "NonZero", "Unique"})
_FEWEST = 16
"""Values of a channel, below which its spread says nothing."""
_QUANTILES = np.linspace(0, 1, 33)
F64 = NDArray[np.float64]


@dataclass(frozen=True)
class Closeness:
    """Differences of the channels of an output: of the one in the middle, and of the worst one."""

    typical: float = 0.0
    worst: float = 0.0

    @property
    def is_near(self) -> bool:
        """Whether the difference may come from rounding."""
        return self.typical <= MOST_TYPICAL and self.worst <= MOST_ANYWHERE


def chooses(operators: Iterable[str]) -> bool:
    """Whether a model with these operators picks some of its values, so that rounding may change which."""
    return not _CHOOSING.isdisjoint(operators)


def worse_numbers(got: Array, expected: Array) -> bool:
    """Whether more of its values are NaN or infinite than of the CPU's."""
    return _broken(got) > _broken(expected)


def _broken(values: Array) -> float:
    return float(np.mean(~np.isfinite(values.astype(np.float64)))) if values.size else 0.0


def closeness(got: Array, expected: Array, *, chosen: bool = False) -> Closeness:
    """Of two outputs of one shape; ``chosen``: the values are picked, and there may be another number of them.

    If the CPU's are no numbers, nothing is compared; if there are too few for a distribution, they are near.
    """
    mine, theirs = _channels(_numbers(expected)), _channels(_numbers(got))
    if chosen:
        if min(mine.shape[1], theirs.shape[1]) < _FEWEST or len(mine) != len(theirs):
            return Closeness()
        mine, theirs = (np.quantile(part, _QUANTILES, axis=1).T for part in (mine, theirs))
    elif mine.size == 0:
        return Closeness()
    apart = np.sqrt(np.mean((theirs - mine) ** 2, axis=1)) / _spread(mine)
    return Closeness(float(np.median(apart)), float(apart.max()))


def _numbers(values: Array) -> F64:
    return np.nan_to_num(values.astype(np.float64), nan=0.0, posinf=0.0, neginf=0.0)


def _channels(values: F64) -> F64:
    """(channels, values of each)"""
    if values.ndim >= 2:
        axis = min(1, values.ndim - 1, key=lambda each: values.shape[each])
        count = values.shape[axis]
        if count and values.size // count >= _FEWEST:
            return np.moveaxis(values, axis, 0).reshape(count, -1)
    return values.reshape(1, -1)


def _spread(channels: F64) -> F64:
    """The scale of each channel; for few values their size. Never less than the resolution of 16 bits.

    That is 1 % of a channel that is nearly constant (bf16: 0.4 %), and a ten millionth of the largest value of all:
    scores below 6e-5 beside boxes of 640 pixels are zero in float16.
    """
    few = channels.shape[1] < _FEWEST
    spread = np.sqrt(np.mean(channels**2, axis=1)) if few else channels.std(axis=1)
    largest = np.abs(channels).max(axis=1)
    return np.asarray(np.maximum(np.maximum(spread, 0.01 * largest), 1e-7 * largest.max() + 1e-12))
