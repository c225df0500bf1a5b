"""`camgraph stages new`: the package that it writes is sound, and its stage runs in a graph."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest
from camgraph_test_stages.installing import entry_points_text
from click.testing import CliRunner

from camgraph.tools.cli import main
from camgraph.tools.commands.new_stage import skeleton_of
from camgraph.tools.commands.stage_skeleton import SKELETONS

ROOT = Path(__file__).parents[3]
KINDS_OF_STAGES = ("stage", "sink", "source")
KINDS = pytest.mark.parametrize("kind", KINDS_OF_STAGES)


def new(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(main, ["stages", "new", *arguments])
    return done.exit_code, done.output


@pytest.fixture
def project(kind: str, tmp_path: Path) -> Path:
    return made(kind, tmp_path)


def made(kind: str, folder: Path) -> Path:
    """A new package with a stage of this kind."""
    status, out = new("my_first", "--kind", kind, "--into", str(folder / kind))
    folder = folder / kind / "camgraph-my-first"
    assert (status, out.splitlines()[0]) == (0, f"{folder}: a package with the {kind} `my_first`. Next:")
    return folder


@KINDS
def test_its_own_test_passes(project: Path, kind: str, python: Any) -> None:
    # In a folder of its own: two sessions of pytest that clean up /tmp at once fail each other.
    own = f"--basetemp={project.parent / 'pytest'}"
    done = python(project, "-m", "pytest", "-p", "no:cacheprovider", "-W", "error", own)
    assert done.returncode == 0, done.stdout + done.stderr
    assert {"stage": "1 passed", "sink": "8 passed, 5 skipped", "source": "2 passed"}[kind] in done.stdout


@KINDS
@pytest.mark.parametrize("check", [["check"], ["check", "--select", "E,F,I,UP,B,PL"], ["format", "--check"]])
def test_ruff_has_nothing_to_say(project: Path, check: list[str], python: Any) -> None:
    done = python(project, "-m", "ruff", *check, "--no-cache", ".")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_strict_types_hold_where_camgraph_is_installed(subtests: pytest.Subtests, tmp_path: Path, python: Any) -> None:
    """In the environment that `make dev` sets up: the types must reach those who follow the README.

    What mypy has read of camgraph and numpy, half a minute's work, serves all kinds of packages.
    """
    for kind in KINDS_OF_STAGES:
        with subtests.test(kind):
            done = python(made(kind, tmp_path), "-m", "mypy", "--cache-dir", tmp_path / "known_types")
            assert done.returncode == 0, done.stdout + done.stderr


def test_metadata_of_tests_is_that_of_pip() -> None:
    """The packages above are not installed by pip, which takes long; this one is."""
    described = tomllib.loads((ROOT / "tests" / "plugin" / "pyproject.toml").read_text())
    written = distribution("camgraph-test-stages").read_text("entry_points.txt")
    assert written
    assert entry_points_text(described["project"]["entry-points"]).split() == written.split(), "run `make dev`"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("My-Stage", "'My-Stage' cannot be the name of a stage: expected a small letter, .* such as `my_stage`"),
        ("3d", "expected a small letter, .* such as `d`"),
        ("class", "no word of Python's own$"),
        ("x" * 41, "at most 40 characters"),
        ("../evil", "such as `evil`"),
        ("", "'' cannot be the name of a stage"),
        ("new", "`new` cannot be the name of a stage: it means something else to camgraph"),
        ("events", "`events` cannot be the name of a stage"),
        ("track", "there is a stage `track` already, of camgraph: choose another name"),
        ("double", "there is a stage `double` already, of camgraph-test-stages"),
    ],
)
def test_a_name_that_no_stage_can_have(name: str, expected: str, tmp_path: Path) -> None:

    status, out = new(name, "--into", str(tmp_path))
    assert status == 2
    assert re.search(expected, out.strip())
    assert list(tmp_path.iterdir()) == []


@KINDS
def test_what_is_there_stays(project: Path, tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in project.rglob("*") if path.is_file()}
    status, out = new("my_first", "--into", str(project.parent))
    assert (status, "is there already: remove it, choose another name, or another folder with --into" in out) == (
        2,
        True,
    )
    assert {path: path.read_bytes() for path in project.rglob("*") if path.is_file()} == before


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    status, out = new("my_first", "--into", str(tmp_path / "file"))
    assert (status, "cannot be written: Not a directory" in out) == (3, True)


def test_nothing_is_left_to_fill_in() -> None:
    for kind in SKELETONS:
        for path, text in skeleton_of("my_first", kind).items():
            assert "$" not in path + text
