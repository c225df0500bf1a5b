"""Commands on a terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from contextlib import suppress
from pathlib import Path

LIMIT_S = 120.0


def on_a_terminal(*words: str, columns: int = 80, folder: Path | None = None) -> tuple[int, str]:
    """The exit status of `camgraph` with these words, and all that it shows."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environ = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    command = [sys.executable, "-m", "camgraph", *words]
    child = subprocess.Popen(command, cwd=folder, env=environ, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    shown = b""
    try:
        with suppress(OSError):  # the end of a terminal is an error
            while piece := os.read(ours, 4096):
                shown += piece
        return child.wait(LIMIT_S), shown.decode().replace("\r\n", "\n")
    finally:
        os.close(ours)
        child.kill()
        child.wait()
