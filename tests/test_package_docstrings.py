"""Each folder of modules is a package; its docstring leads a newcomer: what lives there, where to start, a limit."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
_FOLDERS = {
    folder
    for file in subprocess.run(
        ["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    for folder in list(Path(file).parents)[:-1]
}
# The folders of tests are no packages, but the plugin is one; neither is `src`. Scripts run by path, in environments of
# their own.
PACKAGES = sorted(
    str(one)
    for one in _FOLDERS
    if one.name not in ("scripts", "src") and (one.parts[0] != "tests" or (ROOT / one / "__init__.py").is_file())
)
_START = re.compile(r"\b[Ss]tart with\s+`([\w/]+\.py)`")
_LIMIT = re.compile(r"\b(no|not|nothing|never|none|nobody|only|knows? nothing|without)\b", re.IGNORECASE)


def docstring_of(package: str) -> str:
    return ast.get_docstring(ast.parse((ROOT / package / "__init__.py").read_text("utf-8"))) or ""


def test_the_packages_are_found() -> None:
    assert {"pipeline", "stages", "tools", "stages/vision/tracking", "stages/rules/language"} <= set(PACKAGES)


@pytest.mark.parametrize("package", PACKAGES)
def test_a_folder_of_modules_is_a_package(package: str) -> None:
    """import-linter passes over the others without a word, so no contract would hold for them."""
    assert (ROOT / package / "__init__.py").is_file()


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_names_the_file_to_start_with(package: str) -> None:
    text = docstring_of(package)
    found = _START.search(text)
    assert found, f"{package}/__init__.py: write 'Start with `FILE.py`', a file of this package or from the top"
    assert any((folder / found[1]).is_file() for folder in (ROOT / package, ROOT)), f"{package}: no {found[1]}"


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_says_a_limit(package: str) -> None:
    assert _LIMIT.search(docstring_of(package)), f"{package}/__init__.py: say what it does not do or know"
