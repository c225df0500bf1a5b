"""Runs a plan for a person: signals, the live display, the summary, the exit status."""

from __future__ import annotations

import logging
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING, Any

import structlog
from rich.console import Console

from camgraph.pipeline.errors import EXIT_ENVIRONMENT, EXIT_SIGINT, EnvironmentProblem
from camgraph.pipeline.graph.graph_source import GraphSource
from camgraph.pipeline.monitoring.outcome import Outcome
from camgraph.pipeline.monitoring.run_status import RunStatus
from camgraph.pipeline.outbox.outbox_folder import outbox_held
from camgraph.pipeline.plan import RunPlan, run_to_wire
from camgraph.pipeline.run_view import RunView
from camgraph.pipeline.system.confidential import forbid_dumps, holds_credentials
from camgraph.pipeline.system.disk import HAS_LOCKS
from camgraph.pipeline.system.file_access import kept_from_others
from camgraph.pipeline.system.logs import log_failed_threads, log_to_stderr
from camgraph.pipeline.system.scarcity import in_words, require_processes
from camgraph.pipeline.wanted import Loader
from camgraph.tools.display.console import console_of_errors
from camgraph.tools.display.keeping_up import KeepingUp
from camgraph.tools.display.live_table import Display, open_display, render_summary
from camgraph.tools.display.screen import hide_in_words_of_libraries, log_line, way_to_explanations
from camgraph.tools.display.service_notices import ServiceNotices, service_notices
from camgraph.tools.display.summary import summary_of

if TYPE_CHECKING:
    from camgraph.pipeline.system.run_folder import RunFolder
    from camgraph.tools.display.progress import Pace

_RELOADING = getattr(signal, "SIGHUP", None)
_SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


@dataclass(frozen=True, slots=True)
class _End:
    """How a run ended, and its last status. `interrupted`: somebody pressed Ctrl-C."""

    outcome: Outcome
    status: RunStatus
    interrupted: bool

    @property
    def exit_status(self) -> int:
        return EXIT_SIGINT if self.interrupted else self.outcome.status


