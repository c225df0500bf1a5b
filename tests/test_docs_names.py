"""Names of code in the pages of docs/: each file, folder, method and field that they name exists."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

from camgraph.stages.rules.library import library

ROOT = Path(__file__).parents[1]
PACKAGES = ("src/camgraph", "pipeline", "stages", "tools")
PAGES = sorted((ROOT / "docs").rglob("*.md"))
CODE = re.compile(r"`([^`\n]+)`")
FILES_OF_OTHERS = {"av/codec/hwaccel.py", "av/video/plane.py", "camgraph.py", "tests/test_dark.py"}
"""Of PyAV, and of the reader."""
NO_FOLDERS = {
    *("out/accuracy", "out/demo", "secrets", "secrets/page"),
    *("application/json", "camgraph/ward", "camgraph/ward/availability", "deg/s", "px/s"),
}
"""Folders of the reader, and texts with a slash."""


def named(pattern: str) -> set[str]:
    """The names in backquotes on the pages that match the whole pattern. `NAME` stands for a name of the reader's."""
    found = {name for page in PAGES for name in CODE.findall(page.read_text("utf-8")) if re.fullmatch(pattern, name)}
    return {name for name in found if "NAME" not in name}


def tracked() -> list[str]:
    return subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()


def members() -> set[str]:
    """`Class.method` and `Class.field` of all our packages."""
    found = set()
    for path in (path for top in PACKAGES for path in (ROOT / top).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef):
                names = {one.name for one in node.body if isinstance(one, ast.FunctionDef)}
                names |= {ast.unparse(one.target) for one in node.body if isinstance(one, ast.AnnAssign)}
                found |= {f"{node.name}.{name}" for name in names}
    return found


def test_each_file_that_a_page_names_exists() -> None:
    files = tracked()
    names = named(r"[\w/.-]+\.py")
    assert len(names) > 50
    missing = {name for name in names if not any(f"/{file}".endswith(f"/{name}") for file in files)}
    assert missing - FILES_OF_OTHERS == set()


def test_each_folder_that_a_page_names_exists() -> None:
    folders = {str(parent) for file in tracked() for parent in Path(file).parents}
    names = {name.rstrip("/") for name in named(r"[a-z_]+/[\w/]*")}
    assert len(names) > 15
    missing = {name for name in names if not any(f"/{folder}".endswith(f"/{name}") for folder in folders)}
    assert missing - NO_FOLDERS == set()


def test_each_method_and_field_that_a_page_names_exists() -> None:
    names = named(r"[A-Z]\w+\.[a-z_]+")
    assert len(names) > 10
    assert names - members() == set()


def test_every_action_of_the_library_is_on_its_page() -> None:
    text = (ROOT / "docs" / "actions.md").read_text("utf-8")
    assert [name for name in library().templates if f"`{name}`" not in text] == []
