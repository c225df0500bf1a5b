"""Ready-made scenes. Each is a function of a seed, which decides who comes when, how fast and which way.

Those with walkers fit `FRONT`, which stands at the world's origin and looks along y; the rooms fit `ROOM`. One motion
alone is at the origin: place a camera with `Camera(height_m=1.6).at(5.0, bearing_deg=30.0)`, or take all of `views`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from camgraph.tools.scenes.animator import gestures
from camgraph.tools.scenes.animator.body import Body, Side
from camgraph.tools.scenes.animator.camera import Camera
from camgraph.tools.scenes.animator.library import (
    MOTIONS,
    SITTING,
    LyingSide,
    Way,
    bend,
    crouch,
    duck,
    fall,
    fall_from_chair,
    gesturing,
    jump,
    kick,
    kneel,
    lie_on_bed,
    loiter,
    push_ups,
    rise_from_bed,
    roll_over,
    sit_down,
    sitting,
    slump,
    stand_up,
    standing,
    starts_in,
    tie_shoes,
    trip,
    waiting,
)
from camgraph.tools.scenes.animator.motion import Motion
from camgraph.tools.scenes.animator.pose import Posture
from camgraph.tools.scenes.animator.scene import Actor, Scene
from camgraph.tools.scenes.animator.silhouette import Block
from camgraph.tools.scenes.animator.walking import turn_to, walk

Point = tuple[float, float]

FRONT = Camera(height_m=2.6, tilt_deg=14, heading_deg=90)
"""Over a door, looking along y: the floor from 3.6 m on."""
ROOM = Camera(height_m=2.5, tilt_deg=20, heading_deg=90, fov_deg=85)
"""In the middle of a room's wall, under the ceiling."""
HEIGHTS_M = (0.8, 1.6, 2.6, 4.0)
OUT_OF_VIEW_M = 9.0


def alone(
    motions: Sequence[Motion], *, heading_deg: float = 0.0, body: Body | None = None, posture: Posture | None = None
) -> Scene:
    """One person at the world's origin, who begins in ``posture``."""
    return Scene("alone", [Actor(motions, heading_deg=heading_deg, body=body, posture=posture or {})])


def motion_alone(name: str, *, body: Body | None = None) -> Scene:
    """A motion of the library (`library.MOTIONS`)."""
    return Scene(name, [Actor(MOTIONS[name](), body=body, posture=starts_in(name))])


def views(
    heights_m: Sequence[float] = HEIGHTS_M,
    distances_m: Sequence[float] = (3.0, 5.0, 8.0),
    bearings_deg: Sequence[float] = (0.0, 45.0, 90.0, 180.0, 270.0),
    size: tuple[int, int] = (1280, 720),
) -> Iterator[Camera]:
    """Cameras around the world's origin, each aimed at somebody there: up from 0.8 m, steeply down from 4 m."""
    for height in heights_m:
        for distance in distances_m:
            for bearing in bearings_deg:
                yield Camera(height, size=size).at(distance, bearing)


def falls(*, seconds: Sequence[float] = (0.5, 0.8, 1.2)) -> Iterator[Scene]:
    """Falls of every kind and duration from a stand, after 1.5 s; a trip, a slump and a fall from a chair."""
    ways: tuple[Way, ...] = ("forward", "backward", "left", "right")
    for lasting in seconds:
        for way in ways:
            yield Scene(f"falling {way} in {lasting:g} s", [Actor([standing(1.5), fall(way, lasting, lie_s=12.0)])])
    yield Scene("tripping", [Actor([trip([(4.0, 0.0)], lie_s=12.0)], x=-3.0)])
    yield Scene("slumping", [Actor([standing(1.5), slump(lie_s=12.0)])])
    yield Scene("falling from a chair", [Actor([sitting(1.5), fall_from_chair(lie_s=12.0)], posture=SITTING)])


