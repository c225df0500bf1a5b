"""The names that conditions know, and the term that stands for each.

person   of the joints, and of the Person          left_wrist.y  box.top  feet  speed  lean
pair     the same with `a.` and `b.` in front      a.feet  b.speed
scene    of the Scene                              count  people
"""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Collection, Iterable, Mapping
from itertools import islice
from typing import Literal, NamedTuple

from camgraph.stages.rules.language.expression import GRAMMAR_WORDS, UNSEEN_WORDS
from camgraph.stages.rules.language.functions import FUNCTIONS
from camgraph.stages.rules.language.kinds import EXACT_UNITS, Kind
from camgraph.stages.rules.language.people import (
    FRONTAL,
    LEAN,
    MIDDLES_AT,
    PAIRED,
    STATURE,
    TORSO,
)
from camgraph.stages.rules.language.terms import Arithmetic, Call, Constant, Fact, Joint, Term, Whose
from camgraph.stages.vision.skeleton import COCO_17

Scope = Literal["person", "pair", "scene"]


class Measure(NamedTuple):
    """A number, and its kind."""

    kind: Kind
    term: Term


class Place(NamedTuple):
    """The two numbers of a point. `of_body`: as a level camera would see the body; False: of the box."""

    x: Term
    y: Term
    of_body: bool = True


MIDDLES = {f"{joint}s" if joint != "foot" else "feet": joint for joint in PAIRED}
"""Between a left and a right joint: shoulders, hips, ..."""
_BOX = {"left": Kind.X, "right": Kind.X, "top": Kind.Y, "bottom": Kind.Y}


def _tall(whose: Whose) -> Term:
    return Call("high", (Fact(f"p{whose}", "h"), Joint(whose, STATURE)))


@functools.cache
def _values(whose: Whose) -> Mapping[str, Measure]:
    """The numbers that are known of a person."""
    p = f"p{whose}"
    return {
        "speed": Measure(Kind.SPEED, Fact(p, "speed")),
        "age": Measure(Kind.TIME, Fact(p, "age")),
        "score": Measure(Kind.NUMBER, Fact(p, "score")),
        "lean": Measure(Kind.ANGLE, Joint(whose, LEAN)),
        "frontal": Measure(Kind.NUMBER, Joint(whose, FRONTAL)),
        "torso": Measure(Kind.LENGTH, Joint(whose, TORSO)),
        "body_height": Measure(Kind.LENGTH, _tall(whose)),
        "box.width": Measure(Kind.LENGTH, Arithmetic("-", Fact(p, "right"), Fact(p, "left"))),
        "box.height": Measure(Kind.LENGTH, Fact(p, "h")),
        **{f"box.{side}": Measure(kind, Fact(p, side)) for side, kind in _BOX.items()},
    }


_VALUES = tuple(_values(""))
POINTS = (*COCO_17, *MIDDLES, "feet", "center")
_SCENE = {name: Measure(Kind.NUMBER, Fact("s", name)) for name in ("count", "people")}

NAMES = frozenset(
    {
        *POINTS,
        *(name.partition(".")[0] for name in _VALUES),
        *_SCENE,
        *FUNCTIONS,
        *("a", "b", *UNSEEN_WORDS),
        *PAIRED,
        *(f"other_{joint}" for joint in PAIRED),
        *GRAMMAR_WORDS,
    }
)
"""Words with a meaning of their own, which no definition may change."""

_FRAME: dict[str, Term] = {
    **{"fw": Fact("g", "width"), "fh": Fact("g", "height")},
    **{unit: Constant(value) for unit, value in EXACT_UNITS.items()},
}


def _body(unit: str, whose: Whose) -> Term:
    return {"h": Fact(f"p{whose}", "h"), "bl": Joint(whose, TORSO), "bh": _tall(whose)}[unit]


@functools.cache
def scale_of(unit: str, scope: Scope, whose: Whose) -> Term | None:
    """One of a unit, in pixels, seconds or degrees; None if the scope has no such unit."""
    if unit in _FRAME:
        return _FRAME[unit]
    body = unit.removesuffix("/s")
    if body not in ("h", "bl", "bh") or scope == "scene":
        return None
    if scope == "person":
        return _body(body, whose)
    return Arithmetic("/", Arithmetic("+", _body(body, "a"), _body(body, "b")), Constant(2))


def label_word(name: str) -> str:
    """A classifier's name of a class as conditions write it: `Falling down!` is Falling_down."""
    word = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_")
    return f"_{word}" if not word or word[0].isdigit() else word


