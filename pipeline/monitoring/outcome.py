"""How a run ended."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from camgraph.pipeline.errors import EXIT_DONE, EXIT_GAVE_UP, EXIT_USER, ProblemText
from camgraph.pipeline.stage import DROPPED
from camgraph.pipeline.system.redaction import redact_urls

_AS_INTENDED = frozenset({"queue_full", "reader_lost", "damaged"})
"""Normal losses: live cameras lose such frames, a graph may ask for it, and a file may have broken pictures."""
_WHERE_EDGES_DROP = frozenset({"stale"})
"""Also normal if the graph has an edge that drops."""
_WHY = {
    "error": "{stages} failed on them; the log has the details",
    "invalid_event": "a stage made events that no sink could take; the log has the reasons",
    "refused": "the other side refused them; `camgraph outbox list --dead` has the reasons",
    "expired": "they could not be delivered in time (`expires`); `camgraph outbox list --dead` shows them",
    "quarantined": "processes died while they worked on them",
    "wire": "their messages could not be read; the log has the details",
    "write_failed": "they could not be written",
    "too_large": "a stage made a message that is too large to be sent",
    "torn": "their memory changed while it was read",
    "stale": "their memory was used again before it was read",
    "unpaired": "a join got only a part of them",
    "shape": "a model gave outputs of another shape than it promised; the log has the details",
    "no_slot": "a stage makes more large messages of one frame than it declares (Stage.large_messages)",
}
GIVEN_UP = "given_up."
"""How the counters of events begin that waited for a sink and are lost for it: `given_up.<sink>`."""
UNSURE = "rescues_unsure"
"""The counter of damaged outboxes of which nobody can tell how many events are lost."""
_OTHERWISE = "`{reason}`; the log has the details"
_DROPPED_THINGS = {"invalid_event": "events", "refused": "events for a sink", "expired": "events for a sink"}
ERROR_IDS: Mapping[str, str] = {
    "frames": "frames-dropped",
    "events": "events-dropped",
    "events for a sink": "events-refused",
}
"""What was dropped -> the kind of problem."""


@dataclass(slots=True)
class Outcome:
    """The exit status of a run, and its problems; each may be a `ProblemText`."""

    status: int = EXIT_DONE
    problems: list[str] = field(default_factory=list)

    def add(self, status: int, problem: str) -> None:
        """Add a problem, with its id if it has one; the first one decides the exit status. Hides secrets in it."""
        problem = ProblemText(redact_urls(problem), error_id=_id_of(problem))
        if problem not in self.problems:
            self.problems.append(problem)
        if self.status == EXIT_DONE:
            self.status = status

    @property
    def error_ids(self) -> tuple[str, ...]:
        """The kinds of all problems, each once."""
        return tuple(dict.fromkeys(filter(None, map(_id_of, self.problems))))

    def add_camera_errors(
        self,
        ended: Mapping[str, tuple[str, str]],
        cameras: Collection[str],
        statuses: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        """`ended`: camera -> (reason, error). `statuses`: camera -> exit status of the error, by default the user's.

        If all of `cameras` failed for the same reason, it decides the exit status. If others worked, or failed for
        another reason, the run has given up cameras.
        """
        failed = {camera: ended[camera][1] for camera in cameras if ended.get(camera, ("",))[0] == "error"}
        faults = {statuses.get(camera) or EXIT_USER for camera in failed}
        status = faults.pop() if len(failed) == len(cameras) and len(faults) == 1 else EXIT_GAVE_UP
        for camera, error in failed.items():
            self.add(status, error if error.startswith(f"camera {camera}:") else _of_camera(camera, error))

    def add_absent(
        self, absent: Mapping[str, str], ended: Mapping[str, tuple[str, str]], *, stopped: bool = False
    ) -> None:
        """Report live cameras that were away for the whole run: camera -> state and reason.

        Cameras that failed are reported elsewhere, and removed ones are not missed. If the user has `stopped` the run,
        these cameras are named, but are no failure: the run would have gone on trying.
        """
        status = EXIT_DONE if stopped else EXIT_GAVE_UP
        for camera, how in absent.items():
            if ended.get(camera, ("",))[0] not in ("error", "removed"):
                self.add(status, _of_camera(camera, f"no frame in the whole run ({how})", error_id=_id_of(how)))

    def add_losses(self, counts: Mapping[tuple[str, str], int], *, edges_drop: bool = False) -> None:
        """Report frames that were dropped because of a fault, not because the graph or a live camera drops frames.

        `edges_drop`: the graph has an edge that drops.
        """
        intended = _AS_INTENDED | (_WHERE_EDGES_DROP if edges_drop else frozenset())
        lost: dict[str, dict[str, int]] = {}
        for (name, camera), n in sorted(counts.items()):
            reason = name.removeprefix(DROPPED)
            if n and reason != name and reason not in intended:
                lost.setdefault(reason, {})[camera] = n
        for sink, n in _given_up(counts).items():
            text = (
                f"{n} events were given up for {sink}: more waited for it than `outbox` allows, or their file was "
                "damaged; the log says which (`events_given_up`, `outbox_set_aside`)"
            )
            self.add(EXIT_GAVE_UP, ProblemText(text, error_id="events-given-up"))
        if any(n for (name, _), n in counts.items() if name == UNSURE):
            text = (
                "the outbox was damaged, and nobody can tell how many of its events are lost; the log says how many "
                "were saved (`outbox_set_aside`)"
            )
            self.add(EXIT_GAVE_UP, ProblemText(text, error_id="events-given-up"))
        for reason, cameras in lost.items():
            what = _DROPPED_THINGS.get(reason, "frames")
            message = ", ".join(f"{n} of {camera or '?'}" for camera, n in cameras.items())
            why = _WHY.get(reason, _OTHERWISE).format(reason=reason, stages=_failed_stages(counts))
            text = f"{what} dropped ({message}): {why}"
            self.add(EXIT_GAVE_UP, ProblemText(text, error_id=ERROR_IDS[what]))


def not_drained(drain_s: float, waits_for: str = "") -> ProblemText:
    """Frames or events were left after a stop."""
    more = f": {waits_for}" if waits_for else ""
    return ProblemText(f"not all was processed within {drain_s:g} s after the stop{more}", error_id="stop-too-short")


def blocked_too_long(limit_s: float, waits_for: str) -> ProblemText:
    """A run of files waits for a disk or a receiver no longer."""
    return ProblemText(f"gave up after waiting for {limit_s:g} s: {waits_for}", error_id="blocked-too-long")


def _id_of(problem: str) -> str:
    return getattr(problem, "error_id", "")


def _of_camera(camera: str, problem: str, *, error_id: str = "") -> ProblemText:
    return ProblemText(f"camera {camera}: {problem}", error_id=error_id or _id_of(problem))


def _given_up(counts: Mapping[tuple[str, str], int]) -> dict[str, int]:
    """Sink -> the events that waited for it, of all cameras, and that the outbox gave up."""
    found: dict[str, int] = {}
    for (name, _), n in sorted(counts.items()):
        if name.startswith(GIVEN_UP) and n:
            found[name.removeprefix(GIVEN_UP)] = found.get(name.removeprefix(GIVEN_UP), 0) + n
    return found


def _failed_stages(counts: Mapping[tuple[str, str], int]) -> str:
    """Name the stages that failed on an item, from their own counters."""
    names = sorted({name.removeprefix("failed.") for name, _ in counts if name.startswith("failed.")})
    return ", ".join(names) or "a stage"
