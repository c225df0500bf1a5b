"""A run in a thread of this program, which ends no later than the program.

    prepare --ready--> running --its end--> over
                          |  stop: cameras end; frames on their way still arrive
                          |  hurry: frames on their way are given up
                          |  abandon: nobody reads any more; unread events stay in the outbox

The thread refers to the run, and the program's `Run` refers to the thread, but not the other way round. So a `Run` that
the program has dropped is garbage-collected. The thread looks whether that has happened, and then abandons the run. A
finalizer would not do: if Ctrl-C comes while one runs, Python drops the KeyboardInterrupt and the rest of it.

Other threads only set flags, which the thread of the run obeys: they may be interrupted at any moment.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from camgraph.inbox import Board, Inbox
from camgraph.pipeline.errors import CamgraphError, EnvironmentProblem, UserError
from camgraph.pipeline.monitoring.outcome import Outcome
from camgraph.pipeline.monitoring.run_status import RunStatus
from camgraph.pipeline.outbox.event_file import SUFFIXES
from camgraph.pipeline.outbox.outbox_folder import outbox_folder
from camgraph.pipeline.plan import RunPlan
from camgraph.pipeline.run_view import RunView
from camgraph.pipeline.system.run_folder import RunFolder
from camgraph.pipeline.system.scarcity import require_processes
from camgraph.pipeline.wanted import Loader
from camgraph.readers import addressed
from camgraph.threads import Latch, start_thread
from camgraph.tools.display.running import errors_for_people, only_run, run_of

_ABANDONED_S = 2.0
"""How long an abandoned run may take to finish the frames on their way."""
_EXIT_S = 10.0
_STATUS_S = 3.0


class _Asked:
    """Something that another thread wants to be done, by the thread of the run."""

    def __init__(self, act: Callable[[RunView], None]) -> None:
        self._act = act
        self.done = Latch()
        self.error: CamgraphError | None = None

    def do(self, run: RunView) -> None:
        try:
            self._act(run)
        except (UserError, EnvironmentProblem) as error:
            self.error = error
        self.done.set()


class Background:
    """One run. `inboxes`: one for each kind that the program reads. `loader`: see `supervision.supervisor.Supervisor`.

    `owner`: returns None when the program has dropped the run. `anew`: the run gets no events that an earlier run of
    its name left, and leaves none for a later one.
    """

    def __init__(
        self,
        plan: RunPlan,
        loader: Loader,
        board: Board,
        inboxes: Sequence[Inbox[Any]],
        *,
        owner: Callable[[], object],
        anew: bool = False,
    ) -> None:
        self._owner = owner
        self._anew = anew
        self.plan = plan
        self.board = board
        self.inboxes = inboxes
        self.error: BaseException | None = None
        self.outcome: Outcome | None = None
        self._loader = loader
        self._begun = threading.Lock()  # taken once: by the thread, or by an interrupted `start` if that was sooner
        self._ready = Latch()
        self._over = Latch()
        self._run: RunView | None = None
        self._asked: list[Latch] = []
        self._waiting: list[_Asked] = []
        self._status = RunStatus.before_start(plan.graph, plan.camera_settings)
        self._stopped = self._hurried = False
        self._passed_on = self._let_go_of = False
        self._abandoned_at = 0.0
        self.addresses: Mapping[str, Path] = {}

    def start(self) -> None:
        """Start the run; raises the error if it cannot start. Waits for a run of the same name that is ending.

        If a signal handler raises meanwhile, the run never begins, or is abandoned.
        """
        for other in _all_running():
            if other.plan.graph == self.plan.graph and other.is_ending:
                other.wait(_EXIT_S)
        try:
            _running[id(self)] = weakref.ref(self)
            start_thread(self._main, f"camgraph-{self.plan.graph}")
            self._ready.wait()
        except BaseException:  # Ctrl-C, or the system allows no more threads
            self.abandon()
            if self._begun.acquire(blocking=False):
                self._over.set()
            raise
        if self.error is not None and self._run is None:
            raise self.error

    # ---- the thread

    def _main(self) -> None:
        if not self._begun.acquire(blocking=False):
            return
        try:
            with errors_for_people(), only_run(self.plan) as folder:
                if self._anew:
                    self._forget_earlier()
                self._listen(folder)
                self._run = self._made(folder)
                self._ready.set()
                self.outcome = self._run.run()
                self._status = self._run.status()
        except BaseException as error:  # noqa: BLE001 - raised again for the caller that waits for the end
            self.error = error
        finally:
            # Close the inboxes first: a caller that waits for `_over` may start the next run at once.
            with self.board.lock:
                for inbox in self.inboxes:
                    inbox.close()
            self._over.set()
            self._ready.set()
            self._answer()
            self.board.end()
            _running.pop(id(self), None)

    def _forget_earlier(self) -> None:
        folder = outbox_folder(self.plan)
        if folder is None:
            return
        for suffix in SUFFIXES:
            (folder / f"outbox.sqlite{suffix}").unlink(missing_ok=True)

    def _listen(self, folder: RunFolder) -> None:
        live = bool(self.plan.camera_settings) and len(self.plan.live_cameras) == len(self.plan.camera_settings)
        self.addresses = {inbox.kind: folder.own / f"api.{inbox.kind[0]}" for inbox in self.inboxes}
        for inbox in self.inboxes:
            newest = live and inbox.kind != "events"
            inbox.listen(self.addresses[inbox.kind], "newest" if newest else "every")

    def _made(self, folder: RunFolder) -> RunView:
        plan = addressed(self.plan, self.addresses)
        if not plan.in_process:
            require_processes()
        return run_of(plan, folder, self._look, self._loader)

    def _look(self, run: RunView) -> None:
        """Called by the run, about ten times a second."""
        if self._asked:
            self._status = run.status()
            self._answer()
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            one.do(run)
        if self._owner() is None:
            self.abandon()
        if self._abandoned_at and not self._let_go_of:
            self._let_go_of = True
            self._let_go()
        if self._abandoned_at and time.monotonic() - self._abandoned_at > _ABANDONED_S:
            self._hurried = True
        self._obey(run)

    def _obey(self, run: RunView) -> None:
        if self.is_ending and not self._passed_on:
            self._passed_on = True
            run.stop()
        if self._hurried:
            run.hurry()

    def _let_go(self) -> None:
        with self.board.lock:
            for inbox in self.inboxes:
                if self._anew:  # no later run would read the events that it left
                    inbox.discard()
                else:
                    inbox.close()

    def _answer(self) -> None:
        asked, self._asked = self._asked, []
        for one in asked:
            one.set()

    # ---- from other threads

    def status(self) -> RunStatus:
        """Return the run's status; the last known one if the run does not answer."""
        if not self._over.is_set():
            answered = Latch()
            self._asked.append(answered)
            if not self._over.is_set():
                answered.wait(_STATUS_S)
        return self._status

    def switch(self, name: str, *, on: bool) -> None:
        """Set a switch. Raises UserError if there is none, EnvironmentProblem if the run is over or does not answer."""
        self._do(lambda run: run.turn_switch(name, on=on), f"take the switch {name}")

    def reset_counter(self, name: str, camera: str | None) -> None:
        """Set a counter to zero, on all cameras by default. Raises as `switch`."""
        self._do(lambda run: run.reset_counter(name, camera), f"set the counter {name} to zero")

    def _do(self, act: Callable[[RunView], None], what: str) -> None:
        asked = _Asked(act)
        self._waiting.append(asked)
        if self._over.is_set() or not asked.done.wait(_STATUS_S):
            raise EnvironmentProblem(f"the run does not {what}: it is over, or does not answer", error_id="run-over")
        if asked.error:
            raise asked.error

    def stop(self) -> None:
        """End the cameras; frames on their way still arrive."""
        self._stopped = True

    def hurry(self) -> None:
        """End the cameras, and give up the frames on their way."""
        self._stopped = self._hurried = True
        if self._run is not None:
            self._run.hurry()  # at once: a run that ends its processes does not look any more

    def abandon(self) -> None:
        """Stop the run because nobody reads any more. Returns at once."""
        self._abandoned_at = self._abandoned_at or time.monotonic()

    @property
    def is_ending(self) -> bool:
        """Whether the run was stopped or abandoned, or the program has dropped it."""
        return self._stopped or self._abandoned_at > 0 or self._owner() is None

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for the end of the run; False if it goes on after `timeout_s`."""
        return self._over.wait(timeout_s)


_running: dict[int, weakref.ref[Background]] = {}
"""The runs of this program, by `id`. No WeakSet: it must not change in one thread while another goes through it."""


def _all_running() -> list[Background]:
    return [run for one in list(_running.values()) if (run := one()) is not None]


def _end_all() -> None:
    """End every run when Python exits. Their processes would notice the exit themselves, but up to 2 s later."""
    left = _all_running()
    for run in left:
        run.abandon()
    until = time.monotonic() + _EXIT_S
    for run in left:
        if not run.wait(until - time.monotonic()):
            run.hurry()
    for run in left:
        run.wait(max(1.0, until - time.monotonic()))


def _forget_all() -> None:
    """Forget the runs in a forked child: it has copies of the objects but not their threads. The parent goes on."""
    _running.clear()


atexit.register(_end_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
