"""How a run ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pipeline.errors import EXIT_DONE, EXIT_GAVE_UP, EXIT_USER


@dataclass(slots=True)
class Outcome:
    """The exit status of a run, and what must be told."""

    status: int = EXIT_DONE
    problems: list[str] = field(default_factory=list)

    def add(self, status: int, problem: str) -> None:
        """One thing that went wrong; the first decides the exit status."""
        if problem not in self.problems:
            self.problems.append(problem)
        if self.status == EXIT_DONE:
            self.status = status

    def add_camera_errors(self, ended: Mapping[str, tuple[str, str]]) -> None:
        """`ended`: camera -> (reason, error). All failed: the user's mistake; some of them: given up."""
        failed = {camera: error for camera, (reason, error) in ended.items() if reason == "error"}
        for camera, error in failed.items():
            self.add(EXIT_USER if len(failed) == len(ended) else EXIT_GAVE_UP, f"camera {camera}: {error}")
