"""The task of a step, its workplace, and the error that it raises."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple


class Failed(Exception):
    """The GPU did not show what the step expects of it."""


@dataclass(frozen=True)
class Task:
    """The model, clip and cameras to try, and how long each measurement takes."""

    model: str
    clip: str
    seconds: float = 3.0
    frames: int = 40
    cameras: Sequence[int] = (16, 64)
    device: int = 0
    free_mb: float | None = None
    """Free memory of the GPU before the other steps; None if it was not measured."""


@dataclass
class Bench:
    """The workplace of a step: its task, a folder of its own, and a place for figures."""

    task: Task
    folder: Path
    figures: dict[str, Any] = field(default_factory=dict)

    def command(self, *arguments: str) -> str:
        """The output of `camgraph ...`. Raises Failed if it ends with another status than 0, 1 or 3."""
        done = subprocess.run(  # noqa: S603 - our own program
            [sys.executable, "-P", "-m", "camgraph.tools.cli", *arguments], capture_output=True, text=True, check=False
        )
        if done.returncode not in (0, 1, 3):
            raise Failed(f"camgraph {arguments[0]} ended with status {done.returncode}: {done.stderr[-500:]}")
        return done.stdout


class Step(NamedTuple):
    """`shows`: what a GPU must show in it; `limit_s`: the longest that it may take."""

    shows: str
    limit_s: float
    run: Callable[[Bench], str]
