"""Decides what the death of a process means for the run, and how long the process waits before it restarts.

The run ends, goes on without a source's cameras, or restarts the process. A process that has worked since its last
death, or that may be dying of a poison message that has not been found yet (five deaths, see `pipeline.items`),
restarts soon, because cameras wait for it. A process that does not even open its stages waits longer.
"""

from __future__ import annotations

import signal
from dataclasses import dataclass, replace

from camgraph.pipeline.errors import EXIT_GAVE_UP, EXIT_USER, ProblemText
from camgraph.pipeline.plan import RunPlan

MOST_DEATHS = 8
_MOST_FAILED_STARTS = 3


_WAY_OUT = (
    "if its stages need longer, raise `open_s` in the graph file; otherwise one of them never finishes, for "
    "example because its model calculates for ever: use another model"
)


def reason_of(status: int) -> str:
    """Describe an exit status, as `subprocess` has it, in words."""
    return f"signal {-status}" if status < 0 else f"exit status {status}"


def hint_at(status: int, killed_for: str) -> str:
    """Return a likely cause of an unexpected death, "" if there is none to name."""
    if status == -signal.SIGKILL and not killed_for:
        return "killed from outside, as the kernel does when memory is short: see dmesg, and the container's limit"
    return ""


def lost_at_close(process: str, status: int, killed_for: str) -> ProblemText:
    """Describe the death of a process while it closed; `killed_for`: the reason if the supervisor killed it."""
    how = f"was killed: {killed_for}" if killed_for else f"died while it closed: {reason_of(status)}"
    return _died(f"{process} {how}; data that its stages had not written yet are lost")


def _died(text: str) -> ProblemText:
    return ProblemText(text, error_id="process-died")


@dataclass(frozen=True, slots=True)
class Death:
    """A death. `opened`: the process had opened its stages. `failure`: exit status and text, if it reported them.

    `killed_for`: the reason if it was killed as hung. `status`: as in `subprocess`, negative for a signal.
    `failed_starts`, `fruitless`: as in `Restarts`, this death included. `last_chance`: the process is no source, or a
    source that was restarted only to end its cameras.
    """

    process: str
    status: int
    opened: bool
    failure: tuple[int, ProblemText] | None
    failed_starts: int
    fruitless: int
    last_chance: bool = True
    killed_for: str = ""

    @property
    def reason(self) -> str:
        """The exit status in words."""
        return reason_of(self.status)

    @property
    def why(self) -> str:
        """The reason that the process reported, else the reason for its killing, else its exit status in words."""
        return self.failure[1] if self.failure else self.killed_for or self.reason


@dataclass(frozen=True, slots=True)
class EndRun:
    """The run ends with this status and problem."""

    status: int
    problem: ProblemText


@dataclass(frozen=True, slots=True)
class EndCameras:
    """The source ends its own cameras for this reason; the other cameras go on."""

    problem: str


@dataclass(frozen=True, slots=True)
class GoOn:
    """The process restarts after a pause. `lost`: the state of its stages is lost."""

    lost: bool
    pause_s: float = 0.0


@dataclass(frozen=True, slots=True)
class NotNeeded:
    """The process is not needed any more. `problem`: exit status and text, if something was lost with it."""

    problem: tuple[int, ProblemText] | None = None


@dataclass(frozen=True, slots=True)
class OtherSettings:
    """The process restarts at once. `lost`: with new settings, so the state of its stages is lost on purpose.

    `refused`: if it did not open with the new settings, the reason; it gets back the last ones that worked.
    """

    lost: bool = False
    refused: str = ""


Consequence = EndRun | EndCameras | GoOn | NotNeeded | OtherSettings


def judge(death: Death, *, running: bool, finite: bool) -> EndRun | EndCameras | GoOn:
    """Decide what a death means. `running`: all processes that the run waits for were ready once, or the run does not
    wait for the dead process. `finite`: the graph is of files.

    Before the run is `running`, a reported failure or an opening that takes too long ends the run; so does the user's
    mistake on a graph of files. If a process of live cameras cannot open again (somebody has replaced its model, for
    example), it is retried for ever, while all others go on. A graph of files must not go on for ever: a source that
    keeps dying ends its own cameras; any other process that keeps dying ends the run, because all need it.
    """
    if death.failure and (not running or (death.failure[0] == EXIT_USER and (finite or death.opened))):
        return EndRun(*death.failure)
    if death.killed_for and not death.opened and not running:
        return EndRun(EXIT_GAVE_UP, _died(f"{death.process} does not start: {death.killed_for}: {_WAY_OUT}"))
    if death.status >= 0 and not death.opened and not running and death.failed_starts >= _MOST_FAILED_STARTS:
        return EndRun(EXIT_GAVE_UP, _died(f"{death.process} does not start: {death.reason}"))
    if finite and death.fruitless >= MOST_DEATHS:
        why = f"{death.process} died {death.fruitless} times in a row, last of {death.killed_for or death.reason}"
        return EndRun(EXIT_GAVE_UP, _died(why)) if death.last_chance else EndCameras(why)
    return GoOn(lost=death.failure is None or death.opened)


def is_finite(plan: RunPlan) -> bool:
    """True for a graph of files, which comes to an end: no camera is live."""
    return not plan.live_cameras


# ---- the pause before the next start

_HUNT_S = (0.0, 0.1, 0.2, 0.5, 0.5, 1.0)
_BACK_OFF_S = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0)
_AFTER_HUNT = 3
"""More deaths than the search for a poison message needs do not make the pause longer."""


@dataclass(frozen=True, slots=True)
class Restarts:
    """The deaths of one process.

    `total`: all; `in_a_row`: since it was steady; `fruitless`: since it last worked; `failed_starts`: since it last
    opened its stages.
    """

    total: int = 0
    in_a_row: int = 0
    fruitless: int = 0
    failed_starts: int = 0

    def after_death(self, *, opened: bool, steady: bool) -> Restarts:
        """Count a death of a process; `opened`: it had opened its stages.

        `steady`: it lived long enough for its earlier deaths not to count.
        """
        return Restarts(
            total=self.total + 1,
            in_a_row=1 if steady else self.in_a_row + 1,
            fruitless=self.fruitless + 1,
            failed_starts=0 if opened else self.failed_starts + 1,
        )

    def after_work(self) -> Restarts:
        """The process has finished some work."""
        return replace(self, fruitless=0)

    @property
    def pause_s(self) -> float:
        """Seconds from the last death to the next start."""
        if not self.total:
            return 0.0
        opened = not self.failed_starts
        if opened and self.fruitless <= len(_HUNT_S):
            return _HUNT_S[min(self.in_a_row, len(_HUNT_S)) - 1]
        row = self.fruitless - len(_HUNT_S) + _AFTER_HUNT if opened else self.failed_starts
        return _BACK_OFF_S[min(row, len(_BACK_OFF_S)) - 1]


NO_DEATHS = Restarts()