def lost_fall(way: Way = "forward", *, seconds: float = 0.9, seen_s: float = 0.7) -> Scene:
    """A fall after a stand of 2 s of which only the first ``seen_s`` are seen: then nobody is there."""
    actor = Actor([standing(2.0), fall(way, seconds, lie_s=8.0)], gone_s=2.0 + seen_s)
    return Scene(f"falling {way}, lost after {seen_s:g} s", [actor])


def walk_and_fall(way: Way = "forward", *, seconds: float = 0.9) -> Scene:
    """Somebody crosses the picture, falls, lies for 10 s, and stays."""
    motions = [walk([(0.3, 6.0)], 1.2), fall(way, seconds, lie_s=10.0)]
    return Scene(f"walking, then falling {way}", [Actor(motions, -4.0, 6.0)])


def not_falls() -> Iterator[Scene]:
    """Motions that go down without being falls; each as in the library, and sitting down fast and slowly."""
    for name in (
        *(
            "sitting down",
            "sitting down fast",
            "bending",
            "tying shoes",
            "tying shoes bent down",
            "crouching",
            "ducking",
            "kneeling",
            "push-ups",
        ),
        *("lying down on the back", "lying down on the front", "lying down on a side", "jumping"),
    ):
        yield motion_alone(name)
    yield Scene("walking out of the picture", [Actor([walk([(9.0, 4.5)], 1.4)], -1.0, 5.0)])


def crossing_walks(seed: int = 0, *, people: int = 4, duration_s: float = 20.0) -> Scene:
    """People who cross the picture in both directions and pass each other at different distances, again and again."""
    rng = np.random.default_rng([seed, 101])
    actors = []
    for number in range(people):
        way = 1.0 if number % 2 else -1.0
        near = float(rng.uniform(4.0, 9.0))
        far = min(OUT_OF_VIEW_M, near * 0.85 + 1.5)
        speed = float(rng.uniform(0.9, 1.6))
        motions: list[Motion] = []
        lasts, at = 0.0, -way
        while lasts < duration_s + 9.0:
            drift = float(rng.uniform(-1.2, 1.2))
            at = -at
            motions.append(walk([(at * far * 0.3, near + drift * 0.5), (at * far, near + drift)], speed))
            lasts += 2 * far / speed
        start = (-way * far, near)
        heading = 0.0 if way > 0 else 180.0
        actors.append(Actor(motions, *start, heading, start_s=float(rng.uniform(-9.0, 2.0))))
    return Scene("crossing walks", actors, duration_s=duration_s)


def hiding_behind_pillars(seed: int = 0, *, people: int = 3, duration_s: float = 40.0) -> Scene:
    """People walk to and fro behind pillars and a wide screen, and now and then stay behind one for 1 to 4 s."""
    rng = np.random.default_rng([seed, 102])
    pillars = (
        *(Block(x, 5.0, 0.6, 0.6, 3.2) for x in (-2.6, -0.4, 2.2)),
        Block(1.0, 5.6, 1.5, 0.1, 1.9),
    )
    actors = []
    for _ in range(people):
        near = float(rng.uniform(6.0, 8.5))
        motions: list[Motion] = []
        lasts, x = 0.0, float(rng.uniform(-6, 6))
        start, speed = x, float(rng.uniform(0.8, 1.4))
        while lasts < duration_s:
            behind = float(rng.choice([-2.6, -0.4, 2.2, 1.0])) * near / 5.0
            to = behind if rng.random() < 0.35 else float(np.sign(-x) or 1.0) * float(rng.uniform(2.5, 6.5))
            pause = float(rng.uniform(1.0, 4.0)) if to == behind else float(rng.uniform(0.0, 1.0))
            motions += [walk([(to, near + float(rng.uniform(-0.4, 0.4)))], speed), standing(pause)]
            lasts += abs(to - x) / speed + pause + 1.0
            x = to
        actors.append(Actor(motions, start, near, 0.0 if start < 0 else 180.0))
    return Scene("hiding behind pillars", actors, pillars, duration_s)


