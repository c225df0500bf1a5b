"""Draws people on pictures, for a person's eyes: boxes, skeletons, labels, captions.

Pictures are (H, W, 3) uint8 BGR and are drawn on in place. Coordinates are pixels of the picture, x to the right,
y down; pixel i covers [i, i + 1). Lines and letters grow with the picture, and thin out for small people.

    orange: left side    blue: right side    grey: head and trunk    (left is the person's left)
    the colour of an id: its box, its label, and the way that it has gone
    green: zones and lines, with a small arrow to the right of a line    red: a rule fires on this
"""

from __future__ import annotations

import colorsys
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from camgraph.stages.vision.skeleton import COCO_17_BONES

F32 = NDArray[np.float32]
Picture = NDArray[np.uint8]
Colour = tuple[int, int, int]
Point = tuple[float, float]
"""x, y in pixels of the picture."""
Side = Literal["left", "right", "middle"]

SIDE_COLOURS: dict[Side, Colour] = {"left": (40, 150, 255), "right": (255, 160, 40), "middle": (215, 215, 215)}


SHAPE_COLOUR: Colour = (120, 220, 90)
"""Of zones and lines."""
ALARM_COLOUR: Colour = (50, 50, 240)
"""The people on whom a rule fires, and the rule."""
_AS_ASCII = str.maketrans({
    **{"ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th"},
    **{"Æ": "AE", "Œ": "OE", "Ø": "O", "Ł": "L", "Đ": "D", "Ð": "D", "Þ": "TH"},
})  # fmt: skip
"""Letters that are no letter with a mark."""
GOLDEN_RATIO = 0.6180339887498949
FONT = cv2.FONT_HERSHEY_SIMPLEX
FRACTION_BITS = 4
"""cv2 takes coordinates in sixteenths of a pixel, so that a skeleton does not tremble."""
MOST_REASONS = 3
FAR = 16384.0
"""Coordinates are cut here: cv2 overflows on larger ones."""
_LABEL_STEPS = 6
"""How many heights of a label it may be moved up or down; one that finds no place stands where it belongs."""


class Pen(NamedTuple):
    """Sizes in pixels that suit a picture."""

    line: int
    font_scale: float
    pad: int


class Trail(NamedTuple):
    """The way of one person: ``points`` (N, 2) in pixels, the oldest first; ``ages`` (N,) from 0, new, to 1, gone.

    ``begins`` (N,): to this point no line leads.
    """

    track_id: int
    points: F32
    ages: F32
    begins: NDArray[np.bool_]


def pen_for(picture: Picture) -> Pen:
    """The sizes for this picture: a line of 2 and letters of 10 pixels if the short side has 480."""
    unit = min(picture.shape[:2]) / 480
    return Pen(max(1, round(2 * unit)), max(0.35, 0.45 * unit), max(2, round(4 * unit)))


def id_colour(track_id: int) -> Colour:
    """The BGR colour of an id: always the same, and far in hue from its neighbours'."""
    red, green, blue = colorsys.hsv_to_rgb(track_id * GOLDEN_RATIO % 1.0, 0.75, 1.0)
    return round(blue * 255), round(green * 255), round(red * 255)


def side_of(joint: int) -> Side:
    """On which side of the person a joint of coco-17 is."""
    if joint == 0:
        return "middle"
    return "left" if joint % 2 else "right"


def bone_side(start: int, end: int) -> Side:
    """Left or right if both ends are on that side (the head's lines to the nose too), else the middle."""
    sides = {side_of(start), side_of(end)} - {"middle"}
    return sides.pop() if len(sides) == 1 else "middle"


def draw_people(
    picture: Picture,
    boxes_xyxy: F32,
    keypoints: F32,
    ids: Sequence[int],
    labels: Sequence[str],
    *,
    skeleton: str = "coco-17",
    min_confidence: float = 0.3,
    alarmed: Collection[int] = (),
    places: LabelPlaces | None = None,
) -> None:
    """Draw N people: ``boxes_xyxy`` (N, 4), ``keypoints`` (N, K, 3) x, y, confidence, an id and a label each.

    Joints below ``min_confidence``, and the bones they end, are left out; so are values that are not finite. A skeleton
    other than coco-17 shows its joints only. Labels come last, so that no line crosses one, and none covers another or
    what else is in ``places``. Of the ids in ``alarmed`` box and label are red, and their labels find a place first.
    """
    colours = [ALARM_COLOUR if track_id in alarmed else id_colour(int(track_id)) for track_id in ids]
    for box, colour in zip(boxes_xyxy, colours, strict=True):
        draw_box(picture, box, colour)
    for box, joints, colour in zip(boxes_xyxy, keypoints, colours, strict=True):
        line = _limb_line(picture, box)
        draw_skeleton(picture, joints, skeleton, colour, min_confidence=min_confidence, line=line)
    places = places or free_places(picture)
    for row in sorted(range(len(ids)), key=lambda row: ids[row] not in alarmed):
        box, label = boxes_xyxy[row], labels[row]
        if label and np.isfinite(box).all():
            draw_label(picture, label, (float(box[0]), float(box[1])), colours[row], places)


