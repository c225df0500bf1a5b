"""The page on conditions in Python: its package passes its own tests, and rules find it where it is installed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from camgraph_test_stages.installing import install

from camgraph.stages.rules.conditions import Past

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "write_a_condition.md").read_text("utf-8")
_FILE = re.compile(r"^```\w+\n# (\S+\.\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_EXAMPLE = re.compile(r"^```python\n(import.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    for name, text in _FILE.findall(PAGE):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def python(folder: Path, *arguments: str, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST")}
    more = {"PYTHONPATH": str(path)} if path else {}
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, cwd=folder, env={**kept, **more}, capture_output=True, text=True, timeout=240, check=False
    )


def test_its_tests_pass(project: Path) -> None:
    # In a folder of its own: two sessions of pytest that clean up /tmp at once fail each other.
    own = f"--basetemp={project.parent / 'pytest'}"
    done = python(project, "-m", "pytest", "-p", "no:cacheprovider", "-W", "error", own, path=project)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 passed" in done.stdout


def test_rules_find_it_only_where_it_is_installed(project: Path, tmp_path: Path) -> None:
    install(project, tmp_path / "site")
    checked = [
        python(project, "-m", "camgraph.tools.cli", "check", "rules.yaml", path=path)
        for path in (tmp_path / "site", None)
    ]
    assert checked[0].returncode == 0, checked[0].stderr
    assert checked[1].returncode == 2, "the package lies beside the rules, and is not installed"
    assert "rules.yaml:4:11: rules[0].when: there is no function `limps`" in checked[1].stderr


def test_a_wrong_value_is_a_mistake_at_its_place(project: Path, tmp_path: Path) -> None:
    install(project, tmp_path / "site")
    rules = project / "rules.yaml"
    rules.write_text(rules.read_text().replace("limps(0.6)", "limps(0.6s)"))
    done = python(project, "-m", "camgraph.tools.cli", "check", "rules.yaml", path=tmp_path / "site")
    assert done.returncode == 2
    assert "rules.yaml:4:17: rules[0].when: `0.6s` is a time, and `least` of limps is a bare number" in done.stderr


def test_the_function_that_gives_a_number() -> None:
    [text] = _EXAMPLE.findall(PAGE)
    defined: dict[str, object] = {"__name__": "example"}
    exec(compile(text, "example", "exec", dont_inherit=True), defined)
    keypoints = np.full((3, 17, 3), 0.9, np.float32)
    keypoints[:, 9, :2] = [[0, 0], [30, 40], [np.nan, np.nan]]
    past = Past(np.array([-1.0, -0.5, 0.0]), np.zeros((3, 4)), np.ones(3), keypoints, (640, 480))  # type: ignore[arg-type]
    reach = defined["reach"]
    assert callable(reach)
    assert reach(past, "left_wrist") == pytest.approx(25)
    keypoints[:] = np.nan
    assert reach(past, "left_wrist") is None
