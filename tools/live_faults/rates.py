"""What the others noticed of a fault: their frames that came out, over those that should have. Pure.

A frame belongs to the time at which it was filmed, so it does not matter when it was read here.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from tools.live_faults.record import CameraStatus, Record, Seen, Work
from tools.live_faults.trial import Result

LEAST_S = 10.0
"""Of a window: a frame more or less at its ends is then 1 %."""
MOST_STRANGERS = 0.5
"""Of the machine: where others work more, everything is late, and frames are passed over, whatever the cameras do."""


def window(result: Result, since_s: float) -> tuple[float, float]:
    """A second before the fault until after its end, at least `LEAST_S`, and nothing before ``since_s``."""
    middle_s = (result.from_s + result.until_s) / 2
    begin_s = max(since_s, min(result.from_s - 1, middle_s - LEAST_S / 2))
    return begin_s, max(result.until_s, begin_s + LEAST_S)


def percent(frames: Sequence[Seen], begin_s: float, end_s: float, fps: float) -> float:
    """Of the frames that were filmed meanwhile, those that came out; ``frames`` in any order of their times.

    A window holds one frame more or less as it happens to lie: the one that this gives too few is not missed.
    """
    came = sum(begin_s <= seen.filmed_s < end_s for seen in frames)
    return min(100.0, 100 * came / int((end_s - begin_s) * fps))


def witnesses(
    window_s: tuple[float, float], results: Sequence[Result], cameras: Collection[str], margin_s: float = 1.0
) -> set[str]:
    """The cameras to which nothing was done meanwhile."""
    begin_s, end_s = window_s
    ill = {one.camera for one in results if one.from_s < end_s + margin_s and one.until_s > begin_s - margin_s}
    return set(cameras) - ill


def strangers_share(work: Sequence[Work], begin_s: float, end_s: float, cores: int) -> float:
    """How much of the machine worked for others than us meanwhile, 0 to 1."""
    inside = [one for one in work if begin_s - 1 <= one.at_s <= end_s + 1]
    first, last = inside[0], inside[-1]
    return (last.strangers_s - first.strangers_s) / max(1e-9, (last.at_s - first.at_s) * cores)


def passed_over(looks: Sequence[CameraStatus], begin_s: float, end_s: float) -> int:
    """Frames of a camera for which a newer one was taken meanwhile, or shortly before or after."""
    counts = [(one.at_s, one.drops.get("queue_full", 0)) for one in looks]
    before = max((n for at_s, n in counts if at_s <= begin_s), default=0)
    return next((n for at_s, n in counts if at_s >= end_s), counts[-1][1]) - before


@dataclass(frozen=True, slots=True)
class Others:
    """What the worst off of the witnesses had of its frames, in percent. ``known``: with those for which a newer one
    was taken, which is counted, and is what happens on a machine that has too much to do. ``strangers``: see above."""

    came: float
    known: float
    strangers: float


def others_of(
    result: Result,
    results: Sequence[Result],
    record: Record,
    cameras: Collection[str],
    *,
    since_s: float,
    fps: float,
    cores: int,
) -> Others:
    """Around one fault. ``since_s``: from then on all ``cameras`` were well, but for what was done to them.

    One camera must have no fault at all.
    """  # fmt: skip
    begin_s, end_s = window(result, since_s)
    came, known = [], []
    for name in witnesses((begin_s, end_s), results, cameras):
        came.append(percent(record.frames[name], begin_s, end_s, fps))
        over = passed_over(record.history[name], begin_s, end_s)
        known.append(min(100.0, came[-1] + 100 * over / int((end_s - begin_s) * fps)))
    return Others(min(came), min(known), strangers_share(record.work, begin_s, end_s, cores))