def draw_trails(picture: Picture, trails: Sequence[Trail]) -> None:
    """The ways that people have gone, in the colours of their ids, fading towards their beginnings."""
    shown = [trail for trail in trails if np.isfinite(trail.points).all() and len(trail.points) > 1]
    if not shown:
        return
    line = pen_for(picture).line + 1
    corners = np.concatenate([trail.points for trail in shown])
    height, width = picture.shape[:2]
    left, top = np.clip(corners.min(axis=0) - 2 * line, 0, (width, height)).astype(int)
    right, bottom = np.clip(corners.max(axis=0) + 2 * line + 1, 0, (width, height)).astype(int)
    if left >= right or top >= bottom:
        return
    part = picture[top:bottom, left:right]
    ink, share = part.copy(), np.zeros(part.shape[:2], np.uint8)
    for trail in shown:
        _draw_way(ink, share, trail._replace(points=trail.points - np.array((left, top), np.float32)), line)
    weight = share.astype(np.float32) / 255
    part[:] = cv2.blendLinear(ink, part, weight, 1 - weight)


def _draw_way(ink: Picture, share: NDArray[np.uint8], trail: Trail, line: int) -> None:
    """Lines into ``ink`` (H, W, 3), and into ``share`` (H, W) how much of it is to be seen, 0 to 255; ``line``: their
    thickness.
    """
    colour = id_colour(trail.track_id)
    fixed = [_fixed(point) for point in trail.points]
    for row in range(1, len(fixed)):
        if not trail.begins[row]:
            ends = fixed[row - 1], fixed[row]
            seen = round(255 * max(0.0, 0.9 * (1 - float(trail.ages[row]))))
            cv2.line(ink, *ends, colour, line + 2, cv2.LINE_8, FRACTION_BITS)
            cv2.line(share, *ends, seen, line, cv2.LINE_AA, FRACTION_BITS)


def draw_box(picture: Picture, box_xyxy: F32, colour: Colour) -> None:
    """The outline of one box (4,); nothing if a side is not finite."""
    if np.isfinite(box_xyxy).all():
        low, high = _fixed(box_xyxy[:2]), _fixed(box_xyxy[2:])
        cv2.rectangle(picture, low, high, colour, pen_for(picture).line, cv2.LINE_AA, FRACTION_BITS)


def draw_skeleton(
    picture: Picture, joints: F32, skeleton: str, colour: Colour, *, min_confidence: float, line: int
) -> None:
    """One person's bones and joints: ``joints`` (K, 3). ``colour``: of joints without a side. ``line``: in pixels."""
    shown = (joints[:, 2] >= min_confidence) & np.isfinite(joints).all(axis=1)
    sided = skeleton == "coco-17" and len(joints) == 17
    if sided:
        for start, end in COCO_17_BONES:
            if shown[start] and shown[end]:
                ends = _fixed(joints[start]), _fixed(joints[end])
                cv2.line(picture, *ends, SIDE_COLOURS[bone_side(start, end)], line, cv2.LINE_AA, FRACTION_BITS)
    radius = round((line * 0.5 + 1.2) * (1 << FRACTION_BITS))
    for joint in np.flatnonzero(shown):
        dot = SIDE_COLOURS[side_of(int(joint))] if sided else colour
        cv2.circle(picture, _fixed(joints[joint]), radius, dot, cv2.FILLED, cv2.LINE_AA, FRACTION_BITS)


def draw_zones(
    picture: Picture,
    corners_by_name: Mapping[str, Sequence[Point]],
    alarmed: Collection[str] = (),
    places: LabelPlaces | None = None,
) -> None:
    """The outline of each zone, a breath of its colour inside, and its name at its upper left corner.

    Those in ``alarmed`` are red.
    """
    for name, corners in corners_by_name.items():
        colour = ALARM_COLOUR if name in alarmed else SHAPE_COLOUR
        outline = np.array([_fixed(np.array(corner, np.float32)) for corner in corners], np.int32)
        _tint(picture, outline, colour)
        cv2.polylines(picture, [outline], True, colour, pen_for(picture).line, cv2.LINE_AA, FRACTION_BITS)
    for name, corners in corners_by_name.items():
        draw_label(picture, name, min(corners, key=sum), ALARM_COLOUR if name in alarmed else SHAPE_COLOUR, places)


