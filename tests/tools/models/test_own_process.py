"""What is asked of a model in a process of its own, where nobody waits for the answer any more."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from camgraph.pipeline.errors import EnvironmentProblem
from camgraph.tools.models.own_process import ask

_FAILING = """
from camgraph.pipeline.errors import EnvironmentProblem
from camgraph.tools.models.own_process import answer

def fail(task):
    raise EnvironmentProblem("it is full", error_id="cannot-write")

answer(fail)
"""
_NEVER = """
import threading
from camgraph.tools.models.own_process import answer
answer(lambda task: threading.Event().wait())
"""


def test_an_error_keeps_its_words_and_its_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "failing_model.py").write_text(_FAILING)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(EnvironmentProblem, match=r"^it is full$") as failed:
        ask("failing_model", tmp_path / "m.onnx", {}, limit_s=120, advice="")
    assert failed.value.error_id == "cannot-write"


def test_a_process_that_nobody_waits_for_ends_by_itself() -> None:
    task = json.dumps({"model": "m.onnx", "limit_s": 0.5})
    left = subprocess.run([sys.executable, "-c", _NEVER], input=task, text=True, timeout=120, check=False)
    assert left.returncode == -signal.SIGALRM
