"""Runs a plan for a person: signals, the live display, the summary, the exit status."""

from __future__ import annotations

import logging
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

import click
from rich.console import Console

from pipeline.disk import HAS_LOCKS
from pipeline.errors import EXIT_SIGINT, EnvironmentProblem
from pipeline.logs import log_to_stderr
from pipeline.notices import CAMERA_TYPES
from pipeline.outcome import Outcome
from pipeline.plan import RunPlan
from pipeline.scarcity import in_words, require_processes
from tools.live_table import REFRESH_S, Display, open_display, render_summary
from tools.run_status import Status, Summary

_STOPPING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


class Run(Protocol):
    """A run, in processes of its own or in this one."""

    def run(self) -> Outcome: ...

    def stop(self) -> None: ...

    def status(self) -> dict[str, Any]: ...


class _Signals:
    """SIGINT, SIGTERM and SIGHUP (the terminal is gone) let the run drain; a second one ends it at once."""

    def __init__(self, run: Run) -> None:
        self.interrupted = False
        self._run = run

    def __call__(self, number: int, _: FrameType | None) -> None:
        self.interrupted |= number == signal.SIGINT
        self._run.stop()

    @contextmanager
    def handled(self) -> Iterator[None]:
        """Hear them meanwhile."""
        heard = [number for number in _STOPPING if signal.getsignal(number) != signal.SIG_IGN]  # as nohup wants it
        before = {number: signal.signal(number, self) for number in heard}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def run_plan(plan: RunPlan, *, json_logs: bool = False, quiet: bool = False, calm: bool = False) -> int:
    """Run a plan to its end and show it on the standard error; the exit status. `calm`: what goes well is not logged.

    The display keeps away from the standard output, which belongs to a sink that writes there. Raises UserError or
    EnvironmentProblem where the run cannot even begin.
    """
    console = _Console(stderr=True)
    plain = quiet or json_logs
    with nullcontext() if plain else open_display(console) as display:
        sink = None if json_logs else lambda line: _print(console, line)
        log_to_stderr(as_json=json_logs, sink=sink, least=logging.WARNING if quiet or calm else logging.INFO)
        with _said_for_people(), _prepared(plan, _Shown(display)) as run:
            signals = _Signals(run)
            with signals.handled():
                outcome = run.run()
            status = run.status()
    with suppress(OSError):
        if not plain:
            console.print(render_summary(Summary.from_json(_summary(status, plan))))
        for problem in outcome.problems:
            click.echo(f"camgraph: {problem}", err=True)
    return EXIT_SIGINT if signals.interrupted else outcome.status


class _Console(Console):
    """Whoever closes the standard error has seen enough, and that is all: Rich would end the program."""

    def on_broken_pipe(self) -> None:
        self.quiet = True


class _Shown:
    """Shows a run, no more often than anybody can see; asking it for its status costs something."""

    def __init__(self, display: Display | None) -> None:
        self._display = display
        self._next_s = 0.0

    def __call__(self, run: Run) -> None:
        if self._display and time.monotonic() >= self._next_s:
            self._next_s = time.monotonic() + REFRESH_S
            try:
                self._display.show(Status.from_json(run.status()))
            except OSError:  # nobody looks any more: that must not end the run
                self._display = None


def _print(console: Console, line: str) -> None:
    with suppress(OSError):  # as above
        console.print(line, markup=False, highlight=False, soft_wrap=True)


@contextmanager
def _said_for_people() -> Iterator[None]:
    """What the machine refuses is no bug of the program."""
    try:
        yield
    except Exception as error:
        told = in_words(error)
        if told is None:
            raise
        raise EnvironmentProblem(told) from None


@contextmanager
def _prepared(plan: RunPlan, show: Callable[[Run], None]) -> Iterator[Run]:
    # These import what a graph in one process does without.
    if plan.in_process:
        from pipeline.local import LocalRun  # noqa: PLC0415

        with _name_taken(plan.graph):
            yield LocalRun(plan, show)
        return
    require_processes()
    from pipeline.run_folder import RunFolder  # noqa: PLC0415
    from pipeline.supervisor import Supervisor  # noqa: PLC0415

    with closing(RunFolder(plan.graph)) as folder:
        yield Supervisor(plan, folder, show)


def _name_taken(name: str) -> AbstractContextManager[object]:
    """Two runs of one name would share an outbox. Where there are no such locks, the user has to see to it."""
    if not HAS_LOCKS:
        return nullcontext()
    from pipeline.run_folder import RunFolder  # noqa: PLC0415

    return closing(RunFolder(name))


def _summary(status: Mapping[str, Any], plan: RunPlan) -> dict[str, Any]:
    cameras = {name: {**c, "events": status["actions"].get(name, {})} for name, c in status["cameras"].items()}
    files = [path for path in status["files"] if Path(path).exists()]  # not one that was taken away meanwhile
    takes_all = any(not makers for makers in plan.event_filters.values())
    return {
        "graph": status["graph"],
        "duration_s": status["uptime_s"],
        "cameras": cameras,
        "departed": _departed(status),
        "totals": status["totals"],
        "files": files,
        "untaken": 0 if takes_all else _camera_events(status["actions"]),
    }


def _camera_events(actions: Mapping[str, Mapping[str, int]]) -> int:
    """How many are of cameras: no stage makes them, and only sinks that take all events get them."""
    return sum(n for of_one in actions.values() for name, n in of_one.items() if name.startswith(CAMERA_TYPES))


def _departed(status: Mapping[str, Any]) -> dict[str, Any] | None:
    """What those have left together that are no cameras of the run any more; None where none of them left anything."""
    here = {"", *status["cameras"]}
    left = [(name, n) for name, camera, n in status["counts"] if camera not in here]
    frames = sum(n for name, n in left if name == "frames")
    drops = sum(n for name, n in left if name.startswith("dropped."))
    actions = (Counter(actions) for camera, actions in status["actions"].items() if camera not in here)
    events = sum(actions, Counter[str]())
    return {"frames": frames, "drops": drops, "events": dict(events)} if frames or drops or events else None