def leaving_and_returning(seed: int = 0, *, people: int = 3, duration_s: float = 60.0) -> Scene:
    """People walk out of the picture at a side and come back there after 1 to 12 s, where others come in meanwhile."""
    rng = np.random.default_rng([seed, 103])
    actors = []
    for number in range(people):
        near = float(rng.uniform(4.5, 8.0))
        outside = near * 0.75 + 1.6
        side = 1.0 if number % 2 else -1.0
        speed = float(rng.uniform(1.0, 1.5))
        motions: list[Motion] = []
        lasts = 0.0
        while lasts < duration_s:
            inner = float(rng.uniform(-0.4, 0.4)) * near
            away = float(rng.uniform(1.0, 12.0))
            stay = float(rng.uniform(0.2, 3.0))
            motions += [walk([(inner, near)], speed), standing(stay), walk([(side * outside, near)], speed)]
            motions.append(standing(away))
            lasts += 2 * abs(outside * side - inner) / speed + stay + away + 3.0
            side = -side if rng.random() < 0.3 else side
        first = 1.0 if number % 2 else -1.0
        start_s = float(rng.uniform(-3.0, 4.0))
        actors.append(Actor(motions, first * outside, near, 180.0 if first > 0 else 0.0, start_s=start_s))
    return Scene("leaving and returning", actors, duration_s=duration_s)


def crowd(seed: int = 0, *, people: int = 16, duration_s: float = 30.0) -> Scene:
    """Walkers in all directions around a few who stand together."""
    rng = np.random.default_rng([seed, 104])
    actors = []
    for number in range(people):
        x, y = float(rng.uniform(-4, 4)), float(rng.uniform(4.5, 11.0))
        heading = float(rng.uniform(-180, 180))
        if number % 4 == 0:
            hand: Side = "left" if rng.random() < 0.5 else "right"
            adjust = gestures.phoning(hand, 3.0, 15.0) if number % 8 else gestures.texting(hand, 2.0)
            actors.append(Actor([gesturing("standing", adjust, duration_s)], x, y, heading))
            continue
        motions: list[Motion] = []
        lasts, at = 0.0, (x, y)
        speed = float(rng.uniform(0.7, 1.6))
        while lasts < duration_s:
            to = (float(rng.uniform(-6, 6)), float(rng.uniform(4.2, 11.5)))
            if np.hypot(to[0] - at[0], to[1] - at[1]) < 2.0:
                continue
            motions.append(walk([to], speed, round_m=0.8))
            lasts += float(np.hypot(to[0] - at[0], to[1] - at[1])) / speed + 1.0
            at = to
        actors.append(Actor(motions, x, y, heading))
    return Scene("crowd", actors, duration_s=duration_s)


def meeting(seed: int = 0, *, people: int = 3) -> Scene:
    """People come from all sides, stand together and talk, walk together for a while, and go apart."""
    rng = np.random.default_rng([seed, 105])
    middle, onward = np.array([-1.0, 6.5]), np.array([2.2, 5.5])
    actors = []
    for number in range(people):
        angle = 2 * np.pi * number / people + float(rng.uniform(-0.3, 0.3))
        away = np.array([np.cos(angle), np.sin(angle)])
        start, spot = middle + away * [6.5, 3.0], middle + away * 0.75
        beside = onward + away * 0.6
        apart = onward + np.array([np.cos(angle + 0.8) * 7.0, np.sin(angle + 0.8) * 3.0])
        arrives = float(np.hypot(*(start - spot))) / 1.2
        hand: Side = "left" if number % 2 else "right"
        talking = gestures.together(
            gestures.pointing(hand, 2.0 + number, 3.6 + number), gestures.arms_crossed(5.5 + number, 9.0)
        )
        motions = [
            *(walk([_point(spot)], 1.2), turn_to(angle + np.pi)),
            gesturing("talking", talking, 16.0 - min(8.0, arrives)),
            *(walk([_point(beside)], 1.0), standing(0.5), walk([_point(apart)], 1.3)),
        ]
        heading = float(np.degrees(angle)) + 180.0
        actors.append(Actor(motions, float(start[0]), float(start[1]), heading))
    return Scene("meeting", actors)


