"""Names of code in docs/architecture.md: each file, folder, method and field that it names exists."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "architecture.md"
CODE = re.compile(r"`([^`\n]+)`")


def named(pattern: str) -> set[str]:
    """The names in backquotes on the page that match the whole pattern."""
    return {found for found in CODE.findall(PAGE.read_text("utf-8")) if re.fullmatch(pattern, found)}


def tracked() -> list[str]:
    return subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()


def members() -> set[str]:
    """`Class.method` and `Class.field` of all our packages."""
    found = set()
    for path in (path for top in ("camgraph", "pipeline", "stages", "tools") for path in (ROOT / top).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef):
                names = {one.name for one in node.body if isinstance(one, ast.FunctionDef)}
                names |= {ast.unparse(one.target) for one in node.body if isinstance(one, ast.AnnAssign)}
                found |= {f"{node.name}.{name}" for name in names}
    return found


def test_each_file_that_architecture_names_exists() -> None:
    files = tracked()
    names = named(r"[\w/.-]+\.py")
    assert len(names) > 50
    assert {name for name in names if not any(f"/{file}".endswith(f"/{name}") for file in files)} == set()


def test_each_folder_that_architecture_names_exists() -> None:
    folders = {str(parent) for file in tracked() for parent in Path(file).parents}
    names = {name.rstrip("/") for name in named(r"[a-z_]+/[\w/]*")}
    assert len(names) > 15
    assert {name for name in names if not any(f"/{folder}".endswith(f"/{name}") for folder in folders)} == set()


def test_each_method_and_field_that_architecture_names_exists() -> None:
    names = named(r"[A-Z]\w+\.[a-z_]+")
    assert len(names) > 10
    assert names - members() == set()
