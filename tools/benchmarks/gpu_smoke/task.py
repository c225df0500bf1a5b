"""What a step is handed, and what it hands back."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple


class Failed(Exception):
    """What a step had to show did not show."""


@dataclass(frozen=True)
class Task:
    """What the steps are to try, and how long each measurement takes."""

    model: str
    clip: str
    seconds: float = 3.0
    frames: int = 40
    cameras: Sequence[int] = (16, 64)
    device: int = 0
    free_mb: float | None = None
    """Of the GPU's memory, before the other steps; None if nobody has looked."""


@dataclass
class Bench:
    """What a step works with: the task, an own folder, and a place for figures."""

    task: Task
    folder: Path
    figures: dict[str, Any] = field(default_factory=dict)

    def command(self, *arguments: str) -> str:
        """What `camgraph ...` prints. Raises Failed if it ends with another status than 0, 1 or 3."""
        done = subprocess.run(  # noqa: S603 - our own program
            [sys.executable, "-P", "-m", "tools.cli", *arguments], capture_output=True, text=True, check=False
        )
        if done.returncode not in (0, 1, 3):
            raise Failed(f"camgraph {arguments[0]} ended with status {done.returncode}: {done.stderr[-500:]}")
        return done.stdout


class Step(NamedTuple):
    """`shows`: what a GPU must show in it; `limit_s`: the longest that it may take."""

    shows: str
    limit_s: float
    run: Callable[[Bench], str]