def in_and_out(times: int = 3, *, stay_s: float = 4.0, zone: Point = (0.0, 6.0)) -> Scene:
    """Somebody walks from (-4, 6) to a place, stays there for ``stay_s``, and goes back, so many times."""
    motions: list[Motion] = []
    for _ in range(times):
        motions += [walk([zone], 1.2), standing(stay_s), walk([(-4.0, 6.0)], 1.2), standing(2.0)]
    return Scene("in and out", [Actor(motions, -4.0, 6.0)])


def loitering(duration_s: float = 90.0) -> Scene:
    """Somebody who paces between four places, and a passer-by."""
    places = [(-1.0, 6.0), (1.2, 6.6), (0.4, 5.2), (-0.8, 7.0)]
    pacing = Actor([loiter(places, duration_s)], -0.8, 7.0)
    return Scene("loitering", [pacing, Actor([walk([(8.0, 8.0)], 1.4)], -8.0, 8.0, start_s=5.0)])


def exercise(seed: int = 0, *, rounds: int = 3) -> Scene:
    """Gymnastics before the camera: quick raises of the hands, ducks, push-ups, kicks, hops, punches."""
    rng = np.random.default_rng([seed, 106])
    raises = [0.6 + 0.9 * number for number in range(6)]
    parts = [
        gesturing("quick raises", gestures.quick_raise(raises), 6.5),
        *(duck(0.2), duck(0.5), push_ups(4, 1.3), kick(3), jump(4)),
        gesturing("punching", gestures.punching("left", [1.2, 1.9, 2.6, 3.3]), 4.5),
    ]
    motions: list[Motion] = []
    for _ in range(rounds):
        for number in rng.permutation(len(parts)):
            motions += [parts[int(number)], standing(float(rng.uniform(0.5, 2.0)))]
    return Scene("exercise", [Actor(motions, 0.0, 5.0, 270.0)])


def office(seed: int = 0, *, hours: float = 1.0, people: int = 4) -> Scene:
    """People come in, sit at desks and type, drink and phone, fetch things, tie their shoes, go out and come back.

    Nobody falls or raises both hands: what a rule says here about that is a false alarm.
    """
    rng = np.random.default_rng([seed, 107])
    desks = [(-2.6, 4.6), (2.6, 4.6), (-2.6, 7.4), (2.6, 7.4), (0.0, 9.4), (-4.6, 9.4), (4.6, 9.4)]
    furniture = [Block(x, y - 0.75, 1.5, 0.7, 0.74) for x, y in desks[:people]]
    furniture.append(Block(5.2, 6.0, 0.4, 1.2, 2.0))
    door: Point = (-7.5, 6.0)
    actors = []
    for number in range(people):
        desk = desks[number % len(desks)]
        motions: list[Motion] = []
        lasts, at = 0.0, door
        speed = float(rng.uniform(1.0, 1.4))
        while lasts < hours * 3600:
            seat_s = float(rng.uniform(60.0, 900.0))
            motions += _to(at, desk, speed)
            motions += [turn_to(np.radians(270.0)), sit_down(float(rng.uniform(0.7, 1.8)))]
            motions += _at_a_desk(rng, seat_s)
            motions.append(stand_up(float(rng.uniform(1.0, 2.0))))
            lasts += seat_s + 20.0
            at, extra_s = _errand(rng, motions, desk, door, speed)
            lasts += extra_s
        actors.append(Actor(motions, *door, 0.0, start_s=float(rng.uniform(-600.0, 60.0))))
    return Scene("office", actors, tuple(furniture), hours * 3600)


def _to(at: Point, to: Point, speed: float) -> list[Motion]:
    """Along the aisle at y = 6, so that nobody walks through a desk."""
    if abs(at[1] - to[1]) < 0.3 or abs(to[1] - 6.0) < 0.3:
        return [walk([to], speed)]
    aside = to[0] + (1.1 if to[0] < 0 else -1.1)
    return [walk([(aside, 6.0), (aside, to[1]), to], speed)]


