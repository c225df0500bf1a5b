"""Keypoints without their trembling: the one-euro filter (Casiez et al., CHI 2012) for each joint of each track.

A low-pass filter whose cutoff rises with the joint's speed: a hand at rest is held still, a hand that strikes passes
nearly as it came. Speeds count in heights of the person a second, so that near and far people are treated alike, and
frames may come at any distance.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]

_REST_HZ = 1.5
"""The cutoff at rest."""
_HZ_A_SPEED = 12.0
"""By so much it rises for each height a second."""
_SPEED_HZ = 2.0
"""The cutoff of the speeds themselves."""
_FORGOTTEN_S = 0.5
"""A track or joint that was not seen for longer begins anew."""
_LEAST_CONFIDENCE = 0.05


class _State(NamedTuple):
    """Of one track: places (K, 2) in pixels, speeds (K, 2) in pixels a second, and when each joint was seen last."""

    places: F64
    speeds: F64
    seen_ns: NDArray[np.int64]


class Smoother:
    """The joints of one camera's tracks."""

    def __init__(self) -> None:
        self._states: dict[int, _State] = {}

    def smoothed(self, time_ns: int, ids: NDArray[np.int64], keypoints: F64, heights: F64) -> F64:
        """``keypoints`` (N, K, 3) of tracks ``ids`` (N,) with smooth places; ``heights`` (N,) in pixels.

        Confidences stay as they are, and so do joints that are unknown: of no confidence, or at no finite place.
        """
        self._forget(time_ns)
        if not len(ids):
            return keypoints
        places, known = keypoints[:, :, :2], keypoints[:, :, 2] >= _LEAST_CONFIDENCE
        finite = np.isfinite(places)
        if not finite.all():
            known &= finite.all(axis=2)
        before = [self._state(int(one), points) for one, points in zip(ids, places, strict=True)]
        last, speeds, seen_ns = (np.stack(parts) for parts in zip(*before, strict=True))
        dt_s = np.where(seen_ns < 0, np.inf, (time_ns - seen_ns) / 1e9)
        goes_on = known & (dt_s > 0) & (dt_s <= _FORGOTTEN_S)
        dt_s = np.where(goes_on, dt_s, 1.0)[:, :, None]
        fresh = (places - last) / dt_s
        speeds = np.where(goes_on[:, :, None], speeds + _gain(_SPEED_HZ, dt_s) * (fresh - speeds), 0.0)
        fast = np.linalg.norm(speeds, axis=2, keepdims=True) / heights[:, None, None]
        step = _gain(_REST_HZ + _HZ_A_SPEED * fast, dt_s) * (places - last)
        smooth = np.where(goes_on[:, :, None], last + step, places)
        seen_ns = np.where(known, time_ns, seen_ns)
        kept = np.where(known[:, :, None], smooth, last)
        for row, one in enumerate(ids.tolist()):
            self._states[one] = _State(kept[row], speeds[row], seen_ns[row])
        return np.concatenate((smooth, keypoints[:, :, 2:]), axis=2)

    def _state(self, track: int, places: F64) -> _State:
        known = self._states.get(track)
        if known is None or len(known.places) != len(places):
            nothing = np.zeros_like(places)
            return _State(nothing, nothing, np.full(len(places), -1, np.int64))
        return known

    def _forget(self, time_ns: int) -> None:
        limit = time_ns - _FORGOTTEN_S * 1e9
        for track in [one for one, state in self._states.items() if state.seen_ns.max(initial=-1) < limit]:
            del self._states[track]


def _gain(cutoff_hz: F64 | float, dt_s: F64) -> F64:
    """The part of the way to a new value that a low-pass filter goes in ``dt_s``."""
    return np.asarray(1 - np.exp(-2 * np.pi * cutoff_hz * dt_s))
