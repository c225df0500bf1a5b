"""Python on the pages: each page that has some is run by a test, and those that are scripts are run here."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from zoneinfo import available_timezones

import pytest

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


def test_the_events_of_the_night(tmp_path: Path) -> None:
    if "Europe/Berlin" not in available_timezones():
        pytest.skip("no time zones here (Debian: apt-get install tzdata)")
    [script] = python_of(ROOT / "docs" / "rules.md")
    (tmp_path / "at_night.py").write_text(script)
    rule = {"id": "lying", "hash": "00"}
    night, day = ({"rule": rule, "start_time": f"2026-01-01T{hour}:00:00.000Z"} for hour in ("22", "12"))
    camera = {"camera": "front", "start_time": "2026-01-01T23:00:00.000Z"}
    lines = [json.dumps({"data": data}) for data in (night, day, camera)]
    done = subprocess.run(
        [sys.executable, "at_night.py"],
        cwd=tmp_path,
        input="".join(f"{line}\n" for line in lines),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{lines[0]}\n", "")
