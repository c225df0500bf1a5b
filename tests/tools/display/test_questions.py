"""A question is seen before it is answered, also while all output goes through `tools.display.screen`."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from camgraph_test_stages.waiting import until

ROOT = Path(__file__).parents[3]
LIMIT_S = 60.0
PROGRAM = """
import sys
from camgraph.tools.display.questions import ask_hidden, ask_line, ask_yes
from camgraph.tools.display.screen import guarded
with guarded():
    print(repr({call}))
"""


@pytest.mark.parametrize(
    ("call", "answer", "result"),
    [
        ("ask_line('Your \\x1b[31m name: ')", "Ann \n", "'Ann'"),
        ("ask_yes('Your name?', default=True)", "\n", "True"),
        ("ask_hidden('Your name: ')", " Ann\n", "' Ann'"),
    ],
)
def test_a_question_on_a_terminal(call: str, answer: str, result: str) -> None:
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(call=call)],
        cwd=ROOT,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    try:
        shown = ""

        def has(text: str) -> bool:
            nonlocal shown
            if text not in shown:
                shown += os.read(ours, 1000).decode()
            return text in shown

        until(lambda: has("name"), LIMIT_S, lambda: shown)
        os.write(ours, answer.encode())
        until(lambda: has(result), LIMIT_S, lambda: shown)
        assert "\x1b" not in shown
        assert child.wait(LIMIT_S) == 0
    finally:
        child.kill()
        child.wait()
        os.close(ours)
