"""A crowd of people who walk on the spot and raise their hands now and then, as outputs of a YOLO-pose model. Pure."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pipeline.testing import stamp
from stages.messages import Tensor

F32 = NDArray[np.float32]

ANCHORS = 8400
OF_EACH = 8
"""How many overlapping candidates a model has for a person."""
MOST = 100
FPS = 10.0
SIDE = 640
_STEP = SIDE // 10
_HANDS_UP_S = 1.0


def heads(people: int, seq: int) -> F32:
    """(1, 56, 8400): cx, cy, w, h, score, 17 x (x, y, visibility); ``people`` at most 100, on a grid of 10 x 10."""
    random = np.random.default_rng(seq)
    out = np.zeros((1, 56, ANCHORS), np.float32)
    index = np.arange(people)
    centres = np.stack([index % 10 * _STEP + _STEP / 2, index // 10 * _STEP + _STEP / 2], 1)
    each = np.repeat(centres, OF_EACH, axis=0) + random.normal(0, 1.0, (people * OF_EACH, 2))
    columns = slice(0, people * OF_EACH)
    out[0, 0:2, columns] = each.T
    out[0, 2, columns], out[0, 3, columns] = 0.5 * _STEP, 0.9 * _STEP
    out[0, 4, columns] = random.uniform(0.5, 0.95, people * OF_EACH)
    joints = out[0, 5:].reshape(17, 3, ANCHORS)
    joints[:, 0, columns] = each[:, 0]
    joints[:, 1, columns] = each[:, 1] + np.linspace(-0.4, 0.4, 17)[:, None] * _STEP
    if seq / FPS % (2 * _HANDS_UP_S) < _HANDS_UP_S:
        joints[9:11, 1, columns] = each[:, 1] - 0.44 * _STEP
    joints[:, 2, columns] = 0.9
    return out


def tensor(people: int, seq: int) -> Tensor:
    """The model's outputs for frame ``seq`` of a camera of 1280 x 1280 pixels."""
    fit = np.array([[0.5, 0.5, 0.0, 0.0]], np.float32)
    return Tensor(stamp(seq, fps=FPS), {"output0": heads(people, seq)}, fit, (2 * SIDE, 2 * SIDE), (SIDE, SIDE))


def rules(count: int) -> list[dict[str, str]]:
    """This many different rules, about joints, a zone, posture and speed. Only the first comes true again and again."""
    kinds = (
        "left_wrist.y < nose.y - 2.{n:03}h and right_wrist.y < nose.y - 2.{n:03}h",
        "in door and speed < 0.2{n:03}h/s",
        "lean > 50.{n:03}deg and box.width > 0.8h",
        "speed > 1.2{n:03}h/s and age > 1s",
    )
    first = "left_wrist.y < nose.y and right_wrist.y < nose.y"
    whens = [first, *(kinds[n % 4].format(n=n) for n in range(1, count))]
    return [{"id": f"rule{n}", "when": when, "for": "300ms"} for n, when in enumerate(whens)]


ZONES = {"door": [[0.1, 0.1], [0.6, 0.1], [0.7, 0.6], [0.2, 0.7]]}
