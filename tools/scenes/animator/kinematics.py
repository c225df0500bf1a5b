"""From poses to joints in the world (forward), and from a wanted hand or foot to angles (inverse). Arrays over time.

Rotations: `about_y` turns up towards forward, `about_x` turns left towards up, `about_z` turns forward towards left.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from camgraph.tools.scenes.animator.body import NODE, NODES, Body, Side
from camgraph.tools.scenes.animator.pose import COLUMN, SIDES

F64 = NDArray[np.float64]

ANKLE_RANGE = (-0.5, 0.9)
"""How far an ankle goes, radians: toes up, toes down."""
SHRUG_FROM, SHRUG = np.radians(50.0), 0.28
"""A shoulder rises with an arm beyond this angle, by this part of it (the scapula's share)."""
TOUCHING = (
    *("head", "crown", "neck", "pelvis", "belly"),
    *(
        f"{side}_{part}"
        for side in SIDES
        for part in ("shoulder", "elbow", "wrist", "hand", "hip", "knee", "heel", "toe")
    ),
)
"""Parts that can rest on the floor; soles at their own height, all others with their thickness below them."""
_TOUCHING = [NODE[name] for name in TOUCHING]
_SOLES = [NODE[f"{side}_{part}"] for side in SIDES for part in ("heel", "toe")]


def about_x(angle: F64) -> F64:
    return _about(angle, 0)


def about_y(angle: F64) -> F64:
    return _about(angle, 1)


def about_z(angle: F64) -> F64:
    return _about(angle, 2)


def _about(angle: F64, axis: int) -> F64:
    cosine, sine = np.cos(angle), np.sin(angle)
    turned = np.zeros((*np.shape(angle), 3, 3))
    after, last = (axis + 1) % 3, (axis + 2) % 3
    turned[..., axis, axis] = 1
    turned[..., after, after] = turned[..., last, last] = cosine
    turned[..., last, after], turned[..., after, last] = sine, -sine
    return turned


def swing(forward: F64, outward: F64) -> F64:
    """(..., 3, 3) turns a limb that hangs down forward and to the left, about one level axis."""
    angle = np.hypot(forward, outward)
    safe = np.where(angle > 1e-9, angle, 1.0)
    x, y = outward / safe, -forward / safe
    sine, rest = np.sin(angle), 1 - np.cos(angle)
    turned = np.empty((*np.shape(angle), 3, 3))
    turned[..., 0, 0], turned[..., 0, 1], turned[..., 0, 2] = 1 - rest * y * y, rest * x * y, sine * y
    turned[..., 1, 0], turned[..., 1, 1], turned[..., 1, 2] = rest * x * y, 1 - rest * x * x, -sine * x
    turned[..., 2, 0], turned[..., 2, 1], turned[..., 2, 2] = -sine * y, sine * x, 1 - rest * (x * x + y * y)
    return turned


def pelvis_rotation(poses: F64) -> F64:
    """(T, 3, 3) from the pelvis's axes to the world's."""
    yaw, pitch, roll, twist = (poses[:, COLUMN[name]] for name in ("yaw", "pitch", "roll", "twist"))
    return about_z(yaw) @ about_y(pitch) @ about_x(-roll) @ about_z(twist)


def spine_rotations(poses: F64, pelvis: F64) -> tuple[F64, F64]:
    """(T, 3, 3) of the lower and of the upper trunk: each takes half of what the back does."""
    bend, lean, turn = (poses[:, COLUMN[name]] / 2 for name in ("bend", "lean", "turn"))
    half = about_y(bend) @ about_x(-lean) @ about_z(turn)
    lower = pelvis @ half
    return lower, lower @ half


def joints(body: Body, poses: F64) -> F64:
    """(T, 28, 3) the nodes in the world, metres, of ``poses`` (T, 32); the lowest part rests on the floor."""
    placed = _hung(body, poses)
    planted = poses[:, COLUMN["planted"], None]
    feet = (placed[:, NODE["left_ankle"], :2] + placed[:, NODE["right_ankle"], :2]) / 2
    anchor = planted * feet + (1 - planted) * placed[:, NODE["pelvis"], :2]
    placed[:, :, :2] += (poses[:, [COLUMN["x"], COLUMN["y"]]] - anchor)[:, None]
    below = body.thickness.copy()
    below[_SOLES] = 0.0
    lowest = (placed[:, _TOUCHING, 2] - below[_TOUCHING]).min(axis=1)
    placed[:, :, 2] += (poses[:, COLUMN["lift"]] - lowest)[:, None]
    return placed


def _hung(body: Body, poses: F64) -> F64:
    """The nodes with the pelvis at the origin."""
    out = np.zeros((len(poses), len(NODES), 3))
    pelvis = pelvis_rotation(poses)
    lower, upper = spine_rotations(poses, pelvis)
    out[:, NODE["belly"]] = lower[:, :, 2] * body.lower_trunk
    out[:, NODE["neck"]] = out[:, NODE["belly"]] + upper[:, :, 2] * body.upper_trunk
    _hang_head(body, poses, upper, out)
    for side in SIDES:
        _hang_arm(body, poses, upper, side, out)
        _hang_leg(body, poses, pelvis, side, out)
    return out


def _hang_head(body: Body, poses: F64, upper: F64, out: F64) -> None:
    nod, tilt, look = (poses[:, COLUMN[name]] / 2 for name in ("nod", "tilt", "look"))
    half = about_y(nod) @ about_x(-tilt) @ about_z(look)
    neck = upper @ half
    head = neck @ half
    ahead = np.array([0.02 * body.height, 0.0, np.sqrt(1 - (0.02 / 0.112) ** 2) * body.neck])
    out[:, NODE["head"]] = out[:, NODE["neck"]] + neck @ ahead
    for name, point in body.face().items():
        out[:, NODE[name]] = out[:, NODE["head"]] + head @ np.array(point)


def _limb(poses: F64, part: str, joint: str, side: Side) -> tuple[F64, F64, F64, F64]:
    names = (f"{part}_forward", f"{part}_outward", f"{part}_twist", joint)
    forward, outward, twist, bent = (poses[:, COLUMN[f"{name}_{side}"]] for name in names)
    return forward, outward, twist, bent


def _hang_arm(body: Body, poses: F64, upper: F64, side: Side, out: F64) -> None:
    forward, outward, twist, elbow = _limb(poses, "arm", "elbow", side)
    flip = np.array([1.0, 1.0 if side == "left" else -1.0, 1.0])
    shoulder = shoulder_place(body, forward, outward)
    turned = swing(forward, outward) @ about_z(twist)
    down = turned[:, :, 2] * -1.0
    at_elbow = shoulder + down * body.upper_arm
    along = (turned @ about_y(-elbow))[:, :, 2] * -1.0
    at_wrist = at_elbow + along * body.forearm
    points = {"shoulder": shoulder, "elbow": at_elbow, "wrist": at_wrist, "hand": at_wrist + along * body.hand}
    for name, point in points.items():
        out[:, NODE[f"{side}_{name}"]] = out[:, NODE["neck"]] + _turned(upper, point * flip)


def shoulder_place(body: Body, forward: F64, outward: F64) -> F64:
    """(T, 3) from the neck, in the upper trunk's axes, of a left shoulder: it rises with the arm."""
    shrug = np.maximum(0.0, np.hypot(forward, outward) - SHRUG_FROM) * SHRUG - np.radians(6.0)
    zero = np.zeros_like(shrug)
    return np.asarray(np.stack([zero, np.cos(shrug), np.sin(shrug)], axis=1) * body.half_shoulders)


def _hang_leg(body: Body, poses: F64, pelvis: F64, side: Side, out: F64) -> None:
    forward, outward, twist, knee = _limb(poses, "leg", "knee", side)
    flip = np.array([1.0, 1.0 if side == "left" else -1.0, 1.0])
    turned = swing(forward, outward) @ about_z(twist)
    hip = np.broadcast_to([0.0, body.half_hips, 0.0], (len(poses), 3))
    at_knee = hip - turned[:, :, 2] * body.thigh
    shank = turned @ about_y(knee)
    at_ankle = at_knee - shank[:, :, 2] * body.shank
    foot = shank @ about_y(_ankle(pelvis, shank, flip) + poses[:, COLUMN[f"foot_{side}"]])
    sole = at_ankle - foot[:, :, 2] * body.ankle_height
    points = {
        **{"hip": hip, "knee": at_knee, "ankle": at_ankle},
        **{"heel": sole - foot[:, :, 0] * body.heel_back, "toe": sole + foot[:, :, 0] * body.toe_ahead},
    }
    for name, point in points.items():
        out[:, NODE[f"{side}_{name}"]] = _turned(pelvis, point * flip)


def _ankle(pelvis: F64, shank: F64, flip: F64) -> F64:
    """(T,) the ankle that makes the foot level, as far as an ankle goes; without a jump upside down."""
    up = np.einsum("tji,tj->ti", shank, pelvis[:, 2, :] * flip)
    level = np.arctan2(up[:, 0], np.maximum(up[:, 2], 0.15))
    return np.asarray(np.clip(level, *ANKLE_RANGE))


def _turned(rotations: F64, points: F64) -> F64:
    """Each point by its own rotation."""
    return np.asarray(np.einsum("tij,tj->ti", rotations, points), np.float64)


def solve_limb(target: F64, upper: float, lower: float, twist: F64, *, knee: bool) -> tuple[F64, F64, F64]:
    """Angles forward, outward and at the joint (T,) that bring the end of a left limb to ``target`` (T, 3).

    ``target`` is seen from the limb's root. The limb stretches towards a target beyond
    its reach. ``knee``: the joint bends backwards, as a knee does.
    """
    far = np.linalg.norm(target, axis=1)
    reach = np.clip(far, abs(upper - lower) + 1e-6, (upper + lower) * 0.9999)
    wanted = target * (reach / np.maximum(far, 1e-9))[:, None]
    inner = (upper**2 + lower**2 - reach**2) / (2 * upper * lower)
    bent = np.pi - np.arccos(np.clip(inner, -1, 1))
    ahead = lower * np.sin(bent) * (-1.0 if knee else 1.0)
    hanging = np.stack([ahead * np.cos(twist), ahead * np.sin(twist), -(upper + lower * np.cos(bent))], axis=1)
    way = wanted - hanging
    axis = np.stack([-way[:, 1], way[:, 0], np.zeros(len(way))], axis=1)
    size = np.linalg.norm(axis, axis=1)
    axis = np.where(size[:, None] > 1e-9, axis / np.maximum(size, 1e-9)[:, None], [0.0, 1.0, 0.0])
    from_axis = hanging - axis * np.sum(hanging * axis, axis=1)[:, None]
    to_axis = wanted - axis * np.sum(wanted * axis, axis=1)[:, None]
    angle = np.arctan2(np.sum(np.cross(from_axis, to_axis) * axis, axis=1), np.sum(from_axis * to_axis, axis=1))
    return -axis[:, 1] * angle, axis[:, 0] * angle, bent


def put_hand(body: Body, poses: F64, side: Side, target: F64) -> None:
    """Change ``poses`` so that this side's wrist comes to ``target`` (T, 3) in the world, or as near as it gets.

    The elbow keeps its direction: the `arm_twist` of the poses.
    """
    flip = np.array([1.0, 1.0 if side == "left" else -1.0, 1.0])
    names = [COLUMN[f"{name}_{side}"] for name in ("arm_forward", "arm_outward", "elbow")]
    twist = poses[:, COLUMN[f"arm_twist_{side}"]]
    placed = joints(body, poses)
    _, upper = spine_rotations(poses, pelvis_rotation(poses))
    local = np.einsum("tji,tj->ti", upper, target - placed[:, NODE["neck"]]) * flip
    for _ in range(4):
        shoulder = shoulder_place(body, poses[:, names[0]], poses[:, names[1]])
        solved = solve_limb(local - shoulder, body.upper_arm, body.forearm, twist, knee=False)
        for column, values in zip(names, solved, strict=True):
            poses[:, column] = values