@functools.lru_cache(maxsize=1024)
def look_up(parts: tuple[str, ...], scope: Scope, whose: Whose = "") -> Measure | Place:
    """The value of a dotted name. Raises KeyError with a message if there is no such name.

    `whose`: in the scope person, whom of a pair it is about.
    """
    name = ".".join(parts)
    if scope != "pair" and parts[0] in ("a", "b"):
        raise KeyError(f"`{name}` is about one of two people: it needs `scope: pair`")
    if scope == "scene":
        if name not in _SCENE:
            raise KeyError(f"a scene has no `{name}`; known: count, people (what is asked of each person: under `who`)")
        return _SCENE[name]
    if name in _SCENE:
        raise KeyError(f"`{name}` is about the whole frame: it is known only under `when`, with `scope: scene`")
    if scope == "person":
        return _of_person(parts, whose, "")
    owner = parts[0]
    if owner not in ("a", "b"):
        raise KeyError(f"`{name}` of whom? the two people of a pair are a and b: a.{owner} or b.{owner}")
    if len(parts) == 1:
        raise KeyError(f"`{owner}` is a person: write what of them, such as {owner}.feet")
    return _of_person(parts[1:], "a" if owner == "a" else "b", f"{owner}.")


def _point(name: str, whose: Whose) -> Place:
    p = f"p{whose}"
    if name == "feet":
        return Place(Fact(p, "x"), Fact(p, "bottom"), of_body=False)
    if name == "center":
        middle = Arithmetic("/", Arithmetic("+", Fact(p, "top"), Fact(p, "bottom")), Constant(2))
        return Place(Fact(p, "x"), middle, of_body=False)
    at = MIDDLES_AT + 2 * PAIRED.index(MIDDLES[name]) if name in MIDDLES else COCO_17.index(name) * 2
    return Place(Joint(whose, at), Joint(whose, at + 1))


def _of_person(parts: tuple[str, ...], whose: Whose, prefix: str) -> Measure | Place:
    found = _values(whose).get(".".join(parts))
    if found:
        return found
    if parts[0] in POINTS and len(parts) == 1:
        return _point(parts[0], whose)
    if parts[0] in POINTS and len(parts) == 2:
        return _coordinate(parts[0], parts[1], whose, prefix)
    raise KeyError(_unknown(parts, prefix))


def _coordinate(point: str, part: str, whose: Whose, prefix: str) -> Measure:
    place = _point(point, whose)
    if part == "x":
        return Measure(Kind.X, place.x)
    if part == "y":
        return Measure(Kind.Y, place.y)
    if part == "c" and point in COCO_17:
        return Measure(Kind.NUMBER, Fact(f"p{whose}", "confidences", (COCO_17.index(point),)))
    known = "x, y and c (confidence)" if point in COCO_17 else "x and y"
    raise KeyError(f"`{prefix}{point}` has no `{part}`: it has {known}")


_SIDES = {"left": "left", "l": "left", "right": "right", "r": "right"}
_OTHER_WORDS = {
    **dict.fromkeys(("hand", "finger", "palm", "fist", "thumb"), "wrist"),
    **dict.fromkeys(("foot", "toe", "heel"), "ankle"),
    **dict.fromkeys(("arm", "forearm"), "elbow"),
    **dict.fromkeys(("leg", "shin", "thigh"), "knee"),
    **dict.fromkeys(("waist", "pelvis", "buttock"), "hip"),
}
"""Parts of the body that have no joint of their own, and the joint that is nearest."""
_WITHOUT_SIDE = {
    **dict.fromkeys(("head", "face", "mouth", "chin", "forehead", "hair"), "nose"),
    **dict.fromkeys(("neck", "throat", "chest"), "shoulders"),
    **dict.fromkeys(("body", "middle", "centre", "belly", "stomach"), "center"),
    **dict.fromkeys(("foot", "ground"), "feet"),
    **dict.fromkeys(("height", "size"), "box.height"),
    **dict.fromkeys(("confidence", "probability"), "score"),
    **dict.fromkeys(("velocity", "pace"), "speed"),
    **dict.fromkeys(("tilt", "inclination"), "lean"),
    **{side: f"box.{side}" for side in ("top", "bottom", "left", "right", "width")},
    "back": "torso",
    "duration": "age",
}


