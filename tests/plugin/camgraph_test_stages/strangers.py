"""Other users of this machine: what they do to a run from outside, and a run that is theirs."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from camgraph_test_stages import warm_starts

_ROOT = Path(__file__).resolve().parents[3]


class Person:
    """A user of this machine without a name, who has nothing but a folder. Only root can be another user."""

    def __init__(self, uid: int, folder: Path) -> None:
        """Make `folder` theirs, with mode 0700."""
        self.uid = uid
        self.folder = folder
        folder.mkdir(mode=0o700, exist_ok=True)
        os.chown(folder, uid, uid)
        self.environ = {
            "PATH": "/usr/bin:/bin",
            "PYTHONPATH": os.pathsep.join([str(_ROOT / "src"), str(Path(__file__).parents[1]), *sys.path]),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONUNBUFFERED": "1",
            "COLUMNS": "300",
        }

    def start(
        self, *arguments: object, stderr: int | IO[str] = subprocess.PIPE, **environ: str
    ) -> subprocess.Popen[str]:
        """Start Python as this user."""
        python = interpreter()
        assert python
        warm_starts.OTHERS.setdefault(python, warm_starts.Template(python))
        return subprocess.Popen(
            [python, *map(str, arguments)],
            user=self.uid,
            group=self.uid,
            extra_groups=[],
            cwd=self.folder,
            env={**self.environ, **environ},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        )

    def run(self, *arguments: object, limit_s: float = 120.0, **environ: str) -> subprocess.CompletedProcess[str]:
        """Run Python as this user to its end."""
        process = self.start(*arguments, **environ)
        try:
            out, err = process.communicate(timeout=limit_s)
        finally:
            process.kill()
            process.wait()
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)

    def camgraph(self, *words: object, **environ: str) -> subprocess.CompletedProcess[str]:
        """Run a command of camgraph as this user."""
        return self.run("-m", "camgraph.tools.cli", *words, **{"HOME": str(self.folder), **environ})

    def write(self, name: str, text: str) -> Path:
        """A file of theirs in their folder."""
        path = self.folder / name
        path.write_text(text)
        os.chown(path, self.uid, self.uid)
        return path


@functools.cache
def interpreter() -> str:
    """A Python of this version that another user can start as well; "" where there is none."""
    names = [f"/usr/bin/python{sys.version_info.major}.{sys.version_info.minor}", *_found()]
    return next((name for name in [sys.executable, *names] if _starts_for_others(name)), "")


def _found() -> Sequence[str]:
    name = shutil.which(f"python{sys.version_info.major}.{sys.version_info.minor}", path=os.defpath)
    return [name] if name else []


def _starts_for_others(name: str) -> bool:
    code = "import camgraph.pipeline, numpy, zmq, sys; sys.exit(0)"
    path = os.pathsep.join([str(_ROOT / "src"), *sys.path])
    try:
        tried = subprocess.run(
            [name, "-c", code],
            user=_NOBODY,
            group=_NOBODY,
            extra_groups=[],
            cwd="/",
            env={"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            check=False,
        )
    except OSError:
        return False
    return tried.returncode == 0


_NOBODY = 65534
