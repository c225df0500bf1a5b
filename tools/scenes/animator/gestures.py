"""Arms and head over any motion: hands up, waving, a phone at the ear. They come and go within half a second.

Each gesture is an `Adjust`: it changes arms and head of poses and leaves the rest, so that people also wave while they
walk or sit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from camgraph.tools.scenes.animator.body import NODE, Body, Side
from camgraph.tools.scenes.animator.kinematics import joints, pelvis_rotation, put_hand, spine_rotations
from camgraph.tools.scenes.animator.motion import Adjust, smooth
from camgraph.tools.scenes.animator.pose import COLUMN, LIMB_FIELDS, Posture, columns, row_of

F64 = NDArray[np.float64]
Place = Literal["ear", "mouth", "chin", "belly", "other_elbow", "other_hand", "knee"]

ARM = LIMB_FIELDS[:4]


def fade(t: F64, start_s: float, stop_s: float, in_s: float, out_s: float) -> F64:
    """(T,) 0 outside, 1 within, smooth between."""
    return np.asarray(smooth((t - start_s) / in_s) * smooth((stop_s - t) / out_s))


def arms(
    posture: Posture, start_s: float, stop_s: float, *, in_s: float = 0.5, out_s: float = 0.5, wobble_deg: float = 2.0
) -> Adjust:
    """The fields of ``posture`` (arms, head, back) instead of the motion's own from ``start_s`` to ``stop_s``."""
    target = row_of(posture, {})
    named = columns(*posture)

    def adjust(body: Body, t: F64, poses: F64) -> None:
        share = fade(t, start_s, stop_s, in_s, out_s)[:, None]
        tremble = np.sin(t[:, None] * (2.1 + 0.37 * np.arange(len(named))) + np.arange(len(named)) * 1.7)
        poses[:, named] += (target[named] + tremble * np.radians(wobble_deg) - poses[:, named]) * share

    return adjust


def swinging(fields: Posture, hz: float, start_s: float, stop_s: float, *, phase: float = 0.0) -> Adjust:
    """Adds a swing of these amplitudes (degrees), ``hz`` times a second."""
    size = row_of(fields, {})
    named = columns(*fields)

    def adjust(body: Body, t: F64, poses: F64) -> None:
        share = fade(t, start_s, stop_s, 0.3, 0.3)
        poses[:, named] += (np.sin(2 * np.pi * hz * (t - start_s) + phase) * share)[:, None] * size[named]

    return adjust


def hand_at(side: Side, place: Place, start_s: float, stop_s: float, *, twist_deg: float, in_s: float = 0.6) -> Adjust:
    """The hand goes to a place of the body. ``twist_deg``: where the elbow points (`arm_twist`)."""

    def adjust(body: Body, t: F64, poses: F64) -> None:
        reached = poses.copy()
        reached[:, COLUMN[f"arm_twist_{side}"]] = np.radians(twist_deg)
        placed = joints(body, reached)
        put_hand(body, reached, side, _point(body, reached, placed, side, place))
        named = [COLUMN[f"{field}_{side}"] for field in ARM]
        share = fade(t, start_s, stop_s, in_s, in_s)[:, None]
        poses[:, named] += (reached[:, named] - poses[:, named]) * share

    return adjust


def _point(body: Body, poses: F64, placed: F64, side: Side, place: Place) -> F64:
    """(T, 3) where the wrist is when the hand is at a place."""
    other = "right" if side == "left" else "left"
    out = 1.0 if side == "left" else -1.0
    trunk = spine_rotations(poses, pelvis_rotation(poses))[1]
    nodes_and_offsets = {
        "ear": (f"{side}_ear", (0.08, 0.045 * out, -0.125)),
        "mouth": ("nose", (0.09, 0.05 * out, -0.09)),
        "chin": ("nose", (0.04, 0.03 * out, -0.12)),
        "belly": ("belly", (0.17, 0.02 * out, 0.03)),
        "other_elbow": (f"{other}_elbow", (0.06, 0.05 * out, 0.03)),
        "other_hand": (f"{other}_wrist", (0.0, 0.04 * out, 0.0)),
        "knee": (f"{side}_knee", (0.02, 0.0, 0.06)),
    }
    node, offset = nodes_and_offsets[place]
    return np.asarray(placed[:, NODE[node]] + trunk @ (np.array(offset) * body.height / 1.72))


def together(*adjusts: Adjust) -> Adjust:
    """Several gestures, in this order."""

    def adjust(body: Body, t: F64, poses: F64) -> None:
        for each in adjusts:
            each(body, t, poses)

    return adjust


def hands_up(start_s: float = 0.5, stop_s: float = 1e9, *, in_s: float = 0.6) -> Adjust:
    up = {"arm_forward": 70, "arm_outward": 138, "arm_twist": 10, "elbow": 35}
    return arms(up, start_s, stop_s, in_s=in_s, out_s=in_s)


def quick_raise(at_s: Sequence[float], lasting_s: float = 0.3) -> Adjust:
    """Both hands over the head and down again at once; ``lasting_s``: how long the wrists are above the shoulders."""
    up = {"arm_forward": 150, "arm_outward": 60, "arm_twist": 0, "elbow": 25}
    half = lasting_s / 2 + 0.13
    return together(*(arms(up, at - half, at + half, in_s=half, out_s=half) for at in at_s))