def _at_a_desk(rng: np.random.Generator, seconds: float) -> list[Motion]:
    """Typing in stretches, with a sip, a call or a stretch of the arms between."""
    motions: list[Motion] = []
    while seconds > 0:
        part = min(seconds, float(rng.uniform(15.0, 120.0)))
        hand: Side = "left" if rng.random() < 0.3 else "right"
        choice = rng.random()
        base = sitting(part)
        if choice < 0.55:
            motions.append(gesturing("typing", gestures.typing(0.0, part), part, while_doing=base))
        elif choice < 0.7:
            motions.append(gesturing("drinking", gestures.drinking(hand, 1.0, 3.0), part, while_doing=base))
        elif choice < 0.82:
            motions.append(gesturing("phoning", gestures.phoning(hand, 1.0, part), part, while_doing=base))
        elif choice < 0.9:
            motions.append(gesturing("arms crossed", gestures.arms_crossed(0.5, part), part, while_doing=base))
        else:
            motions.append(base)
        seconds -= part
    return motions


def _errand(
    rng: np.random.Generator, motions: list[Motion], desk: Point, door: Point, speed: float
) -> tuple[Point, float]:
    """Something between two times at the desk; where it ends, and about how long it takes."""
    choice = rng.random()
    if choice < 0.4:
        away = float(rng.uniform(5.0, 240.0))
        motions += [walk([(desk[0] + (1.1 if desk[0] < 0 else -1.1), desk[1]), door], speed), standing(away)]
        return door, away + 8.0
    if choice < 0.6:
        shelf = (4.4, 6.0)
        fetch = gesturing("reaching", gestures.reaching("right", 0.5, 4.0), 5.0)
        motions += [*_to(desk, shelf, speed), turn_to(0.0), fetch]
        return shelf, 12.0
    side = (desk[0] + (1.1 if desk[0] < 0 else -1.1), desk[1])
    motions.append(walk([side], speed))
    motions.append(
        bend() if choice < 0.75 else tie_shoes(float(rng.uniform(3.0, 6.0))) if choice < 0.85 else standing(20.0)
    )
    return side, 12.0


def care_room(seed: int = 0, *, hours: float = 1.0) -> Scene:
    """A resident who walks slowly, sits in an armchair, lies in bed and kneels; a carer looks in. Nobody falls."""
    rng = np.random.default_rng([seed, 108])
    bed = Block(-2.0, 6.2, 2.2, 0.9, 0.42)
    chair = Block(2.4, 6.9, 0.8, 0.5, 0.95)
    table = Block(0.6, 8.2, 1.0, 0.7, 0.72)
    motions: list[Motion] = []
    lasts = 0.0
    while lasts < hours * 3600:
        spent = _in_bed(rng, motions) if rng.random() < 0.4 else _in_the_armchair(rng, motions)
        lasts += spent
        motions += [walk([(0.4, 5.4), (0.8, 7.2)], 0.6), standing(float(rng.uniform(3.0, 30.0)))]
        if rng.random() < 0.3:
            motions.append(kneel(float(rng.uniform(2.0, 6.0))) if rng.random() < 0.5 else bend(1.5))
        lasts += 30.0
    resident = Actor(motions, 0.8, 5.4, 180.0, body=Body(1.63, build=1.15))
    visits: list[Motion] = []
    spent = 0.0
    while spent < hours * 3600:
        pause, stay = float(rng.uniform(120.0, 900.0)), float(rng.uniform(5.0, 60.0))
        visits += [standing(pause), walk([(-0.3, 4.9)], 1.3), gesturing("talking", gestures.carrying(), stay)]
        visits.append(walk([(8.0, 4.6)], 1.3))
        spent += pause + stay + 14.0
    carer = Actor(visits, 8.0, 4.6, 180.0)
    return Scene("care room", [resident, carer], (bed, chair, table), hours * 3600)


