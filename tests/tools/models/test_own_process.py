"""What is asked of a model in a process of its own, where nobody waits for the answer any more."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

_NEVER = "import threading; from tools.models.own_process import answer; answer(lambda task: threading.Event().wait())"


def test_a_process_that_nobody_waits_for_ends_by_itself() -> None:
    task = json.dumps({"model": "m.onnx", "limit_s": 0.5})
    left = subprocess.run([sys.executable, "-c", _NEVER], input=task, text=True, timeout=120, check=False)
    assert left.returncode == -signal.SIGALRM
