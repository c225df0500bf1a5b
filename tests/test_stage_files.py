"""A stage is one file, one test and one entry point, and nothing of it is forgotten. A sink also has a case of the
contract of sinks (`test_sink_contract.py`)."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest

from camgraph.pipeline.registry import find_stage, stage_names

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
ENTRY_POINTS: dict[str, str] = PROJECT["project"]["entry-points"]["camgraph.stages"]
ROOMS = ("video", "people", "rules", "sinks")
ELSEWHERE = {"outbox", "serve"}
"""They know how a run works, which stages may not."""
STAGES = sorted(ENTRY_POINTS.keys() - ELSEWHERE)


def file_of(name: str) -> Path:
    [file] = [path for room in ROOMS if (path := ROOT / "stages" / room / f"{name}.py").is_file()]
    return file


def class_of(name: str) -> str:
    """`sink_jsonl` -> `SinkJsonl`."""
    return "".join(word.capitalize() for word in name.split("_"))


def test_the_entry_points_are_installed() -> None:
    assert set(stage_names("camgraph")) == set(ENTRY_POINTS), "pyproject.toml has changed: run `make dev`"


@pytest.mark.parametrize("name", STAGES)
def test_a_stage_is_called_as_its_file_and_its_class(name: str) -> None:
    assert ENTRY_POINTS[name] == f"camgraph.stages.{file_of(name).parent.name}.{name}:{class_of(name)}"
    assert find_stage(name).__name__ == class_of(name)


@pytest.mark.parametrize("name", STAGES)
def test_a_stage_has_a_test_of_its_name(name: str) -> None:
    tests = ROOT / "tests" / "stages" / file_of(name).parent.name
    assert (tests / f"test_{name}.py").is_file() or any((tests / name).glob("test_*.py"))


@pytest.mark.parametrize("name", STAGES)
def test_a_stage_says_what_it_is_for(name: str) -> None:
    """`camgraph stages` shows the first line; nobody should read about the base class instead."""
    kind = find_stage(name)
    assert vars(kind).get("__doc__"), f"{file_of(name).relative_to(ROOT)}: give {kind.__name__} a docstring"
    for setting, field in kind.settings_type.model_fields.items():
        assert field.description, f"{name}: describe {setting}"


def holds_a_stage(path: Path) -> bool:
    """True for a class with the name of its file and a base such as `Stage[BlurSettings]`."""
    classes = [one for one in ast.parse(path.read_text()).body if isinstance(one, ast.ClassDef)]
    of_its_name = [one for one in classes if one.name == class_of(path.stem)]
    return any(isinstance(base, ast.Subscript) for one in of_its_name for base in one.bases)


def test_each_file_with_a_stage_has_its_entry_point() -> None:
    assert {path.stem for path in (ROOT / "stages").glob("*/*.py") if holds_a_stage(path)} == set(STAGES)


def test_no_stage_imports_another() -> None:
    """What several need lies in a module of its own."""
    modules = [f"camgraph.stages.{file_of(name).parent.name}.{name}" for name in STAGES]
    texts = {path: path.read_text("utf-8") for path in (ROOT / "stages").rglob("*.py")}
    imported = [
        f"{path.relative_to(ROOT)}: {module}"
        for path, text in texts.items()
        for module in modules
        if re.search(rf"from {module} import|from {module.rpartition('.')[0]} import .*\b{path.stem}\b", text)
    ]
    assert imported == []
