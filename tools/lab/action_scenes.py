"""A short scene of each action of the library, for drawings: who does what, when to look, and from where.

`action_drawings.py` draws them. One person is followed by the camera; several people, zones and lines stay where they
are, with the floor's middle in the middle of the picture.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from camgraph.tools.scenes.animator.camera import Camera
from camgraph.tools.scenes.animator.kinematics import joints
from camgraph.tools.scenes.animator.library import MOTIONS, ON_BACK, crouch, lying, standing, starts_in
from camgraph.tools.scenes.animator.motion import Motion
from camgraph.tools.scenes.animator.scene import Actor, Scene
from camgraph.tools.scenes.animator.walking import turn_to, walk

F64 = NDArray[np.float64]
Corners = tuple[tuple[float, float], ...]
"""Metres on the floor."""

SQUARE: Corners = ((-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9))
BED: Corners = ((0.4, -1.0), (1.3, -1.0), (1.3, 1.0), (0.4, 1.0))
ACROSS: Corners = ((0.0, -1.1), (0.0, 1.1))


@dataclass(frozen=True)
class ActionScene:
    """`motion`: of the animator's library, if it is one; `moments_s`: when to look; `zone` and `line`: on the floor."""

    actors: Sequence[Actor]
    moments_s: tuple[float, ...]
    bearing_deg: float = 40.0
    motion: str = ""
    width_m: float = 2.5
    zone: Corners = ()
    line: Corners = ()

    def camera(self, side_px: int) -> Camera:
        """For a square picture."""
        distance = 6.0
        fov = 2 * float(np.degrees(np.arctan(self.width_m / 2 / distance)))
        height, aim = (2.0, 0.88) if self.motion else (3.4, 0.7)
        return Camera(height_m=height, fov_deg=fov, size=(side_px, side_px)).at(distance, self.bearing_deg, aim_m=aim)

    def people(self, at_s: float) -> list[F64]:
        """(28, 3) the nodes of everybody who is there at a moment, in metres."""
        found = []
        for actor, (body, take) in zip(self.actors, Scene("", self.actors).takes(seed=0), strict=True):
            if actor.appears_s <= at_s < actor.gone_s:
                since_s = np.clip(np.array([at_s - actor.start_s]), 0, take.duration_s)
                found.append(joints(body, take.sample(since_s))[0])
        if self.motion and found:
            found[0] = found[0] - np.array([*found[0][:, :2].mean(axis=0), 0.0])
        return found


def _motion(name: str, *moments_s: float, bearing_deg: float = 40.0) -> ActionScene:
    actor = Actor(MOTIONS[name](), posture=starts_in(name))
    return ActionScene([actor], moments_s, bearing_deg, motion=name)


def _someone(
    motions: Sequence[Motion], *moments_s: float, bearing_deg: float = 40.0, gone_s: float = 1e9
) -> ActionScene:
    return ActionScene([Actor(motions, gone_s=gone_s)], moments_s, bearing_deg, motion="alone")


def _people(*actors: Actor, at: tuple[float, ...], zone: Corners = (), line: Corners = ()) -> ActionScene:
    return ActionScene(actors, at, bearing_deg=-90.0, width_m=3.4, zone=zone, line=line)


def _stands(x: float, y: float = 0.0, heading_deg: float = 0.0, *, appears_s: float = 0.0) -> Actor:
    return Actor([standing(9.0)], x, y, heading_deg, appears_s=appears_s)


def _walks(start: float, end: float, *, y: float = 0.0, start_s: float = 0.0) -> Actor:
    """Along x, at 1 m a second."""
    return Actor([walk([(end, y)], 1.0), standing(9.0)], start, y, 0.0 if end > start else 180.0, start_s=start_s)


_GOES = (0.2, 1.3, 2.4)

