"""Modules that docstrings and comments name in backticks exist, as do pages of the docs; names of tests are short."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("src/camgraph", "pipeline", "stages", "tools")
# In prose, a module has the name of its file: `pipeline.messages`.
_NAME = re.compile(rf"`(?:camgraph\.)?((?:{'|'.join(PACKAGES[1:])})(?:\.[a-zA-Z_]\w*)+)`")
_FILE = re.compile(rf"`((?:{'|'.join(PACKAGES)})/[\w/]+\.py)`")
_PAGE = re.compile(r"\bdocs/[a-z_/]+\.md")
_TEST = re.compile(r"^ *(?:async )?def (test_\w+)", re.MULTILINE)
_MOST_LETTERS = 60


def texts() -> Iterator[tuple[Path, str]]:
    for folder in (*PACKAGES, "tests", "docs"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in (".py", ".md"):
                yield path, path.read_text("utf-8")


def is_there(name: str) -> bool:
    """Whether a dotted name is a module, or something that stands in the file of one."""
    parts = ["camgraph", *name.split(".")]
    for count in range(len(parts), 2, -1):
        module = ".".join(parts[:count])
        try:
            spec = find_spec(module)
        except ModuleNotFoundError:
            continue
        if spec is not None:
            source = Path(spec.origin).read_text("utf-8") if spec.origin else ""
            return all(re.search(rf"\b{part}\b", source) for part in parts[count:])
    return False


def test_named_modules_exist() -> None:
    named = {(path, name) for path, text in texts() for name in _NAME.findall(text)}
    assert len(named) > 50
    dead = {f"{path.relative_to(ROOT)}: {name}" for path, name in named if not is_there(name)}
    assert dead == set()


def test_named_files_exist() -> None:
    named = {(path, name) for path, text in texts() for name in _FILE.findall(text)}
    assert len(named) > 30
    dead = {
        f"{path.relative_to(ROOT)}: {name}" for path, name in named if not (ROOT / name).exists() and "NAME" not in name
    }
    assert dead == set()


def test_named_pages_exist() -> None:
    """Of the documentation, in the code; links between pages are looked at elsewhere."""
    named = {(path, name) for path, text in texts() if path.suffix == ".py" for name in _PAGE.findall(text)}
    assert len(named) > 20
    assert {f"{path.relative_to(ROOT)}: {name}" for path, name in named if not (ROOT / name).exists()} == set()


def test_names_of_tests_are_short() -> None:
    """A name says the behaviour; a longer one is cut off in reports, and nobody reads it to its end."""
    named = {
        (path.relative_to(ROOT), name)
        for path in (ROOT / "tests").rglob("*.py")
        for name in _TEST.findall(path.read_text())
    }
    assert len(named) > 1000
    assert {f"{path}: {name}" for path, name in named if len(name) > _MOST_LETTERS} == set()
