"""The questions that the pipeline asks about the body of an event, which is bytes to it.

The package that defines the events answers them. It is found, as stages are, by an entry point:

    [project.entry-points."camgraph.event_format"]
    events = "camgraph.stages.events:CloudEvents"
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Protocol

from camgraph.pipeline.errors import EnvironmentProblem
from camgraph.pipeline.monitoring.camera_states import Change, LossOver

GROUP = "camgraph.event_format"


@dataclass(frozen=True, slots=True)
class EventStatus:
    """An event as the status of a run shows it. `people`: their track ids."""

    time: str = ""
    camera: str = ""
    action: str = ""
    phase: str = ""
    people: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class EventSummary:
    """The facts about an event that a run counts and shows.

    `camera`, `action`: the event is counted under these. `begins`: it begins an incident, or is a whole one.
    """

    camera: str
    action: str
    begins: bool
    shown: EventStatus


@dataclass(frozen=True, slots=True)
class Origin:
    """An event that the run itself makes: its id, the name of its graph, and its time (Unix, ns)."""

    event_id: str
    graph: str
    wall_ns: int


class EventFormat(Protocol):
    """Reads and writes the bodies of events.

    Every body that it makes is valid to it, fits on one line, and has at most `LONGEST_BODY` bytes.
    """

    def why_invalid(self, body: bytes) -> str:
        """The mistake in a body of one line, as one of a few fixed sentences; "" if every sink can take it."""

    def summary(self, body: bytes) -> EventSummary:
        """Summarise any body, also one that is not an event of this format, in a few short texts and numbers."""

    def lost_end(self, event_id: str, last: bytes) -> bytes:
        """Return the end of an incident whose process has died, made from the body of its last event."""

    def stage_restarted(self, origin: Origin, *, stage: str, camera: str, reason: str) -> bytes:
        """Return the event that a stage has lost its state of a camera."""

    def camera_changed(self, origin: Origin, incident: str, change: Change | LossOver) -> bytes:
        """Return the event that a camera is lost, is back, or is no longer wanted."""


@functools.cache
def event_format() -> EventFormat:
    """Return the installed format. Raises EnvironmentProblem if there is none, or more than one."""
    points = {point.value: point for point in entry_points(group=GROUP)}
    if len(points) != 1:
        found = ", ".join(sorted(points)) or "none"
        raise EnvironmentProblem(
            f"expected one entry point {GROUP}, found {found}: install camgraph again, alone",
            error_id="installation-damaged",
        )
    [point] = points.values()
    made: EventFormat = point.load()()
    return made
