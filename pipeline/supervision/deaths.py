"""What the death of a process means for the run, and how long the process waits until it is started again.

The run ends, goes on without a source, or goes on. A process that works between its deaths, or that may be dying of a
poison message that has not been found yet (five deaths, see `pipeline.items`), comes back soon: cameras wait for it.
One that does not even open its stages does not.
"""

from __future__ import annotations

import signal
from dataclasses import dataclass, replace

from pipeline.errors import EXIT_GAVE_UP, EXIT_USER
from pipeline.plan import RunPlan

MOST_DEATHS = 8
_MOST_FAILED_STARTS = 3


_WAY_OUT = (
    "if its stages need longer, raise `open_s` in the graph file; else one of them does not come to an end, "
    "as with a model that calculates for ever: take another one"
)


def reason_of(status: int) -> str:
    """Of what a process died, in words; `status` as of `subprocess`."""
    return f"signal {-status}" if status < 0 else f"exit status {status}"


def hint_at(status: int, killed_for: str) -> str:
    """What may be behind a death that nobody here has wanted; "" where there is nothing to say."""
    if status == -signal.SIGKILL and not killed_for:
        return "killed from outside, as the kernel does where memory is short: see dmesg, and the container's limit"
    return ""


def lost_at_close(unit: str, status: int, killed_for: str) -> str:
    """What is told of a process that did not live to the end of its closing; `killed_for`: why it was killed, if so."""
    how = f"was killed: {killed_for}" if killed_for else f"died while it closed: {reason_of(status)}"
    return f"{unit} {how}; what its stages had not written yet is lost"


@dataclass(frozen=True, slots=True)
class Death:
    """`opened`: it had opened its stages. `failure`: exit status and text, where it said so itself before.

    `killed_for`: why it was killed, if it counted as hung. `status`: as of `subprocess`, negative for a signal.
    `failed_starts`, `fruitless`: as of `pipeline.supervision.deaths.Restarts`, this death included. `last_chance`: it
    is no source, or one that was told already only to end its cameras.
    """

    unit: str
    status: int
    opened: bool
    failure: tuple[int, str] | None
    failed_starts: int
    fruitless: int
    last_chance: bool = True
    killed_for: str = ""

    @property
    def reason(self) -> str:
        """In words."""
        return reason_of(self.status)

    @property
    def told(self) -> str:
        """Why, as the process has said it itself, or why it was killed, or else of what it died."""
        return self.failure[1] if self.failure else self.killed_for or self.reason


@dataclass(frozen=True, slots=True)
class EndRun:
    """The run ends with this status, and this is why."""

    status: int
    problem: str


@dataclass(frozen=True, slots=True)
class EndCameras:
    """The source's own cameras end, and this is why; the others go on."""

    problem: str


@dataclass(frozen=True, slots=True)
class GoOn:
    """It is started again after a pause. `lost`: the state of its stages is lost."""

    lost: bool
    pause_s: float = 0.0


@dataclass(frozen=True, slots=True)
class NotNeeded:
    """Nobody needs it any more. `problem`: exit status and text, if something was lost with it."""

    problem: tuple[int, str] | None = None


@dataclass(frozen=True, slots=True)
class OtherSettings:
    """It begins anew at once. `lost`: with other settings, and the state of its stages is lost, as somebody wanted.

    `refused`: why it has not opened with other settings, if so: it gets the last that it has opened with.
    """

    lost: bool = False
    refused: str = ""


Verdict = EndRun | EndCameras | GoOn | NotNeeded | OtherSettings


def judge(death: Death, *, running: bool, finite: bool) -> EndRun | EndCameras | GoOn:
    """What to do. `running`: all processes were ready once. `finite`: the graph is of files and should come to its end.

    What a process says before the run is `running` ends the run, and so do an opening that does not end by then, and
    the user's mistake on a graph of files. A process of live cameras that cannot be opened again (somebody has replaced
    its model, say) is tried for ever, while all others go on. A graph of files that cannot end otherwise does not go on
    for ever: a source that keeps dying ends its own cameras, any other process is needed by all.
    """
    if death.failure and (not running or (death.failure[0] == EXIT_USER and (finite or death.opened))):
        return EndRun(*death.failure)
    if death.killed_for and not death.opened and not running:
        return EndRun(EXIT_GAVE_UP, f"{death.unit} does not start: {death.killed_for}: {_WAY_OUT}")
    if death.status >= 0 and not death.opened and not running and death.failed_starts >= _MOST_FAILED_STARTS:
        return EndRun(EXIT_GAVE_UP, f"{death.unit} does not start: {death.reason}")
    if finite and death.fruitless >= MOST_DEATHS:
        why = f"{death.unit} died {death.fruitless} times in a row, last of {death.killed_for or death.reason}"
        return EndRun(EXIT_GAVE_UP, why) if death.last_chance else EndCameras(why)
    return GoOn(lost=death.failure is None or death.opened)


def is_finite(plan: RunPlan) -> bool:
    """True for a graph of files, which should come to its end: no camera is live."""
    return not plan.live_cameras


# ---- the pause before the next start

_HUNT_S = (0.0, 0.1, 0.2, 0.5, 0.5, 1.0)
_BACK_OFF_S = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0)
_AFTER_HUNT = 3
"""A death later than those of a hunt waits like one more than so many."""


@dataclass(frozen=True, slots=True)
class Restarts:
    """The deaths of one process.

    `total`: all; `in_a_row`: since it was steady; `fruitless`: since it worked last; `failed_starts`: since it had
    opened its stages last.
    """

    total: int = 0
    in_a_row: int = 0
    fruitless: int = 0
    failed_starts: int = 0

    def after_death(self, *, opened: bool, steady: bool) -> Restarts:
        """One death more, of a process that had opened its stages or not.

        `steady`: it lived so long that earlier deaths are no reason to wait.
        """
        return Restarts(
            total=self.total + 1,
            in_a_row=1 if steady else self.in_a_row + 1,
            fruitless=self.fruitless + 1,
            failed_starts=0 if opened else self.failed_starts + 1,
        )

    def after_work(self) -> Restarts:
        """The process has brought something through."""
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
