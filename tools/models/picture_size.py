"""The size of a picture as it is written on the command line."""

from __future__ import annotations

from pipeline.errors import UserError


def sides(text: str) -> tuple[int, int]:
    """(width, height) in pixels. Raises UserError where it is none."""
    width, _, height = text.partition("x")
    if not (width.isdecimal() and height.isdecimal() and int(width) and int(height)):
        raise UserError(f"--size {text}: expected WIDTHxHEIGHT, such as 640x480")
    return int(width), int(height)


def stated_sides(text: str | None) -> tuple[int, int] | None:
    """As `sides`, of a size that need not be given."""
    return None if text is None else sides(text)
