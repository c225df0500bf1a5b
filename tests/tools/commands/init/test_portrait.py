from __future__ import annotations

import io

import numpy as np
import pytest

from camgraph.tools.commands.init.cameras import drawn, show_picture
from camgraph.tools.display.console import SafeConsole


def test_each_letter_has_two_points() -> None:
    picture = np.zeros((40, 80, 3), np.uint8)
    picture[:20, :, 2] = 255  # the upper half is red
    lines = drawn(picture, 40).split(allow_blank=False)
    assert [len(line.plain) for line in lines] == [2 + 40] * 10
    assert {str(span.style) for span in lines[0].spans} == {"#ff0000 on #ff0000"}
    assert {str(span.style) for span in lines[9].spans} == {"#000000 on #000000"}


@pytest.mark.parametrize(("height", "width"), [(640, 360), (2, 4000), (4000, 2)])
def test_it_fits_a_terminal(height: int, width: int) -> None:
    lines = drawn(np.zeros((height, width, 3), np.uint8), 64).split(allow_blank=False)
    assert 1 <= len(lines) <= 24
    assert all(len(line.plain) <= 66 for line in lines)


@pytest.mark.parametrize(("colours", "shows"), [("truecolor", True), ("256", True), ("standard", False), (None, False)])
def test_only_terminals_with_colours_get_it(colours: str | None, *, shows: bool) -> None:
    out = io.StringIO()
    console = SafeConsole(out, force_terminal=True, color_system=colours, width=80, legacy_windows=False)
    assert show_picture(console, np.zeros((40, 80, 3), np.uint8)) is shows
    assert bool(out.getvalue()) is shows
