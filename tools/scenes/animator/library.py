"""The motions, by name. Postures are angles in degrees (`pose.py`), times are seconds.

`MOTIONS` has each as people do it alone, for contact sheets and tests; scenes put them together with arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from camgraph.tools.scenes.animator import gestures
from camgraph.tools.scenes.animator.body import Body
from camgraph.tools.scenes.animator.motion import Adjust, Key, Motion, Take, kept, keyframed, played, renamed, sequence
from camgraph.tools.scenes.animator.pose import Posture, mirrored_posture
from camgraph.tools.scenes.animator.walking import turn_to, walk

F64 = NDArray[np.float64]
Way = Literal["forward", "backward", "left", "right"]
LyingSide = Literal["back", "front", "left", "right"]

SITTING: Posture = {
    **{"pitch": -6, "bend": 12, "leg_forward": 80, "leg_outward": 9, "knee": 84},
    **{"arm_forward": 26, "arm_outward": 6, "arm_twist": -18, "elbow": 58},
}
CROUCHED: Posture = {
    **{"pitch": 32, "bend": 34, "nod": -28, "leg_forward": 136, "leg_outward": 14, "knee": 138, "leg_twist": 12},
    **{"arm_forward": 48, "arm_outward": 4, "elbow": 42},
}
BENT: Posture = {
    **{"pitch": 52, "bend": 52, "nod": 6, "leg_forward": 42, "knee": 12},
    **{"arm_forward": 88, "arm_outward": 5, "elbow": 14},
}
HALF_KNEELING: Posture = {
    **{"pitch": 4, "bend": 10, "leg_forward_left": 88, "knee_left": 92, "leg_forward_right": -4, "knee_right": 92},
    **{"arm_forward": 22, "elbow": 40},
}
KNEELING: Posture = {"pitch": 2, "bend": 8, "leg_forward": -2, "knee": 94, "foot": 40, "arm_forward": 10, "elbow": 26}
TYING: Posture = {
    **{"pitch": 30, "bend": 62, "nod": 18, "leg_forward_left": 112, "knee_left": 96},
    **{"leg_forward_right": 28, "knee_right": 112, "leg_outward": 6},
    **{"arm_forward": 92, "arm_outward": -4, "arm_twist": -10, "elbow": 20},
}
ALL_FOURS: Posture = {
    **{"pitch": 76, "bend": 8, "nod": -30, "leg_forward": 78, "knee": 92, "foot": 40},
    **{"arm_forward": 84, "arm_outward": 6, "elbow": 8},
}
ON_BACK: Posture = {
    **{"pitch": -88, "bend": 4, "nod": 10, "leg_forward": 4, "leg_outward": 7, "knee": 8},
    **{"arm_forward": 2, "arm_outward": 26, "elbow": 20, "planted": 1},
}
ON_FRONT: Posture = {
    **{"pitch": 88, "bend": 0, "nod": -8, "look": 40, "leg_forward": -2, "leg_outward": 8, "knee": 6, "foot": 40},
    **{"arm_forward": 40, "arm_outward": 95, "arm_twist": 80, "elbow": 80},
}
ON_LEFT: Posture = {
    **{"pitch": -88, "twist": 88, "bend": 22, "nod": 12, "leg_forward_left": 38, "knee_left": 62},
    **{"leg_forward_right": 52, "knee_right": 72, "leg_outward": 0, "leg_outward_right": -8},
    **{"arm_forward_left": 78, "arm_outward_left": 8, "elbow_left": 70},
    **{"arm_forward_right": 48, "arm_outward_right": -6, "elbow_right": 60},
}
LYING: dict[LyingSide, Posture] = {
    **{"back": ON_BACK, "front": ON_FRONT, "left": ON_LEFT, "right": mirrored_posture(ON_LEFT)},
}


def standing(duration_s: float = 5.0, *, sway: float = 1.0) -> Motion:
    """Upright, with the sway of somebody who stands."""
    return renamed(kept("standing", {}, duration_s, sway=sway), "standing")


def waiting(duration_s: float) -> Motion:
    """The posture in which the last motion ended, kept with small movements."""
    return kept("waiting", None, duration_s, sway=0.6)


def gesturing(name: str, adjust: Adjust, duration_s: float, *, while_doing: Motion | None = None) -> Motion:
    """A gesture while standing, or over another motion."""
    base = standing(duration_s) if while_doing is None else while_doing
    return renamed(base.with_arms(name, adjust), name)


def sit_down(seconds: float = 1.5) -> Motion:
    """Onto a chair behind one; the feet stay. 0.6 s is fast, 2 s that of somebody frail."""
    lowering = {
        **{"pitch": 34, "bend": 24, "leg_forward": 82, "leg_outward": 5, "knee": 74},
        **{"arm_forward": 38, "elbow": 40, "nod": -14},
    }
    keys = [Key(seconds * 0.55, lowering), Key(seconds, SITTING)]
    return keyframed("sitting down", keys)


def sitting(duration_s: float = 10.0) -> Motion:
    return kept("sitting", SITTING, duration_s, sway=0.9)


def stand_up(seconds: float = 1.4) -> Motion:
    """From a chair or from a crouch."""
    leaning = {"pitch": 32, "bend": 28, "leg_forward": 84, "knee": 76, "arm_forward": 40, "elbow": 40, "nod": -10}
    return keyframed("standing up", [Key(seconds * 0.5, leaning), Key(seconds, {})])


def bend(hold_s: float = 1.0) -> Motion:
    """Pick something up from the floor with straight legs."""
    return keyframed("bending", [Key(0.9, BENT), Key(0.9 + hold_s, BENT), Key(1.9 + hold_s, {})])


def crouch(hold_s: float = 2.0) -> Motion:
    return keyframed("crouching", [Key(0.9, CROUCHED), Key(0.9 + hold_s, CROUCHED), Key(1.9 + hold_s, {})])


def duck(hold_s: float = 0.4) -> Motion:
    """Down and up at once, as from a ball."""
    low = {**CROUCHED, "leg_forward": 112, "knee": 108, "arm_forward": 90, "elbow": 110}
    return keyframed("ducking", [Key(0.4, low), Key(0.4 + hold_s, low), Key(1.0 + hold_s, {})])


def kneel(hold_s: float = 2.5) -> Motion:
    keys = [Key(0.9, HALF_KNEELING), Key(1.6, KNEELING), Key(1.6 + hold_s, KNEELING)]
    return keyframed("kneeling", [*keys, Key(2.4 + hold_s, HALF_KNEELING), Key(3.3 + hold_s, {})])


def tie_shoes_bent(hold_s: float = 4.0) -> Motion:
    """Bent down on both feet, the knees a little bent, both hands at a foot."""
    low = {**BENT, "pitch": 58, "bend": 66, "leg_forward": 62, "knee": 40, "arm_twist": -8}
    fiddling = gestures.swinging({"elbow": 7, "arm_forward": 4}, 1.7, 1.2, 0.8 + hold_s)
    keys = [Key(1.0, low), Key(1.0 + hold_s, low), Key(2.0 + hold_s, {})]
    return keyframed("tying shoes", keys).with_arms("tying shoes", fiddling)


def tie_shoes(hold_s: float = 4.0) -> Motion:
    """On one knee, both hands at the other foot."""
    keys = [Key(0.8, HALF_KNEELING), Key(1.5, TYING), Key(1.5 + hold_s, TYING), Key(2.2 + hold_s, HALF_KNEELING)]
    fiddling = gestures.swinging({"elbow": 7, "arm_forward": 4}, 1.7, 1.6, 1.4 + hold_s)
    return keyframed("tying shoes", [*keys, Key(3.2 + hold_s, {})]).with_arms("tying shoes", fiddling)


def push_ups(count: int = 5, seconds_each: float = 1.6) -> Motion:
    """From standing down onto the hands, push-ups, and up again."""
    up = {
        "pitch": 68,
        "bend": -2,
        "nod": -14,
        "leg_forward": 0,
        "knee": 2,
        "arm_forward": 70,
        "arm_outward": 12,
        "elbow": 4,
    }
    down = {**up, "pitch": 81, "arm_forward": 26, "arm_outward": 38, "arm_twist": 0, "elbow": 102}
    keys = [Key(0.9, CROUCHED), Key(1.7, {**ALL_FOURS}), Key(2.5, up)]
    for number in range(count):
        start = 2.5 + number * seconds_each
        keys += [Key(start + seconds_each / 2, down), Key(start + seconds_each, up)]
    end = 2.5 + count * seconds_each
    keys += [Key(end + 0.8, ALL_FOURS), Key(end + 1.7, CROUCHED), Key(end + 2.6, {})]
    return keyframed("push-ups", keys, vary=0.04)


def lie_down(side: LyingSide = "back", seconds: float = 5.0) -> Motion:
    """Slowly and on purpose: onto the knees, the seat or all fours, then the back, the front or a side."""
    over = LYING[side]
    if side == "front":
        keys = [(0.2, HALF_KNEELING), (0.4, KNEELING), (0.65, ALL_FOURS), (1.0, over)]
    else:
        seated = {"pitch": -24, "bend": 24, "leg_forward": 110, "knee": 98, "arm_forward": -28, "elbow": 20}
        keys = [(0.3, CROUCHED), (0.55, seated), (1.0, over)]
    return keyframed("lying down", [Key(share * seconds, posture) for share, posture in keys])


def lying(side: LyingSide = "back", duration_s: float = 6.0) -> Motion:
    return kept("lying", LYING[side], duration_s, sway=0.5, into_s=1.0)


def lie_on_bed(side: LyingSide = "back", *, height_m: float = 0.5, seconds: float = 6.0) -> Motion:
    """From sitting on the edge of a bed onto it: the feet go up to the right, the head lies to the left.

    The middle of the bed is 0.9 m behind the feet; it is ``height_m`` high.
    """
    swung = {
        **{"pitch": -34, "bend": 16, "leg_forward": 78, "knee": 62, "yaw": -45, "lift": height_m * 0.6, "x": -0.25},
        **{"arm_forward": -14, "arm_outward": 24, "elbow": 16},
    }
    lain = {**LYING[side], "yaw": -90, "lift": height_m, "x": -0.53, "y": -0.41}
    return keyframed("lying down on a bed", [Key(seconds * 0.5, swung), Key(seconds, lain)])


def rise_from_bed(*, height_m: float = 0.5, seconds: float = 5.0) -> Motion:
    """Back to sitting on the edge."""
    swung = {
        **{
            "pitch": -28,
            "bend": 20,
            "leg_forward": 80,
            "knee": 62,
            "yaw": 45,
            "lift": height_m * 0.6,
            "x": -0.3,
            "y": 0.2,
        },
        **{"arm_forward": -14, "arm_outward": 24, "elbow": 16},
    }
    return keyframed(
        "getting out of bed", [Key(seconds * 0.5, swung), Key(seconds, {**SITTING, "yaw": 90, "x": -0.41, "y": 0.53})]
    )


def roll_over(side: LyingSide, seconds: float = 2.0, *, height_m: float = 0.0) -> Motion:
    """``height_m``: of the bed on which somebody lies."""
    return keyframed("rolling over", [Key(seconds, {**LYING[side], "lift": height_m})])


def fall(way: Way = "forward", seconds: float = 0.9, *, lie_s: float = 4.0) -> Motion:
    """From standing to the floor within ``seconds`` (0.5 to 1.2 in Noury et al. 2008), then still for ``lie_s``."""
    if way == "right":
        keys = [Key(key.at_s, mirrored_posture(key.posture)) for key in _FALLS["left"](seconds)]
    else:
        keys = _FALLS[way](seconds)
    drop = keyframed("falling", keys, hurry=1.5)
    return sequence(f"falling {way}", [drop, kept("lying", None, lie_s, sway=0.15)])


def trip(
    waypoints: Sequence[tuple[float, float]], speed: float = 1.4, *, after_s: float = 2.0, lie_s: float = 4.0
) -> Motion:
    """Walk towards ``waypoints``, stumble in mid-step ``after_s`` later, and fall without stopping: 0.9 s."""

    def begin(body: Body, start: F64, rng: np.random.Generator) -> Take:
        walking = walk(waypoints, speed).begin(body, start, rng)
        cut = min(after_s, walking.duration_s - 1e-3)
        before, at = walking.sample(np.array([cut - 0.02, cut]))
        keys = [
            Key(key.at_s, {**key.posture, "x": key.posture.get("x", 0.0) + 0.22 * speed}) for key in _fall_forward(0.9)
        ]
        drop = keyframed("falling", keys, vary=0.05, carried=(at - before) / 0.02)
        rest = played([drop, kept("lying", None, lie_s, sway=0.15)], body, at, rng)

        def sample(t: F64) -> F64:
            first = t < cut
            poses = np.empty((len(t), len(start)))
            poses[first], poses[~first] = walking.sample(t[first]), rest.sample(t[~first] - cut)
            return poses

        return Take(cut + rest.duration_s, sample)

    return Motion("tripping", begin)


def _fall_forward(seconds: float) -> list[Key]:
    stumbling = {
        **{"pitch": 22, "bend": 12, "x": 0.12, "leg_forward_left": 34, "knee_left": 34, "leg_forward_right": -4},
        **{"knee_right": 22, "arm_forward": 52, "arm_outward": 16, "elbow": 40, "nod": -12},
    }
    dropping = {
        **{"pitch": 58, "bend": 4, "x": 0.2, "leg_forward": 22, "knee": 42, "foot": 20},
        **{"arm_forward": 84, "arm_outward": 24, "elbow": 46, "nod": -24},
    }
    landed = {**ON_FRONT, "x": 0.2, "arm_forward": 88, "arm_outward": 92, "elbow": 84, "arm_twist": 30, "look": 25}
    return [Key(seconds * 0.45, stumbling), Key(seconds * 0.78, dropping), Key(seconds, landed)]


def _fall_backward(seconds: float) -> list[Key]:
    tipping = {
        **{"pitch": -16, "bend": 18, "x": -0.02, "leg_forward": 14, "knee": 32},
        **{"arm_forward": 44, "arm_outward": 44, "elbow": 34, "nod": 14},
    }
    seated = {
        **{"pitch": -42, "bend": 30, "leg_forward": 66, "knee": 62, "x": 0.02, "nod": 22},
        **{"arm_forward": -8, "arm_outward": 50, "elbow": 30},
    }
    landed = {**ON_BACK, "x": 0.1, "arm_outward": 62, "elbow": 30, "leg_forward": 22, "knee": 40}
    return [Key(seconds * 0.45, tipping), Key(seconds * 0.75, seated), Key(seconds, landed)]


def _fall_left(seconds: float) -> list[Key]:
    tipping = {
        **{"roll": 22, "lean": -8, "y": 0.02, "leg_forward_left": 16, "knee_left": 34, "leg_outward_right": 14},
        **{"arm_outward_left": 52, "arm_forward": 26, "arm_outward_right": 42, "elbow": 34},
    }
    dropping = {
        **{"roll": 56, "lean": -10, "pitch": 8, "leg_forward": 28, "knee": 46},
        **{"arm_outward_left": 58, "arm_forward": 40, "arm_outward_right": 34, "elbow": 46},
    }
    landed = {
        **{"roll": 87, "bend": 12, "leg_forward_left": 30, "knee_left": 48, "leg_forward_right": 18, "knee_right": 30},
        **{
            "arm_forward_left": 84,
            "arm_outward_left": 20,
            "elbow_left": 50,
            "arm_forward_right": 50,
            "elbow_right": 50,
        },
        **{"arm_outward_right": 4, "lean": -4},
    }
    return [Key(seconds * 0.45, tipping), Key(seconds * 0.78, dropping), Key(seconds, landed)]


_FALLS: dict[str, Callable[[float], list[Key]]] = {
    **{"forward": _fall_forward, "backward": _fall_backward, "left": _fall_left},
}


def slump(seconds: float = 1.1, *, lie_s: float = 4.0) -> Motion:
    """The knees give way, then the body tips to one side: somebody who faints."""
    folding = {
        **{"pitch": 10, "bend": 30, "nod": 28, "leg_forward": 74, "knee": 104, "roll": 6, "foot": 20},
        **{"arm_forward": 6, "arm_outward": 10, "elbow": 18},
    }
    tipping = {**folding, "roll": 44, "leg_forward": 80, "knee": 112, "lean": 14, "arm_outward_left": 34}
    landed = {
        **{"roll": 86, "bend": 26, "nod": 20, "leg_forward": 62, "knee": 96, "leg_forward_right": 44},
        **{"arm_forward": 60, "elbow": 60},
    }
    keys = [Key(seconds * 0.5, folding), Key(seconds * 0.75, tipping), Key(seconds, landed)]
    drop = keyframed("slumping", keys, hurry=1.3)
    return sequence("slumping", [drop, kept("lying", None, lie_s, sway=0.1)])


def step_back(metres: float = 0.4) -> Motion:
    """One step backwards."""
    stepping = {"x": -0.12 * metres, "leg_forward_left": -16, "knee_left": 26, "pitch": 3}
    return keyframed("stepping back", [Key(0.35, stepping), Key(0.8, {"x": -metres / 1.72})])


def fall_from_chair(seconds: float = 0.9, *, lie_s: float = 4.0) -> Motion:
    """Sideways off a chair on which one sits."""
    tipping = {**SITTING, "roll": 34, "lean": 20, "arm_outward_left": 48, "y": 0.06}
    landed = {
        **{"roll": 86, "pitch": 6, "bend": 26, "leg_forward": 66, "knee": 84, "y": 0.2, "nod": 10},
        **{"arm_forward_left": 80, "elbow_left": 50, "arm_forward_right": 40, "elbow_right": 50},
    }
    drop = keyframed("falling from a chair", [Key(seconds * 0.55, tipping), Key(seconds, landed)], hurry=1.4)
    return sequence("falling from a chair", [drop, kept("lying", None, lie_s, sway=0.15)])


def get_up(seconds: float = 4.0) -> Motion:
    """From the floor: over the front to all fours, one knee, and up."""
    keys = [(0.35, ALL_FOURS), (0.6, KNEELING), (0.75, HALF_KNEELING), (1.0, {})]
    return keyframed("getting up", [Key(share * seconds, posture) for share, posture in keys])


def jump(count: int = 3) -> Motion:
    """Hops of a quarter of a metre on the spot."""
    low = {"pitch": 18, "bend": 16, "leg_forward": 62, "knee": 68, "arm_forward": -24, "elbow": 20}
    off = {"leg_forward": 2, "knee": 2, "foot": 40, "arm_forward": 96, "elbow": 24, "lift": 0.0}
    high = {**off, "knee": 24, "leg_forward": 14, "lift": 0.26}
    keys = []
    for number in range(count):
        start = number * 1.3
        keys += [Key(start + 0.4, low), Key(start + 0.62, off), Key(start + 0.84, high)]
        keys += [Key(start + 1.06, {**off, "arm_forward": 40}), Key(start + 1.3, {**low, "arm_forward": 20})]
    return keyframed("jumping", [*keys, Key(count * 1.3 + 0.5, {})])


def kick(count: int = 2) -> Motion:
    """Forward with the right foot at the height of a ball or a knee."""
    back = {
        **{"leg_forward_right": -24, "knee_right": 72, "leg_forward_left": 6, "knee_left": 8},
        **{"arm_forward_left": 30, "pitch": 4, "bend": 6},
    }
    front = {
        **{"leg_forward_right": 62, "knee_right": 10, "leg_forward_left": -6, "knee_left": 10, "pitch": -8},
        **{"bend": 16, "arm_forward_left": 44, "arm_forward_right": -24, "elbow": 30},
    }
    keys = []
    for number in range(count):
        start = 0.3 + number * 1.6
        keys += [Key(start + 0.4, back), Key(start + 0.62, front), Key(start + 1.2, {})]
    return keyframed("kicking", keys)


def loiter(around: list[tuple[float, float]], duration_s: float, speed: float = 0.8) -> Motion:
    """To and fro between places in the world, with a pause at each, for at least ``duration_s``."""
    motions: list[Motion] = []
    lasts, number = 0.0, 0
    here = around[-1]
    while lasts < duration_s:
        to = around[number % len(around)]
        pause = 1.5 + 2.5 * ((number * 0.618) % 1)
        motions += [walk([to], speed), standing(pause)]
        lasts += float(np.hypot(to[0] - here[0], to[1] - here[1])) / speed + pause + 1.0
        here, number = to, number + 1
    return sequence("loitering", motions)


def turning_round() -> Motion:
    return sequence("turning round", [standing(0.5), turn_to(np.pi), standing(0.5), turn_to(0.0), standing(0.5)])


MOTIONS: dict[str, Callable[[], list[Motion]]] = {
    "standing": lambda: [standing(6.0)],
    "walking": lambda: [walk([(4.0, 0.0)], 1.3)],
    "walking slowly": lambda: [walk([(2.5, 0.0)], 0.6)],
    "walking round a corner": lambda: [walk([(2.0, 0.0), (2.0, 2.0)], 1.2)],
    "running": lambda: [walk([(8.0, 0.0)], 3.0, name="running")],
    "turning round": lambda: [turning_round()],
    "sitting down": lambda: [standing(0.5), sit_down(1.6), sitting(2.0)],
    "sitting down fast": lambda: [standing(0.5), sit_down(0.6), sitting(2.0)],
    "standing up": lambda: [sitting(1.0), stand_up(), standing(1.0)],
    "bending": lambda: [standing(0.5), bend(), standing(0.5)],
    "tying shoes": lambda: [standing(0.5), tie_shoes(3.0), standing(0.5)],
    "tying shoes bent down": lambda: [standing(0.5), tie_shoes_bent(3.0), standing(0.5)],
    "crouching": lambda: [standing(0.5), crouch(), standing(0.5)],
    "ducking": lambda: [standing(0.5), duck(), standing(0.5)],
    "kneeling": lambda: [standing(0.5), kneel(), standing(0.5)],
    "push-ups": lambda: [standing(0.5), push_ups(3), standing(0.5)],
    "lying down on the back": lambda: [standing(0.5), lie_down("back"), lying("back", 2.0)],
    "lying down on the front": lambda: [standing(0.5), lie_down("front"), lying("front", 2.0)],
    "lying down on a side": lambda: [standing(0.5), lie_down("left"), lying("left", 2.0)],
    "rolling over": lambda: [lying("back", 1.5), roll_over("right"), lying("right", 1.5)],
    "falling forward": lambda: [standing(1.0), fall("forward")],
    "falling backward": lambda: [standing(1.0), fall("backward")],
    "falling sideways": lambda: [standing(1.0), fall("left")],
    "slumping": lambda: [standing(1.0), slump()],
    "tripping": lambda: [trip([(6.0, 0.0)])],
    "falling from a chair": lambda: [sitting(1.5), fall_from_chair()],
    "falling and getting up": lambda: [standing(0.5), fall("forward", lie_s=1.5), get_up(), standing(0.5)],
    "hands up": lambda: [gesturing("hands up", gestures.hands_up(0.5, 4.5), 5.0)],
    "quick raises": lambda: [gesturing("quick raises", gestures.quick_raise([1.0, 2.2, 3.4]), 4.5)],
    "one hand up": lambda: [gesturing("one hand up", gestures.one_hand_up("right", 0.5, 4.5), 5.0)],
    "waving": lambda: [gesturing("waving", gestures.waving("right", 0.5, 5.5), 6.0)],
    "calling for help": lambda: [gesturing("calling for help", gestures.calling_for_help(0.5, 5.5), 6.0)],
    "arms crossed": lambda: [gesturing("arms crossed", gestures.arms_crossed(0.5, 4.5), 5.0)],
    "phoning": lambda: [gesturing("phoning", gestures.phoning("right", 0.5, 5.5), 6.0)],
    "drinking": lambda: [gesturing("drinking", gestures.drinking("right", 0.5, 2.5), 3.5)],
    "texting": lambda: [gesturing("texting", gestures.texting("left", 0.5, 4.5), 5.0)],
    "reaching": lambda: [gesturing("reaching", gestures.reaching("right", 0.5, 3.5), 4.0)],
    "pointing": lambda: [gesturing("pointing", gestures.pointing("right", 0.5, 3.5), 4.0)],
    "carrying": lambda: [gesturing("carrying", gestures.carrying(), 0, while_doing=walk([(4.0, 0.0)], 1.1))],
    "kicking": lambda: [standing(0.5), kick(), standing(0.5)],
    "punching": lambda: [gesturing("punching", gestures.punching("right", [1.5, 2.3, 3.0]), 4.5)],
    "jumping": lambda: [standing(0.5), jump(), standing(0.5)],
    "loitering": lambda: [loiter([(1.5, 0.5), (0.0, 0.0), (1.0, -0.8)], 14.0)],
}
"""Each motion as somebody does it who starts at the world's origin, facing along x, in the posture of `starts_in`."""


def starts_in(name: str) -> Posture:
    """The posture in which a motion of `MOTIONS` begins."""
    seated: dict[str, Posture] = dict.fromkeys(("standing up", "falling from a chair"), SITTING)
    return {**seated, "rolling over": ON_BACK}.get(name, {})
