"""Examples in docstrings: each begins with its imports, runs as it stands, and passes the tests that it holds."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from camgraph.pipeline.testing import feed, opened, stamp
from camgraph.stages.messages import Frame

ROOT = Path(__file__).parents[1]
DOCUMENTED = ("src/camgraph", "pipeline", "stages")
DEFINES = (ast.ClassDef, ast.FunctionDef, ast.With)
WITH_DOCSTRING = (ast.Module, ast.ClassDef, ast.FunctionDef)


def indented_blocks(text: str) -> Iterator[str]:
    """Runs of indented lines, blank ones within them included."""
    for found in re.finditer(r"(?:^ {4}.*\n(?:\s*\n(?= {4}))*)+", text + "\n", re.MULTILINE):
        yield textwrap.dedent(found.group())


def parsed(block: str) -> list[ast.stmt]:
    try:
        return ast.parse(block).body
    except SyntaxError:
        return []


def examples(path: Path) -> Iterator[tuple[str, str]]:
    """The examples of a file, each below the name of its place."""
    for node in ast.walk(ast.parse(path.read_text())):
        docstring = ast.get_docstring(node) if isinstance(node, WITH_DOCSTRING) else None
        for block in indented_blocks(docstring or ""):
            if any(isinstance(statement, DEFINES) for statement in parsed(block)):
                name = getattr(node, "name", "")
                yield f"{path.relative_to(ROOT)}:{name}".rstrip(":"), block


def run(block: str, tmp_path: Path) -> dict[str, Any]:
    """What the example defines, after its tests have passed."""
    defined: dict[str, Any] = {"__name__": "example"}
    exec(compile(block, "example", "exec", dont_inherit=True), defined)
    for test in [value for name, value in defined.items() if name.startswith("test_")]:
        test(**dict.fromkeys(inspect.signature(test).parameters, tmp_path))
    return defined


def test_each_example_runs_as_it_stands(subtests: pytest.Subtests, tmp_path_factory: pytest.TempPathFactory) -> None:
    """One test, for to find the examples takes seconds, which each process that collects tests would spend."""
    found = 0
    for path in sorted(path for folder in DOCUMENTED for path in (ROOT / folder).rglob("*.py")):
        for place, block in examples(path):
            found += 1
            with subtests.test(place):
                assert isinstance(parsed(block)[0], ast.Import | ast.ImportFrom), f"begin it with its imports:\n{block}"
                run(block, tmp_path_factory.mktemp("example"))
    assert found >= 5


def example_of(place: str) -> str:
    [example] = [block for name, block in examples(ROOT / place.partition(":")[0]) if name == place]
    return example


def flat_frame(form: str) -> Frame:
    """64 x 48 pixels of one colour, as capture emits it and as BGR."""
    picture = np.full((48, 64, 3), (40, 90, 160), np.uint8)
    if form == "bgr24":
        return Frame.of_bgr(stamp(), picture)
    return Frame(stamp(), cv2.cvtColor(picture, cv2.COLOR_BGR2YUV_I420), 64, 48, "yuv420p")  # type: ignore[arg-type]


@pytest.mark.parametrize("form", ["bgr24", "yuv420p"])
def test_the_first_stage_that_people_read_keeps_colours(form: str, tmp_path: Path) -> None:
    blur = run(example_of("pipeline/stage.py"), tmp_path)["Blur"]
    frame = flat_frame(form)
    with opened(blur, {"radius": 3}, folder=tmp_path) as stage:
        [blurred] = feed(stage, [frame])
    assert isinstance(blurred, Frame)
    assert (blurred.width, blurred.height, blurred.format) == (64, 48, "bgr24")
    assert np.abs(blurred.bgr().astype(int) - (40, 90, 160)).max() <= 2


@pytest.mark.parametrize("form", ["bgr24", "yuv420p"])
def test_the_example_of_a_frame_draws_on_a_copy(form: str, tmp_path: Path) -> None:
    frame = flat_frame(form)
    before = frame.bgr().copy()
    black = run(example_of("stages/messages.py:Frame"), tmp_path)["blackened"](frame)
    assert black.pixels[:24].max() == 0
    assert np.array_equal(black.pixels[24:], before[24:])
    assert np.array_equal(frame.bgr(), before)