def night(seed: int = 0, *, hours: float = 1.0) -> Scene:
    """A resident sleeps below a blanket, rolls over and goes to the bathroom; a carer looks in. Nobody falls."""
    rng = np.random.default_rng([seed, 110])
    bed = Block(-2.0, 6.2, 2.2, 0.9, 0.42)
    blanket = Block(-2.4, 6.2, 1.4, 0.9, 0.36, bottom=0.42)
    motions: list[Motion] = []
    lasts = 0.0
    while lasts < hours * 3600:
        away, asleep = float(rng.uniform(60.0, 300.0)), 0.0
        motions += [walk([(0.0, 5.3), (-2.2, 5.3)], 0.5), turn_to(np.radians(270.0)), sit_down(2.4), sitting(8.0)]
        motions.append(lie_on_bed("back"))
        for _ in range(rng.integers(2, 8)):
            stay = float(rng.uniform(120.0, 1200.0))
            motions += [waiting(stay), roll_over(_any_side(rng), height_m=0.5)]
            asleep += stay
        motions += [waiting(30.0), roll_over("back", height_m=0.5), rise_from_bed(), sitting(20.0), stand_up(3.0)]
        motions += [walk([(0.4, 5.0), (8.0, 4.6)], 0.5), standing(away)]
        lasts += asleep + away + 110.0
    resident = Actor(motions, 8.0, 4.6, 180.0, body=Body(1.66, build=1.1), start_s=-float(rng.uniform(0.0, 1500.0)))
    visits: list[Motion] = []
    spent = 0.0
    while spent < hours * 3600:
        pause, stay = float(rng.uniform(1800.0, 7200.0)), float(rng.uniform(4.0, 40.0))
        visits += [standing(pause), walk([(0.5, 5.0)], 1.0), standing(stay), walk([(8.0, 4.6)], 1.0)]
        spent += pause + stay + 16.0
    carer = Actor(visits, 8.0, 4.6, 180.0)
    return Scene("night", [resident, carer], (bed, blanket), hours * 3600)


def _any_side(rng: np.random.Generator) -> LyingSide:
    sides: tuple[LyingSide, ...] = ("back", "back", "left", "right")
    return sides[int(rng.integers(len(sides)))]


def shop(seed: int = 0, *, hours: float = 1.0, people: int = 5) -> Scene:
    """Customers come in, look at shelves, reach up and bend down, meet somebody, queue at the till and go; one person
    stands behind the till. Nobody falls, lies or raises both hands.
    """
    rng = np.random.default_rng([seed, 109])
    shelves = (Block(-3.4, 8.2, 0.5, 3.0, 1.9), Block(3.8, 8.6, 0.5, 2.5, 1.9))
    till = Block(2.6, 5.2, 0.6, 1.4, 0.95)
    actors = [_cashier(rng, hours)]
    for number in range(people):
        speed = float(rng.uniform(0.8, 1.4))
        motions: list[Motion] = []
        lasts, spot = 0.0, (1.7, 5.2 + 0.7 * (number % 3))
        while lasts < hours * 3600:
            for _ in range(int(rng.integers(1, 4))):
                lasts += _at_a_shelf(rng, motions, speed)
            wait = float(rng.uniform(5.0, 60.0))
            motions += [walk([spot], speed), turn_to(0.0), _waiting_in_a_queue(rng, wait)]
            away = float(rng.uniform(10.0, 120.0))
            motions += [walk([(0.4, 5.0), (-7.5, 4.8)], speed), standing(away)]
            lasts += wait + away + 22.0
        actors.append(Actor(motions, -7.5, 4.8, 0.0, start_s=float(rng.uniform(-300.0, 60.0))))
    return Scene("shop", actors, (*shelves, till), hours * 3600)


