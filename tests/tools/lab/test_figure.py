"""The frame of figures and proofs, and what each script declares: its name, its place on a page, its options."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from camgraph.tools.lab.figure import Figure, figure_command
from camgraph.tools.lab.report_page import marks_of

ROOT = Path(__file__).parents[3]
LAB = ROOT / "tools" / "lab"
BEGIN, END = marks_of("x")
PAGE = f"# X\n\n{BEGIN}\nold\n{END}\n\nmore\n"
FIGURE = re.compile(r'^@figure_command\("([^"]+)"', re.MULTILINE)
WRITES = re.compile(r"python3? -m camgraph\.tools\.lab\.([\w.]+)([^`\n#]*?) --report (docs/\w+\.md)")


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(LAB).with_suffix("").parts).removesuffix(".__main__")


SCRIPTS = {module_of(path): path.read_text("utf-8") for path in sorted(LAB.rglob("*.py"))}
FIGURES = {module: found[1] for module, text in SCRIPTS.items() if (found := FIGURE.search(text))}
COMMANDS = [module for module, text in SCRIPTS.items() if module in FIGURES or "\n@click.command(" in text]
PAGES = {path: path.read_text("utf-8") for path in (ROOT / "docs").glob("*.md")}


@figure_command("x", calm="x, calm")
@click.option("--way", "ways", multiple=True, default=("a b", "c"))
@click.option("--size", type=(int, int), default=(320, 192))
@click.option("--round-s", default=4.0)
@click.option("--capacity", type=float)
@click.option("--calm", is_flag=True)
@click.option("--fault", "faults", multiple=True)
def tool(figure: Figure, faults: tuple[str, ...], **options: object) -> None:
    """Measure nothing."""
    figure.takes(90, "no time")
    standing = figure.standing()
    figure.publish(f"{figure.head(but=['faults'])}\n{figure.others()}\nbefore: {standing}", faults)


def test_part_goes_into_page_with_its_command(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    ran = CliRunner().invoke(tool, ["--round-s", "5", "--report", str(page)], catch_exceptions=False)
    command = '`python -m camgraph.tools.lab.x --way "a b" --way c --size 320 192 --round-s 5`'
    assert ran.output.startswith(f"about 2 min: no time\nWritten by {command} on 2")
    part = ran.output.partition("\n")[2]
    assert re.search(r"\. \d+ cores of .*, Python 3\.\d+\.\d+\.\nOther processes took ", part)
    assert part.endswith("\nbefore: old\n")
    assert page.read_text() == PAGE.replace("old\n", part)


def test_faults_are_written_and_end_the_command_with_status_1(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    ran = CliRunner().invoke(tool, ["--fault", "a leak", "--fault", "a loss", "--report", str(page)])
    assert ran.exit_code == 1
    assert ran.output.endswith("Error: a leak\na loss\n")
    assert "Written by" in page.read_text()


@pytest.mark.parametrize(("page_text", "words"), [("# X\n", []), (PAGE, ["--calm"])])
def test_page_without_marks_is_refused_first(tmp_path: Path, page_text: str, words: list[str]) -> None:
    page = tmp_path / "page.md"
    page.write_text(page_text)
    ran = CliRunner().invoke(tool, [*words, "--report", str(page)])
    assert ran.exit_code == 1
    assert "about" not in ran.output
    assert "no place for the report" in ran.output


def test_a_flag_may_have_a_part_of_its_own(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE + "\n".join(marks_of("x, calm")))
    CliRunner().invoke(tool, ["--calm", "--report", str(page)], catch_exceptions=False)
    before, _, calm = page.read_text().partition(marks_of("x, calm")[0])
    assert before == PAGE
    assert "--calm` on 2" in calm


def test_each_figure_has_the_name_of_its_module() -> None:
    assert len(FIGURES) > 40
    assert {module: name for module, name in FIGURES.items() if module != name} == {}


@pytest.mark.parametrize("figure", FIGURES)
def test_exactly_one_page_has_the_place_of_a_figure(figure: str) -> None:
    pages = [path.name for path, text in PAGES.items() if marks_of(figure)[0] in text]
    assert len(pages) == 1, pages
    assert marks_of(figure)[1] in PAGES[ROOT / "docs" / pages[0]]


def test_each_page_that_a_command_writes_has_the_place() -> None:
    texts = [*PAGES.values(), *SCRIPTS.values(), (ROOT / "Makefile").read_text("utf-8")]
    found = {one for text in texts for one in WRITES.findall(text)}
    assert len(found) > 40
    wrong = [one for one in found if marks_of(one[0])[0] not in (ROOT / one[2]).read_text("utf-8")]
    assert wrong == []


@pytest.mark.parametrize("module", COMMANDS)
def test_each_command_says_what_it_does(module: str) -> None:
    whole = f"camgraph.tools.lab.{module}"
    package = (LAB / Path(*module.split("."))).is_dir()
    ran = CliRunner().invoke(importlib.import_module(f"{whole}.__main__" if package else whole).main, ["--help"])
    assert ran.exit_code == 0
    assert len(ran.output.splitlines()) > 3
    assert ("--report FILE" in ran.output) == (module in FIGURES)
