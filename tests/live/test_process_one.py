"""camgraph as process 1, as in a container without an init."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from camgraph_test_stages.waiting import until

_PIDS = ["unshare", "-r", "--pid", "--fork", "--mount-proc", "--kill-child"]
_LEAVES_AN_ORPHAN = """
(sleep 0.01 >/dev/null 2>&1 &)
i=0
while grep -qs '^State:.Z' /proc/[0-9]*/status; do
  i=$((i+1))
  [ $i -gt 300 ] && { echo zombies >> "$1"; exit 0; }
  sleep 0.1
done
echo none >> "$1"
"""
_TALKS = """
import os, signal, sys
from camgraph.pipeline.system.process_one import leave_orphans_to_parent
leave_orphans_to_parent()
def note(number, frame):
    print("got", number, flush=True)
    if number == signal.SIGTERM:
        sys.exit(7)
for one in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
    signal.signal(one, note)
print("ready", os.getpid() > 1, flush=True)
while True:
    signal.pause()
"""


def process_one(*arguments: object) -> Sequence[str]:
    """A command that runs Python as process 1. The test is skipped where nobody may be one."""
    if subprocess.run([*_PIDS, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no right to make a namespace of processes")
    return [*_PIDS, sys.executable, *map(str, arguments)]


def first_in(unshare: subprocess.Popen[str]) -> int:
    """Its number out here."""
    children = Path(f"/proc/{unshare.pid}/task/{unshare.pid}/children")
    return int(until(lambda: children.read_text().split())[0])


def test_orphans_of_programs_do_not_stay_as_zombies(tmp_path: Path) -> None:
    (tmp_path / "leaves.sh").write_text(f"#!/bin/sh{_LEAVES_AN_ORPHAN}")
    (tmp_path / "leaves.sh").chmod(0o700)
    (tmp_path / "ward.yaml").write_text(f"""
version: 1
name: ward
cameras: {{a: {{frames: 3}}}}
stages:
  numbers: {{use: count_source, each: cameras}}
  emit:    {{use: emit, from: numbers}}
  out:
    use: sink_command
    from: emit
    with: {{command: [{tmp_path}/leaves.sh, {tmp_path}/found.txt], limit: 60s}}
""")
    ended = subprocess.run(
        process_one("-m", "camgraph.tools.cli", "run", tmp_path / "ward.yaml"),
        env={**os.environ, "CAMGRAPH_STATE_DIR": str(tmp_path / "state")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    found = (tmp_path / "found.txt").read_text().split()
    assert len(found) >= 3
    assert set(found) == {"none"}


def test_signals_and_exit_status_pass_through() -> None:
    with subprocess.Popen(process_one("-c", _TALKS), stdout=subprocess.PIPE, text=True) as unshare:
        assert unshare.stdout
        assert unshare.stdout.readline() == "ready True\n"
        one = first_in(unshare)
        for number in (signal.SIGUSR1, signal.SIGINT, signal.SIGTERM):
            os.kill(one, number)
            assert unshare.stdout.readline() == f"got {number.value}\n"
        assert unshare.wait() == 7


def test_interrupt_from_a_terminal_comes_once() -> None:
    """A second one would end a run at once."""
    leader, terminal = pty.openpty()
    command = ["setsid", "--ctty", "--wait", *process_one("-c", _TALKS)]
    with subprocess.Popen(command, stdin=terminal, stdout=subprocess.PIPE, text=True) as shell:
        assert shell.stdout
        assert shell.stdout.readline() == "ready True\n"
        os.write(leader, b"\x03")
        assert shell.stdout.readline() == f"got {signal.SIGINT.value}\n"
        os.write(leader, b"\x03")
        assert shell.stdout.readline() == f"got {signal.SIGINT.value}\n"
        [unshare] = Path(f"/proc/{shell.pid}/task/{shell.pid}/children").read_text().split() or [shell.pid]
        one = Path(f"/proc/{unshare}/task/{unshare}/children").read_text().split()[0]
        os.kill(int(one), signal.SIGTERM)
        assert shell.stdout.readline() == f"got {signal.SIGTERM.value}\n"
    os.close(leader)
    os.close(terminal)
