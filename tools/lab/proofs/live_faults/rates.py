"""The effect of a fault on the others: their frames that came out of all stages, over their rate before. Pure.

A frame belongs to the time at which it was filmed, so it does not matter when it was read here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from camgraph.tools.lab.proofs.live_faults.record import CameraStatus, Record
from camgraph.tools.lab.proofs.live_faults.trial import Result
from camgraph.tools.lab.proofs.trials.frames import Seen
from camgraph.tools.measuring.load import Load, load_of, why_not_judged
from camgraph.tools.measuring.processor_time import between

LEAST_S = 10.0
"""The shortest window: one frame more or less at its ends is then 1 %."""


@dataclass(frozen=True, slots=True)
class Base:
    """Before any fault: each camera's frames a second that came out, and how busy the machine was."""

    fps: Mapping[str, float]
    load: Load


@dataclass(frozen=True, slots=True)
class Others:
    """The lowest figures of any witness around one fault, in percent.

    ``rate``: its frames that came out, of as many as before any fault. ``accounted``: with those that were counted as
    passed over for a newer one; what is missing there is lost, and nobody said so. ``not_judged``: why ``rate`` says
    nothing, "" if it does.
    """

    rate: float
    accounted: float
    load: Load
    not_judged: str = ""


def base_of(record: Record, cameras: Collection[str], begin_s: float, end_s: float) -> Base:
    """Of these cameras between two moments in which nothing is done to them."""
    seconds = end_s - begin_s
    fps = {
        name: sum(begin_s <= seen.filmed_s < end_s for seen in record.frames[name]) / seconds
        for name in sorted(cameras)
    }
    return Base(fps, load_of(*between(record.work, begin_s, end_s)))


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
    return min(100.0, 100 * came / max(1, int((end_s - begin_s) * fps)))


def witnesses(
    window_s: tuple[float, float], results: Sequence[Result], cameras: Collection[str], margin_s: float = 1.0
) -> set[str]:
    """The cameras to which nothing was done meanwhile."""
    begin_s, end_s = window_s
    ill = {one.camera for one in results if one.from_s < end_s + margin_s and one.until_s > begin_s - margin_s}
    return set(cameras) - ill


def passed_over(looks: Sequence[CameraStatus], begin_s: float, end_s: float) -> int:
    """How many frames of a camera a newer one replaced meanwhile, or shortly before or after."""
    counts = [(one.at_s, one.drops.get("queue_full", 0)) for one in looks]
    before = max((n for at_s, n in counts if at_s <= begin_s), default=0)
    return next((n for at_s, n in counts if at_s >= end_s), counts[-1][1]) - before


def others_of(
    result: Result, results: Sequence[Result], record: Record, base: Base, *, cameras: Collection[str], fps: float
) -> Others:
    """Around one fault. ``fps``: what the cameras film, also those of which no rate before is known.

    One of ``cameras`` must have no fault at all.
    """
    begin_s, end_s = window(result, record.well_s)
    rates, accounted = [], []
    for name in witnesses((begin_s, end_s), results, cameras):
        rates.append(percent(record.frames[name], begin_s, end_s, base.fps.get(name, fps)))
        over = passed_over(record.history[name], begin_s, end_s)
        came = percent(record.frames[name], begin_s, end_s, fps)
        accounted.append(min(100.0, came + 100 * over / int((end_s - begin_s) * fps)))
    load = load_of(*between(record.work, begin_s, end_s))
    return Others(min(rates), min(accounted), load, why_not_judged(base.load, load))


def hurt(results: Sequence[Result], record: Record, cameras: Collection[str], margin_s: float = 1.0) -> list[str]:
    """Cameras that were reported away while nothing was done to them, each in words."""
    found = []
    for name in sorted(cameras):
        own = [one for one in results if one.camera == name]
        # Before the fault of one that was absent at the start has ended, it is away because of it.
        since_s = max([record.well_s, *(one.until_s for one in own if one.at_start)])
        for reported in record.away(name, since_s):
            if not any(one.from_s <= reported.at_s <= one.until_s + margin_s for one in own):
                found.append(f"{name} was {reported.state} while nothing was done to it")
    return found
