"""The size of a picture as it is written on the command line."""

from __future__ import annotations

from pipeline.errors import UserError

_SIDES = range(16, 8193)
"""The pictures of `preprocess`."""


def sides(text: str) -> tuple[int, int]:
    """(width, height) in pixels. Raises UserError if it is none."""
    width, _, height = text.partition("x")
    if not (width.isdecimal() and height.isdecimal() and int(width) in _SIDES and int(height) in _SIDES):
        raise UserError(
            f"--size {text}: expected WIDTHxHEIGHT, such as 640x480, with sides of {_SIDES[0]} to {_SIDES[-1]}"
        )
    return int(width), int(height)