def one_hand_up(side: Side, start_s: float = 0.5, stop_s: float = 1e9) -> Adjust:
    up = {"arm_forward": 148, "arm_outward": 55, "arm_twist": 0, "elbow": 22}
    return arms({f"{name}_{side}": value for name, value in up.items()}, start_s, stop_s)


def waving(side: Side, start_s: float = 0.5, stop_s: float = 1e9, *, hz: float = 1.6) -> Adjust:
    """One hand beside the head goes from side to side."""
    up = {f"arm_forward_{side}": 55, f"arm_outward_{side}": 95, f"arm_twist_{side}": 85, f"elbow_{side}": 85}
    side_to_side = {f"elbow_{side}": 24, f"arm_outward_{side}": 7}
    return together(arms(up, start_s, stop_s), swinging(side_to_side, hz, start_s + 0.4, stop_s))


def calling_for_help(start_s: float = 0.5, stop_s: float = 1e9, *, hz: float = 1.1) -> Adjust:
    """Both arms high, crossing and opening over the head."""
    up = {"arm_forward": 60, "arm_outward": 138, "arm_twist": 0, "elbow": 18}
    wide = {"arm_outward": 26, "elbow": 10}
    return together(arms(up, start_s, stop_s, in_s=0.45), swinging(wide, hz, start_s + 0.3, stop_s))


def arms_crossed(start_s: float = 0.3, stop_s: float = 1e9) -> Adjust:
    before = {"arm_forward": 24, "arm_outward": 4, "arm_twist": -68, "elbow": 96}
    return together(
        arms(before, start_s, stop_s, in_s=0.7, out_s=0.7, wobble_deg=1.0),
        hand_at("right", "other_elbow", start_s, stop_s, twist_deg=-62, in_s=0.7),
        hand_at("left", "other_elbow", start_s, stop_s, twist_deg=-66, in_s=0.7),
    )


def phoning(side: Side, start_s: float = 0.4, stop_s: float = 1e9) -> Adjust:
    head = {"tilt": 6.0 if side == "left" else -6.0}
    at_ear = hand_at(side, "ear", start_s, stop_s, twist_deg=-38)
    return together(arms(head, start_s, stop_s), at_ear)


def drinking(side: Side, start_s: float = 0.4, sip_s: float = 2.0) -> Adjust:
    """One sip."""
    stop_s = start_s + sip_s
    to_mouth = hand_at(side, "mouth", start_s, stop_s, twist_deg=-40)
    return together(arms({"nod": -14}, start_s + 0.4, stop_s, in_s=0.4), to_mouth)


def texting(side: Side, start_s: float = 0.4, stop_s: float = 1e9) -> Adjust:
    """A phone held before the chest, eyes on it."""
    hold = {f"arm_forward_{side}": 22, f"arm_twist_{side}": -28, f"elbow_{side}": 108, "nod": 26}
    return arms(hold, start_s, stop_s)


def pointing(side: Side, start_s: float = 0.5, stop_s: float = 1e9) -> Adjust:
    out = {f"arm_forward_{side}": 74, f"arm_outward_{side}": 40, f"arm_twist_{side}": 0, f"elbow_{side}": 5}
    return arms(out, start_s, stop_s, in_s=0.45, wobble_deg=1.0)


def reaching(side: Side, start_s: float = 0.5, stop_s: float = 1e9) -> Adjust:
    """To a shelf at the height of the head."""
    out = {f"arm_forward_{side}": 118, f"arm_outward_{side}": 12, f"arm_twist_{side}": 0, f"elbow_{side}": 12}
    return arms({**out, "bend": 8, "turn": -14.0 if side == "left" else 14.0, "nod": -8}, start_s, stop_s)


def punching(side: Side, at_s: Sequence[float]) -> Adjust:
    """Fists up, and blows of a third of a second at these moments."""
    guard = {"arm_forward": 38, "arm_outward": 6, "arm_twist": -8, "elbow": 128, "bend": 10}
    across = -26.0 if side == "left" else 26.0
    blow = {f"arm_forward_{side}": 88, f"arm_outward_{side}": -8, f"elbow_{side}": 6, "turn": across}
    start, stop = min(at_s) - 1.0, max(at_s) + 0.8
    blows = (arms(blow, at - 0.2, at + 0.24, in_s=0.16, out_s=0.2, wobble_deg=0) for at in at_s)
    return together(arms(guard, start, stop), *blows)


def carrying(start_s: float = 0.0, stop_s: float = 1e9) -> Adjust:
    """A box held with both arms."""
    hold = {"arm_forward": 18, "arm_outward": 6, "arm_twist": -8, "elbow": 82}
    return arms(hold, start_s, stop_s, wobble_deg=1.0)


def typing(start_s: float = 0.0, stop_s: float = 1e9) -> Adjust:
    """The hands on a keyboard."""
    hold = {"arm_forward": 34, "arm_outward": 6, "arm_twist": -16, "elbow": 72, "nod": 8}
    return arms(hold, start_s, stop_s, wobble_deg=3.0)
