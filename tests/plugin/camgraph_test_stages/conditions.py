"""Conditions in Python for tests: some that are right, and some of each kind that is not."""

from __future__ import annotations

import os
import time
from typing import Any, Literal

import numpy as np

from camgraph.stages.rules.conditions import Answer, Degrees, Joint, Past, Pixels, Seconds, condition


@condition(past_s=2)
def above_head(past: Past, joint: Joint, by: Pixels = 0.0, share: float = 1.0) -> Answer:
    """A joint is above the nose in this share of the known frames of the last two seconds."""
    apart = past.joint("nose")[:, 1] - past.joint(joint)[:, 1]
    known = apart[np.isfinite(apart)]
    if not len(known):
        return Answer(None)
    found = float((known > by).mean())
    return Answer(found >= share, share=found, frames=len(known))


@condition(past_s=1, gives="length")
def moved(past: Past, along: Literal["x", "y"] = "x") -> float:
    """How far the box has gone."""
    at = past.boxes[:, "xy".index(along)]
    return float(at.max() - at.min())


@condition(past_s=0.5, gives="number", every_s=1)
def counts(past: Past, over: Seconds = 0.5, turn: Degrees = 0.0) -> float:
    """How many frames it has seen."""
    return len(past)


@condition(past_s=1)
def fails(past: Past) -> bool:
    return bool(1 / (len(past) - len(past)))


@condition(past_s=1)
def exits(past: Past) -> bool:
    raise SystemExit("done")


@condition(past_s=1)
def no_truth(past: Past) -> Any:
    return "yes"


@condition(past_s=1)
def reports_nonsense(past: Past) -> Answer:
    return Answer(True, image=[1, 2])  # type: ignore[arg-type]


@condition(past_s=1)
def writes_the_past(past: Past) -> bool:
    past.boxes[:] = 0
    return True


@condition(past_s=1)
def dawdles(past: Past) -> bool:
    time.sleep(0.15)
    return True


@condition(past_s=1)
def ends_the_process(past: Past) -> bool:
    os._exit(3)


def undeclared(past: Past) -> bool:
    return True