def draw_lines(
    picture: Picture,
    ends_by_name: Mapping[str, tuple[Point, Point]],
    alarmed: Collection[str] = (),
    places: LabelPlaces | None = None,
) -> None:
    """Each line from its start to its end, its name, and in its middle an arrow to its right (`rightward`)."""
    pen = pen_for(picture)
    for name, (start, end) in ends_by_name.items():
        colour = ALARM_COLOUR if name in alarmed else SHAPE_COLOUR
        first, last = np.array(start, np.float32), np.array(end, np.float32)
        cv2.line(picture, _fixed(first), _fixed(last), colour, pen.line, cv2.LINE_AA, FRACTION_BITS)
        along = (last - first) / max(float(np.hypot(*(last - first))), 1e-6)
        middle = (first + last) / 2
        tip = middle + np.array([-along[1], along[0]], np.float32) * pen.line * 10
        ends = [(round(float(x)), round(float(y))) for x, y in (middle.clip(-FAR, FAR), tip.clip(-FAR, FAR))]
        cv2.arrowedLine(picture, ends[0], ends[1], colour, pen.line, cv2.LINE_AA, tipLength=0.4)
        draw_label(picture, name, start, colour, places)


def draw_reasons(picture: Picture, reasons: Sequence[str], most: int = MOST_REASONS) -> None:
    """A dark, half transparent strip along the lower edge with a line for each of the first ``most`` reasons.

    A line that is too long for the picture ends with `...`; how many more there are is said.
    """
    if not reasons:
        return
    pen = pen_for(picture)
    shown = list(reasons[:most])
    if len(reasons) > most:
        shown[-1] += f"   (and {len(reasons) - most} more)"
    letter_height, below = _letters(pen)
    row = letter_height + below + pen.pad
    strip = picture[_reasons_top(picture, len(shown)) :]
    strip[:] = strip // 3
    for number, text in enumerate(shown):
        baseline = picture.shape[0] - pen.pad - below - row * (len(shown) - 1 - number)
        cut = _cut_to(_printable(text), picture.shape[1] - 2 * pen.pad, pen)
        cv2.putText(picture, cut, (pen.pad, baseline), FONT, pen.font_scale, (255, 255, 255), _stroke(pen), cv2.LINE_AA)


def free_places(picture: Picture, *, has_caption: bool = False, reasons: int = 0) -> LabelPlaces:
    """The places for labels beside a caption and so many reasons, which are drawn later."""
    height, width = picture.shape[:2]
    strips = []
    if has_caption:
        strips.append(Plate(0, 0, width, _caption_height(picture)))
    if reasons:
        strips.append(Plate(0, _reasons_top(picture, min(reasons, MOST_REASONS)), width, height))
    return LabelPlaces(width, height, strips)