class _Signals:
    """SIGINT and SIGTERM let the run drain; a second one ends it at once. SIGHUP reloads the graph file.

    If there is nothing to reload, or the terminal is gone, SIGHUP drains the run as well.
    """

    def __init__(self, run: RunView, notices: ServiceNotices | None) -> None:
        self.interrupted = False
        self._run = run
        self._notices = notices
        self._had_terminal = _has_terminal()

    def __call__(self, number: int, _: FrameType | None) -> None:
        self.interrupted |= number == signal.SIGINT
        if number == _RELOADING and self._run.can_reload and not (self._had_terminal and not _has_terminal()):
            self._run.reload()
            if self._notices:
                self._notices.reloading()
        else:
            self._run.stop()
            if self._notices:
                self._notices.stopping()

    @contextmanager
    def handled(self) -> Iterator[None]:
        """Handle these signals meanwhile."""
        handled = [number for number in _SIGNALS if signal.getsignal(number) != signal.SIG_IGN]  # nohup ignores SIGHUP
        before = {number: signal.signal(number, self) for number in handled}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _has_terminal() -> bool:
    """Whether this process belongs to a terminal; it does not any more when that is closed."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except (OSError, AttributeError):
        return False
    return True


def run_plan(
    plan: RunPlan,
    *,
    json_logs: bool = False,
    quiet: bool = False,
    calm: bool = False,
    loader: Loader | None = None,
    way_in: Sequence[str] = (),
) -> int:
    """Run a plan to its end and show it on the standard error; returns the exit status. `calm`: successes are not
    logged.

    `loader`: loads the graph file again, with the variables of this run. `way_in`: lines for a person, shown as soon
    as the run has begun.

    The display keeps away from the standard output, which belongs to a sink that writes there. Raises UserError or
    EnvironmentProblem if the run cannot even begin.
    """
    console = console_of_errors()
    plain = quiet or json_logs
    with nullcontext() if plain else open_display(console) as display:
        sink = log_line if json_logs else partial(_print, console)
        log_to_stderr(as_json=json_logs, sink=sink, least=logging.WARNING if quiet or calm else logging.INFO)
        _protect(plan)
        shown = _Shown(display, _pace_of(plan) if display else None, _Remarks(console, way_in, KeepingUp(plan)))
        with errors_for_people(), service_notices() as notices:
            end = _run(plan, _each(shown, notices), loader or GraphSource(), notices)
    # Of a run that the disk has stopped, the counters do not tell what there would have been.
    is_explained = not quiet and end.outcome.status != EXIT_ENVIRONMENT
    no_events = _why_no_events(end.status, plan) if is_explained else ""
    if json_logs:
        _log_the_end(end, no_events)
    else:
        _print_the_end(console, plan, end, no_events, with_summary=not plain)
    return end.exit_status


def run_aside(plan: RunPlan, look: Callable[[Any], None]) -> tuple[Outcome, bool]:
    """Run a plan to its end and show nothing but errors: its outcome, and whether somebody interrupted it.

    ``look`` is called about ten times a second with the run. Raises as `run_plan` does.
    """
    log_to_stderr(least=logging.ERROR)
    _protect(plan)
    with errors_for_people():
        end = _run(plan, look, None, None)
    return end.outcome, end.interrupted


def _protect(plan: RunPlan) -> None:
    """Keep the secrets of a plan out of logs and core dumps, and log the failures of threads."""
    log_failed_threads()
    hide_in_words_of_libraries(plan.secrets)
    if plan.secrets or holds_credentials(run_to_wire(plan)):
        forbid_dumps(structlog.get_logger().warning)


def _run(plan: RunPlan, look: Callable[[RunView], None], loader: Loader | None, notices: ServiceNotices | None) -> _End:
    """Run a plan to its end; signals stop or reload the run meanwhile."""
    with _prepared(plan, look, loader) as run:
        signals = _Signals(run, notices)
        with signals.handled():
            outcome = run.run()
        return _End(outcome, run.status(), signals.interrupted)


def _each(*shown: Callable[[RunView], None] | None) -> Callable[[RunView], None]:
    """Call each of them with the run."""

    def show(run: RunView) -> None:
        for one in filter(None, shown):
            one(run)

    return show


def _why_no_events(status: RunStatus, plan: RunPlan) -> str:
    from camgraph.tools.display.no_events import why_no_events  # noqa: PLC0415 - knows stages, whose imports take long

    return why_no_events(status, plan)


def _log_the_end(end: _End, why_no_events: str) -> None:
    """Why there were no events, a line for each problem, and the last one of all."""
    log, status = structlog.get_logger(), end.status
    if why_no_events:
        log.warning("no_events", why=why_no_events)
    for problem in end.outcome.problems:
        kind = getattr(problem, "error_id", "")
        log.error("problem", why=problem, **({"error_id": kind} if kind else {}))
    log.info("over", graph=status.graph, status=end.exit_status, duration_s=status.uptime_s, **asdict(status.totals))


def _print_the_end(console: Console, plan: RunPlan, end: _End, why_no_events: str, *, with_summary: bool) -> None:
    """The summary, why there were no events, the problems, and the way to their explanations."""
    with suppress(OSError):
        if with_summary:
            console.print(render_summary(summary_of(end.status, plan)))
        if why_no_events:
            _print(console, f"no events: {why_no_events}")
        for problem in end.outcome.problems:
            _print(console, f"camgraph: {problem}")
        if end.outcome.error_ids:  # also without a terminal: this is the log of a service
            _print(console, way_to_explanations(end.outcome.error_ids))


class _Shown:
    """Shows a run, no more often than anybody can see; asking it for its status costs something."""

    def __init__(self, display: Display | None, pace: Pace | None, remarks: _Remarks) -> None:
        self._display = display
        self._pace = pace
        self._remarks = remarks
        self._next_s = 0.0

    def __call__(self, run: RunView) -> None:
        if self._display and time.monotonic() >= self._next_s:
            self._next_s = time.monotonic() + self._display.refresh_s
            try:
                status = self._pace.added_to(run.status()) if self._pace else run.status()
                self._display.show(status)
                self._remarks(status)
            except (OSError, OverflowError, ValueError):  # the terminal is gone, or a number of a stage is too large
                self._display = None


class _Remarks:
    """Lines for a person that stay above the live table: the way in when the run has begun, and what is amiss."""

    def __init__(self, console: Console, way_in: Sequence[str], keeping_up: KeepingUp) -> None:
        self._console = console
        self._way_in = list(way_in)
        self._keeping_up = keeping_up

    def __call__(self, status: RunStatus) -> None:
        is_open = status.phase == "running" and all(stage.state == "running" for stage in status.stages.values())
        if is_open and self._way_in:
            self._console.print("\n".join(self._way_in), style="bold", soft_wrap=True)
            self._way_in.clear()
        if words := self._keeping_up.words(status):
            self._console.print(words, style="yellow", soft_wrap=True)


def _pace_of(plan: RunPlan) -> Pace:
    from camgraph.tools.display.progress import Pace, expected_frames  # noqa: PLC0415 - knows stages, whose imports take long

    return Pace(expected_frames(plan))


def _print(console: Console, line: str) -> None:
    with suppress(OSError):  # as above
        console.print(line, soft_wrap=True)


@contextmanager
def errors_for_people() -> Iterator[None]:
    """Turn an error of the machine into an EnvironmentProblem, because it is no bug of the program."""
    try:
        yield
    except Exception as error:
        message = in_words(error)
        if message is None:
            raise
        raise EnvironmentProblem(message, error_id="system-limit") from None


@contextmanager
def _prepared(plan: RunPlan, show: Callable[[RunView], None], loader: Loader | None) -> Iterator[RunView]:
    if plan.in_process:
        with only_run(plan) if HAS_LOCKS else nullcontext(), kept_from_others(plan.readable_by):
            yield run_of(plan, None, show, loader)
        return
    require_processes()
    with only_run(plan) as folder:
        yield run_of(plan, folder, show, loader)


def run_of(
    plan: RunPlan, folder: RunFolder | None, report: Callable[[RunView], None], loader: Loader | None
) -> RunView:
    """The run of a plan, in this process if the plan says so; only then may the run be without a `folder`.

    `report` is called about ten times a second with the run.
    """
    # These import modules that a graph in one process does without.
    if plan.in_process or folder is None:
        from camgraph.pipeline.local import LocalRun  # noqa: PLC0415

        return LocalRun(plan, report)
    from camgraph.pipeline.supervision.supervisor import Supervisor  # noqa: PLC0415

    return Supervisor(plan, folder, report, loader)


@contextmanager
def only_run(plan: RunPlan) -> Iterator[RunFolder]:
    """The name and the outbox of this plan are this run's, wherever others are started, and so is its folder.

    If a system has no locks, the user must see to that.
    """
    from camgraph.pipeline.system.found_runs import refuse_second_run  # noqa: PLC0415
    from camgraph.pipeline.system.run_folder import RunFolder  # noqa: PLC0415

    with closing(RunFolder(plan.graph, plan.base_folder, plan.file)) as folder:
        refuse_second_run(plan.graph, folder.path)
        with outbox_held(plan):
            yield folder
