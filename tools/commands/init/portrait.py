"""A coarse picture on a terminal that has colours: two points in each letter."""

from __future__ import annotations

import cv2
from rich.console import Console
from rich.text import Text

from stages.vision.planes import U8

_WIDTH = 64
_MOST_ROWS = 24
_HALF = "\N{UPPER HALF BLOCK}"


def show(console: Console, picture: U8) -> bool:
    """Print it; False if this terminal has too few colours or letters, and nothing was printed."""
    if not console.is_terminal or console.color_system not in ("256", "truecolor"):
        return False
    try:
        _HALF.encode(console.encoding)
    except UnicodeEncodeError:
        return False
    console.print(drawn(picture, min(_WIDTH, console.width - 4)))
    return True


def drawn(picture: U8, width: int) -> Text:
    """The (H, W, 3) BGR picture, at most `width` letters wide and `_MOST_ROWS` high."""
    height_of_one = picture.shape[0] / picture.shape[1]
    width = max(1, min(width, round(2 * _MOST_ROWS / height_of_one)))
    rows = min(_MOST_ROWS, max(1, round(width * height_of_one / 2)))
    small = cv2.resize(picture, (width, 2 * rows), interpolation=cv2.INTER_AREA)
    text = Text()
    for row in range(rows):
        text.append("  ")
        for upper, lower in zip(small[2 * row], small[2 * row + 1], strict=True):
            text.append(_HALF, f"{_colour(upper)} on {_colour(lower)}")
        text.append("\n")
    return text


def _colour(point: U8) -> str:
    blue, green, red = (int(value) for value in point)
    return f"#{red:02x}{green:02x}{blue:02x}"