def meant(word: str) -> str:
    """The name of what people mean by a word that is none: `left_hand`, `handLeft` and `l_hand` mean left_wrist.

    "" if that is not known.
    """
    if word in _WITHOUT_SIDE:
        return _WITHOUT_SIDE[word]
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=^left)(?=[a-z])|(?<=^right)(?=[a-z])", "_", word).lower()
    parts = [part for part in spaced.split("_") if part]
    sides = [_SIDES[part] for part in parts if part in _SIDES]
    rest = [part for part in parts if part not in _SIDES]
    if len(rest) != 1 or len(sides) > 1:
        return ""
    single = "foot" if rest[0] == "feet" else rest[0].removesuffix("s")
    joint = _OTHER_WORDS.get(single, single)
    if joint in PAIRED:
        return f"{sides[0]}_{joint}" if sides else f"{joint}s"
    return _WITHOUT_SIDE.get(single, "")


_OF_SIDES = re.compile(r"(?P<which>any|either|one|both|all|each)(?:_(?P<part>[a-z]+))?")


def sides_hint(word: str) -> str:
    """A hint at `either` for `any_arm`, and at `both` for `both_hands`; "" for other words."""
    found = _OF_SIDES.fullmatch(word)
    part = ((found["part"] or "hand") if found else "").removesuffix("s")
    joint = {**_OTHER_WORDS, "arm": "wrist", "feet": "ankle", "side": "wrist"}.get(part, part)
    if not found or joint not in PAIRED:
        return ""
    right = "both" if found["which"] in ("both", "all", "each") else "either"
    sides = "the left and" if right == "both" else "the left or"
    return f"; did you mean `{right}`? `{right}({joint}.y < nose.y)` is about {sides} the right one"


def suggestion(word: str, known: Iterable[str]) -> str:
    """`; did you mean `x`?` for the known word that is nearest, or nothing."""
    near = _near(word, tuple(known), 0.6)
    return f"; did you mean `{near}`?" if near else ""


def nearest_of(word: str, others: Collection[str]) -> str:
    """The one of these names that is like `word`, and more so than any name of the vocabulary; "" for none."""
    alike = (one for one in others if one[:1] == word[:1] and abs(len(one) - len(word)) <= _MOST_MISTYPED)
    compared = tuple(islice(alike, _COMPARED))
    near = _near(word, (*compared, *_singles()), _ALIKE)
    return near if near in compared else ""


@functools.lru_cache(maxsize=256)  # a name that is mistyped in a word is met wherever the word stands
def _near(word: str, known: tuple[str, ...], least: float) -> str:
    return next(iter(difflib.get_close_matches(word, known, n=1, cutoff=least)), "")


_ALIKE = 0.75
_MOST_MISTYPED = 2
_COMPARED = 100
"""A file may define thousands of words, and mistype as many."""


def _singles() -> list[str]:
    """The names that conditions may begin with."""
    return [*POINTS, *(value for value in _VALUES if "." not in value), "box"]


_KEYS_OF_RULES = {
    **dict.fromkeys(("visible", "visibility", "min_visible"), "min_visible"),
    **{key: key for key in ("min_confidence", "hold", "cooldown", "gap", "once", "severity", "during", "cameras")},
}
"""Words that people expect in conditions -> the key that they mean."""


def _unknown(parts: tuple[str, ...], prefix: str) -> str:
    name = ".".join(parts)
    singles = _singles()
    if parts[0] == "box":
        sides = [value.partition(".")[2] for value in _VALUES if value.startswith("box.")]
        guess = suggestion(parts[1] if len(parts) > 1 else "", sides) or f"; it has {', '.join(sides)}"
        return f"`{prefix}{name}` is not known{guess}"
    if parts[0] in singles:
        return f"`{prefix}{name}` is not known: `{prefix}{parts[0]}` has no `{'.'.join(parts[1:])}`"
    if parts[0] in PAIRED:
        middle = next(name for name, joint in MIDDLES.items() if joint == parts[0])
        return (
            f"`{prefix}{name}` is not known; did you mean `{middle}`, or either(...) or both(...) around the condition?"
        )
    if parts[0] in _KEYS_OF_RULES:
        key = _KEYS_OF_RULES[parts[0]]
        return f"`{prefix}{name}` is not known: `{key}` is a key of the rule, and stands beside `when`"
    guess = f"; did you mean `{right}`?" if (right := meant(parts[0])) else suggestion(parts[0], singles)
    guess = sides_hint(parts[0]) or guess
    return f"`{prefix}{name}` is not known{guess or '; `camgraph help rules` lists the names'}"
