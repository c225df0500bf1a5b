"""Packages that are installed and broken: the doctor says which, and does not fall ill itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from camgraph.tools.commands.doctor.packages import look_at_imports

PACKAGE = "onnxruntime-gpu"


def test_what_can_be_imported_is_one_line() -> None:
    [finding] = look_at_imports(PACKAGE)
    assert finding.state == "ok"
    assert {"av", "cv2", "onnxruntime"} <= set(finding.found.split(", "))


@pytest.mark.parametrize("module", ["av", "cv2", "onnx", "onnxruntime", "numpy"])
def test_a_broken_package_is_told_and_the_rest_is_looked_at(tmp_path: Path, module: str) -> None:
    (tmp_path / f"{module}.py").write_text("raise ImportError('libmissing.so.7: no such file')")
    found = findings_of_doctor(tmp_path)
    broken = found[f"import {module}"]
    assert broken["state"] == "wrong"
    assert broken["found"] == "cannot be imported: ImportError: libmissing.so.7: no such file"
    assert broken["cure"].startswith("pip install --force-reinstall ")
    assert {"python", "memory", "descriptors", "port 8554"} <= set(found)


def test_a_package_that_was_half_removed_is_told(tmp_path: Path) -> None:
    (tmp_path / "onnxruntime").mkdir()
    (tmp_path / "onnxruntime" / "__init__.py").touch()
    found = findings_of_doctor(tmp_path)
    assert found["import onnxruntime"]["found"] == "is installed in part: it has no InferenceSession"
    assert found["decoders"]["state"] == "ok"
    assert found["providers"]["state"] == "wrong"


def findings_of_doctor(broken: Path) -> dict[str, dict[str, str]]:
    """What it says where the modules in this folder come first: what -> finding."""
    path = os.pathsep.join([str(broken), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-m", "camgraph.tools.cli", "doctor", "--json"]
    env = {**os.environ, "PYTHONPATH": path}
    result = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120, env=env)
    assert result.returncode == 3, result.stderr
    assert "doctor" not in result.stderr  # ONNX Runtime prints what it meets by itself
    # OpenCV writes to the standard output what it lacks.
    return {one["what"]: one for one in json.loads(result.stdout[result.stdout.index("[\n") :])}
