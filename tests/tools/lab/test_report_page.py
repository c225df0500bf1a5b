"""Pages of figures: what stands around the marks stays, and the command can be repeated."""

from __future__ import annotations

import math
import shlex
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from camgraph.tools.lab.report_page import (
    between_marks,
    command_line,
    counted,
    machine_line,
    median_and_range,
    median_and_worst,
    p50_p99,
    percentile,
    put_between_marks,
    table_head,
    table_row,
    written_by,
)  # fmt: skip

BEGIN, END = "<!-- written by camgraph.tools.lab.x: begin -->", "<!-- written by camgraph.tools.lab.x: end -->"
PAGE = f"# X\n\n{BEGIN}\nold\n{END}\n\nmore\n"


def test_the_report_goes_between_its_marks_and_nowhere_else() -> None:
    assert put_between_marks(PAGE, "new\n", "x") == f"# X\n\n{BEGIN}\nnew\n{END}\n\nmore\n"
    for page in ("# X\n", BEGIN, f"{END} {BEGIN}", PAGE.replace("lab.x", "lab.y")):
        with pytest.raises(click.ClickException, match="no place for the report"):
            put_between_marks(page, "new", "x")
    assert between_marks(PAGE, "x") == "old"


def test_paths_of_this_machine_are_cut_to_their_names() -> None:
    assert command_line("x", {"model": "/home/me/a.onnx", "clip": Path("/b.mp4"), "out": "c/d"}) == (
        "python -m camgraph.tools.lab.x --model DIR/a.onnx --clip DIR/b.mp4 --out c/d"
    )
    assert written_by("x", {"rounds": 20}).startswith("Written by `python -m camgraph.tools.lab.x --rounds 20` on 2")


@click.command()
@click.argument("what")
@click.argument("models", nargs=-1)
@click.option("--in", "place", default="here")
@click.option("--fps", "rates", multiple=True, default=(5.0, 25.0))
@click.option("--rules", multiple=True, default=(1, 10))
def renamed(**options: object) -> None:
    click.echo(command_line("x", options))


def test_options_are_named_as_they_are_typed() -> None:
    ran = CliRunner().invoke(renamed, ["all", "a.onnx", "b.onnx"], catch_exceptions=False)
    words = shlex.split(ran.output)[3:]
    assert "--in here --fps 5 --fps 25 --rules 1 --rules 10" in " ".join(words)
    again = CliRunner().invoke(renamed, words, catch_exceptions=False)
    assert sorted(shlex.split(again.output)) == sorted(shlex.split(ran.output))


def test_percentiles() -> None:
    assert percentile([3, 1, 2], 0.5) == 2
    assert percentile(list(range(100)), 0.99) == 99
    assert math.isnan(percentile([], 0.5))
    assert (p50_p99([1, 2, 3, 4]), p50_p99([])) == ("3, 4", "-")
    assert median_and_worst([3, 1, 2]) == "2.00 s, 3.00 s"
    assert median_and_worst([]) == "-"
    assert median_and_range([3, 1, 2], 1) == "2.0 (1.0 to 3.0)"


def test_tables() -> None:
    assert [*table_head("a", "b"), table_row(1, "x")] == ["| a | b |", "|---|---|", "| 1 | x |"]


def test_counts_are_told_by_name() -> None:
    assert counted({"b": 1, "a": 2}) == "a 2, b 1"
    assert counted({}) == "none"


def test_the_machine_is_told() -> None:
    assert " cores of " in machine_line()
    assert ", Python 3." in machine_line()