def _cashier(rng: np.random.Generator, hours: float) -> Actor:
    """To and fro behind the till, with things in the hands."""
    motions: list[Motion] = []
    lasts = 0.0
    while lasts < hours * 3600:
        busy = float(rng.uniform(10.0, 60.0))
        handing = gestures.together(gestures.reaching("left", 3.0, 4.2), gestures.typing(5.0, busy))
        motions += [gesturing("at the till", handing, busy), walk([(3.4, 6.0)], 0.8), standing(3.0)]
        motions += [walk([(3.4, 5.2)], 0.8), turn_to(np.pi)]
        lasts += busy + 9.0
    return Actor(motions, 3.4, 5.2, 180.0)


def _at_a_shelf(rng: np.random.Generator, motions: list[Motion], speed: float) -> float:
    """Go to a shelf and look, take something from above or below, or meet somebody on the way; how long it takes."""
    left = rng.random() < 0.5
    place = (-2.7 if left else 3.1, float(rng.uniform(7.2, 9.4)))
    look = float(rng.uniform(3.0, 25.0))
    motions += [walk([(0.0, 6.6), place], speed), turn_to(np.pi if left else 0.0), standing(look)]
    hand: Side = "left" if rng.random() < 0.3 else "right"
    choice = rng.random()
    if choice < 0.35:
        motions.append(gesturing("reaching", gestures.reaching(hand, 0.4, 2.4), 3.2))
    elif choice < 0.55:
        motions.append(bend(float(rng.uniform(0.5, 2.0))))
    elif choice < 0.7:
        motions.append(crouch(float(rng.uniform(1.0, 5.0))))
    elif choice < 0.85:
        motions += [
            walk([(-0.2, 7.4)], speed),
            gesturing("talking", gestures.carrying(), float(rng.uniform(5.0, 40.0))),
        ]
    return look + 12.0


def _waiting_in_a_queue(rng: np.random.Generator, seconds: float) -> Motion:
    choice = rng.random()
    if choice < 0.4:
        return gesturing("waiting", gestures.texting("right", 1.0, seconds), seconds)
    if choice < 0.6:
        return gesturing("waiting", gestures.carrying(0.5, seconds), seconds)
    return standing(seconds)


def _in_bed(rng: np.random.Generator, motions: list[Motion]) -> float:
    """To the bed's edge, onto it, up again; the back of somebody who sits there is towards y."""
    side = _any_side(rng)
    stay = float(rng.uniform(60.0, 1200.0))
    motions += [walk([(0.0, 5.3), (-2.2, 5.3)], 0.6), turn_to(np.radians(270.0)), sit_down(2.2), sitting(4.0)]
    motions += [lie_on_bed(side), waiting(stay), rise_from_bed(), sitting(5.0), stand_up(2.4)]
    return stay + 35.0


def _in_the_armchair(rng: np.random.Generator, motions: list[Motion]) -> float:
    stay = float(rng.uniform(60.0, 1200.0))
    drink = gesturing("drinking", gestures.drinking("right", 2.0, 3.0), 12.0, while_doing=sitting(12.0))
    motions += [walk([(1.2, 5.6), (2.4, 6.2)], 0.6), turn_to(np.radians(270.0)), sit_down(2.0)]
    motions += [sitting(stay / 2), drink, sitting(stay / 2), stand_up(2.2)]
    return stay + 30.0


def _point(place: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> Point:
    return float(place[0]), float(place[1])


SCENES: dict[str, Callable[[int], Scene]] = {
    **{"crossing walks": crossing_walks, "hiding behind pillars": hiding_behind_pillars},
    **{"leaving and returning": leaving_and_returning, "crowd": crowd, "meeting": meeting, "exercise": exercise},
}
"""Scenes of a minute or less, by name; `SCENES[name](seed)`."""

__all__ = [
    "FRONT",
    "HEIGHTS_M",
    "ROOM",
    "SCENES",
    "alone",
    "care_room",
    "crossing_walks",
    "crowd",
    "exercise",
    "falls",
    "hiding_behind_pillars",
    "in_and_out",
    "leaving_and_returning",
    "loitering",
    "lost_fall",
    "meeting",
    "motion_alone",
    "night",
    "not_falls",
    "office",
    "shop",
    "views",
    "walk_and_fall",
]