def draw_label(
    picture: Picture,
    text: str,
    corner: tuple[float, float],
    colour: Colour,
    places: LabelPlaces | None = None,
) -> None:
    """Text on a plate of ``colour`` above the point ``corner``, or at the nearest free one of ``places``.

    It is pushed inwards if it would leave the picture, and ends with `...` if it is too long for it.
    """
    pen = pen_for(picture)
    text = _cut_to(_printable(text), picture.shape[1] - 2 * pen.pad, pen)
    (text_width, text_height), below = cv2.getTextSize(text, FONT, pen.font_scale, 1)
    width, height = text_width + 2 * pen.pad, text_height + below + pen.pad
    left, top, right, bottom = (places or free_places(picture)).take(corner[0], corner[1] - height, width, height)
    cv2.rectangle(picture, (left, top), (right - 1, bottom - 1), colour, cv2.FILLED)
    at = (left + pen.pad, top + pen.pad // 2 + text_height)
    cv2.putText(picture, text, at, FONT, pen.font_scale, _ink(colour), _stroke(pen), cv2.LINE_AA)


def draw_caption(picture: Picture, left: str, right: str = "") -> None:
    """A dark, half transparent strip along the upper edge, with a text at each end; the left one gives way."""
    pen = pen_for(picture)
    right = _cut_to(_printable(right), picture.shape[1] - 2 * pen.pad, pen)
    strip = picture[: _caption_height(picture)]
    strip[:] = strip // 3
    right_width = cv2.getTextSize(right, FONT, pen.font_scale, 1)[0][0] if right else 0
    left = _cut_to(_printable(left), picture.shape[1] - right_width - 4 * pen.pad, pen)
    baseline = pen.pad + _letters(pen)[0]
    for text, x in ((left, pen.pad), (right, picture.shape[1] - right_width - pen.pad)):
        ink = (255, 255, 255)
        cv2.putText(picture, text, (x, baseline), FONT, pen.font_scale, ink, _stroke(pen), cv2.LINE_AA)


def _letters(pen: Pen) -> tuple[int, int]:
    """The height of letters above their baseline, and how far they reach below it."""
    (_, height), below = cv2.getTextSize("Ag", FONT, pen.font_scale, 1)
    return height, below


def _caption_height(picture: Picture) -> int:
    pen = pen_for(picture)
    above, below = _letters(pen)
    return above + below + 2 * pen.pad


def _reasons_top(picture: Picture, lines: int) -> int:
    """Where the strip of so many reasons begins."""
    pen = pen_for(picture)
    above, below = _letters(pen)
    return max(0, int(picture.shape[0]) - (above + below + pen.pad) * lines - pen.pad)


def _tint(picture: Picture, outline_fixed: NDArray[np.int32], colour: Colour) -> None:
    """An eighth of ``colour`` inside a polygon (N, 2) in cv2's fixed-point numbers."""
    mask = np.zeros(picture.shape[:2], np.uint8)
    cv2.fillPoly(mask, [outline_fixed], 255, cv2.LINE_8, FRACTION_BITS)
    inside = mask > 0
    picture[inside] = (picture[inside].astype(np.uint16) * 7 // 8 + np.array(colour, np.uint16) // 8).astype(np.uint8)


def _cut_to(text: str, width: int, pen: Pen) -> str:
    """As much of the text as fits into so many pixels, followed by `...` if that is not all."""
    if cv2.getTextSize(text, FONT, pen.font_scale, 1)[0][0] <= width:
        return text
    while text and cv2.getTextSize(text + "...", FONT, pen.font_scale, 1)[0][0] > width:
        text = text[:-1]
    return text + "..."


def _limb_line(picture: Picture, box_xyxy: F32) -> int:
    """The bones' thickness: a thirtieth of the person's height, but no more than the picture's own line and a half."""
    height = float(box_xyxy[3]) - float(box_xyxy[1])
    most = pen_for(picture).line * 1.5
    return max(1, round(min(most, height / 30))) if np.isfinite(height) else 1


def _fixed(point: F32) -> tuple[int, int]:
    """cv2's fixed-point numbers, in which a whole number is the middle of a pixel."""
    x, y = np.rint((np.clip(point[:2], -FAR, FAR) - 0.5) * (1 << FRACTION_BITS)).astype(int)
    return int(x), int(y)


def _ink(plate: Colour) -> Colour:
    """Black on light, white on dark (luma of BT.601)."""
    blue, green, red = plate
    return (0, 0, 0) if 0.114 * blue + 0.587 * green + 0.299 * red > 110 else (255, 255, 255)


def _stroke(pen: Pen) -> int:
    return max(1, round(pen.font_scale * 1.6))


def _printable(text: str) -> str:
    """cv2's letters are ASCII only: marks are left out, and letters of other scripts show as question marks."""
    if not text.isascii():
        plain = unicodedata.normalize("NFKD", text.translate(_AS_ASCII))
        text = "".join(letter for letter in plain if not unicodedata.combining(letter))
    return "".join(letter if " " <= letter <= "~" else "?" for letter in text)


class Plate(NamedTuple):
    """A rectangle; right and bottom are the first pixels outside."""

    left: int
    top: int
    right: int
    bottom: int

    def meets(self, other: Plate) -> bool:
        """Whether they share a pixel."""
        return (
            self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom
        )


class LabelPlaces:
    """Finds places for labels in one picture, so that none covers another."""

    def __init__(self, width: int, height: int, taken: Iterable[Plate] = ()) -> None:
        self._width, self._height = width, height
        self._taken = list(taken)

    def take(self, left: float, top: float, width: int, height: int) -> Plate:
        """The free place nearest above or below (left, top) that lies inside the picture; it is taken then."""
        first = within(top, height, self._height)
        wanted = [self._inside(left, first + shift * height, width, height) for shift in _shifts()]
        free = (plate for plate in wanted if not any(map(plate.meets, self._taken)))
        plate = next(free, wanted[0])
        self._taken.append(plate)
        return plate

    def _inside(self, left: float, top: float, width: int, height: int) -> Plate:
        x, y = within(left, width, self._width), within(top, height, self._height)
        return Plate(x, y, x + width, y + height)


def _shifts() -> Iterator[int]:
    """0, -1, 1, -2, 2, ...: upwards first, because below is the label's owner."""
    yield 0
    for step in range(1, _LABEL_STEPS + 1):
        yield from (-step, step)


def within(start: float, length: int, limit: int) -> int:
    """The start of a span of ``length`` that lies within [0, ``limit``), as near to ``start`` as possible."""
    return round(max(0.0, min(start, float(limit - length))))
