"""Python on the pages: each page that has some is run by a test."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

ROOT = Path(__file__).parents[1]
_FENCE = re.compile(r"^( *)```python\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)


def python_of(page: Path) -> list[str]:
    return [textwrap.dedent(text) for _, text in _FENCE.findall(page.read_text("utf-8"))]


def test_each_page_with_python_is_named_by_a_test() -> None:
    pages = {page for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")] if python_of(page)}
    tests = [path.read_text("utf-8") for path in (ROOT / "tests").rglob("test_*.py")]
    untested = {
        page.name for page in pages if not any(re.search(rf'"(docs/)?{page.stem}(\.md)?"', text) for text in tests)
    }
    assert len(pages) >= 3
    assert untested == set(), "run their examples in a test, as tests/tools/commands/test_writing_guides.py does"