ACTION_SCENES: Mapping[str, ActionScene] = {
    "fall": _motion("falling backward", 0.8, 1.46, 1.78, 3.0, bearing_deg=75),
    "lying": _motion("lying down on a side", 0.3, 2.2, 3.6, 7.0, bearing_deg=70),
    "lost_while_low": _someone([crouch(9.0)], 0.1, 0.6, 1.4, 3.0, gone_s=2.0),
    "crouching": _motion("crouching", 0.5, 1.0, 2.2, bearing_deg=60),
    "sitting": _motion("sitting down", 0.5, 1.4, 3.2, bearing_deg=60),
    "bending": _motion("bending", 0.5, 1.0, 1.9, bearing_deg=75),
    "standing_still": _someone([standing(9.0)], 0.5, 3.0, 6.0, bearing_deg=15),
    "turned_away": _someone([standing(0.5), turn_to(np.pi), standing(2.0)], 0.3, 1.0, 3.0, bearing_deg=15),
    "hands_up": _motion("hands up", 0.4, 0.85, 2.5, bearing_deg=15),
    "one_hand_up": _motion("one hand up", 0.4, 0.8, 2.5, bearing_deg=15),
    "waving": _motion("waving", 0.4, 2.0, 2.31, 2.62, bearing_deg=10),
    "calling_for_help": _motion("calling for help", 0.4, 2.0, 2.45, 2.9, bearing_deg=10),
    "arms_crossed": _motion("arms crossed", 0.2, 0.85, 2.5, bearing_deg=15),
    "hand_to_face": _motion("phoning", 0.3, 0.8, 2.5, bearing_deg=-35),
    "reaching": _motion("reaching", 0.4, 0.8, 2.0, bearing_deg=-75),
    "pointing": _motion("pointing", 0.4, 0.75, 2.0, bearing_deg=25),
    "kicking": _motion("kicking", 0.5, 1.2, 1.55, 2.2, bearing_deg=-75),
    "punching": _motion("punching", 0.3, 1.2, 1.55, bearing_deg=-70),
    "jumping": _motion("jumping", 0.45, 0.9, 1.34, 1.8, bearing_deg=60),
    "running": _motion("running", 1.0, 1.12, 1.24, 1.36, bearing_deg=80),
    "walking": _motion("walking", 1.0, 1.2, 1.4, 1.6, bearing_deg=75),
    "enters_zone": _people(_walks(-1.5, 0.5), at=_GOES, zone=SQUARE),
    "leaves_zone": _people(_walks(0.0, 1.6), at=(0.1, 0.9, 2.0), zone=SQUARE),
    "loitering": _people(_stands(0.1, heading_deg=200.0), at=(0.5, 3.0, 6.0), zone=SQUARE),
    "crosses_line": _people(_walks(-1.2, 1.2), at=_GOES, line=ACROSS),
    "wrong_way": _people(_walks(1.2, -1.2), at=_GOES, line=ACROSS),
    "tailgating": _people(_walks(-1.3, 1.3), _walks(-2.1, 0.5), at=(0.3, 1.4, 2.5), line=ACROSS),
    "queue": _people(*(_stands(-1.1 + 0.7 * n) for n in range(4)), at=(0.5, 3.0), zone=SQUARE),
    "crowd": _people(
        *(_stands(-1.2 + 0.6 * n, 0.5 * (n % 3), 90.0 * n, appears_s=n % 3) for n in range(5)), at=(0, 1, 2)
    ),
    "too_close": _people(_stands(-0.3), _stands(0.3, heading_deg=180.0), at=(0.5, 3.0)),
    "approaching": _people(_walks(-1.5, -0.4), _stands(0.3, heading_deg=180.0), at=(0.1, 0.8, 1.8)),
    "leaving_group": _people(_walks(-0.3, -1.6, start_s=1.0), _stands(0.3, heading_deg=180.0), at=(0.5, 1.7, 2.6)),
    "on_the_floor": _people(
        Actor([lying("back", 9.0)], -0.8, posture=ON_BACK, heading_deg=90.0), at=(0.5, 3.0), zone=BED
    ),
    "out_of_bed": _people(_walks(0.9, -0.7), at=_GOES, zone=BED),
    "somebody": _people(_walks(-1.5, 0.5), at=_GOES),
    "nobody_there": _people(Actor([walk([(3.0, 0.0)], 1.0)], gone_s=2.2), at=(0.1, 1.2, 3.0)),
}
