"""How a run ended."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from pipeline.errors import EXIT_DONE, EXIT_GAVE_UP, EXIT_USER

_LOSSES = {
    "error": "{stages} failed on them; the log has the details",
    "invalid_event": "a stage made events that no sink could take; the log says which",
    "deadly": "processes died of them",
    "wire": "their messages were damaged",
    "write_failed": "they could not be written",
    "too_large": "a stage made a message that is too large to be sent",
    "torn": "their memory changed while it was read",
    "no_slot": "a stage makes more large messages of one frame than it declares (Stage.large_messages)",
}
_DROPPED_THINGS = {"invalid_event": "events"}


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

    def add_camera_errors(
        self,
        ended: Mapping[str, tuple[str, str]],
        cameras: Collection[str],
        statuses: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        """`ended`: camera -> (reason, error). `statuses`: camera -> whose fault an error is; if unknown, the user's.

        Where all of `cameras` failed for the same, it decides the exit status; where others worked, or failed for
        something else, the run has given up.
        """
        failed = {camera: ended[camera][1] for camera in cameras if ended.get(camera, ("",))[0] == "error"}
        faults = {statuses.get(camera) or EXIT_USER for camera in failed}
        status = faults.pop() if len(failed) == len(cameras) and len(faults) == 1 else EXIT_GAVE_UP
        for camera, error in failed.items():
            self.add(status, error if error.startswith(f"camera {camera}:") else f"camera {camera}: {error}")

    def add_losses(self, counts: Mapping[tuple[str, str], int]) -> None:
        """Frames that were dropped because something is wrong, not because the graph says so."""
        for reason, why in _LOSSES.items():
            lost = {camera: n for (name, camera), n in sorted(counts.items()) if name == f"dropped.{reason}" and n}
            if lost:
                what = _DROPPED_THINGS.get(reason, "frames")
                told = ", ".join(f"{n} of {camera or '?'}" for camera, n in lost.items())
                self.add(EXIT_GAVE_UP, f"{what} dropped ({told}): {why.format(stages=_failed_stages(counts))}")


def _failed_stages(counts: Mapping[tuple[str, str], int]) -> str:
    """The stages that failed on an item, by their own counters."""
    names = sorted({name.removeprefix("failed.") for name, _ in counts if name.startswith("failed.")})
    return ", ".join(names) or "a stage"
