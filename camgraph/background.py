"""A run in a thread of this program, and what keeps it from outliving whoever started it.

    prepare --ready--> running --its end--> over
                          |  stop: cameras end, what is on its way still arrives
                          |  hurry: it does not
                          |  abandon: nobody reads any more; unread events stay in the outbox

The thread knows the run; whoever started it knows the thread. So a run that nobody refers to any more can be found out
and stopped.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from camgraph.inbox import Board, Inbox
from camgraph.readers import addressed
from pipeline.local import LocalRun
from pipeline.monitoring.outcome import Outcome
from pipeline.outbox.event_file import SUFFIXES
from pipeline.outbox.outbox_folder import outbox_folder
from pipeline.plan import RunPlan
from pipeline.supervision.supervisor import Supervisor
from pipeline.system.run_folder import RunFolder
from pipeline.system.scarcity import require_processes
from pipeline.wanted import Loader
from tools.display.running import only_run, said_for_people

_ABANDONED_S = 2.0
"""So long what is on its way may take when nobody reads any more."""
_EXIT_S = 10.0
_STATUS_S = 3.0


class Background:
    """One run. `inboxes`: what its program wants to read. `loader`: see `pipeline.supervisor.Supervisor`.

    `anew`: it gets nothing that an earlier run of this name has left, and leaves nothing to a later one.
    """

    def __init__(
        self, plan: RunPlan, loader: Loader, board: Board, inboxes: Sequence[Inbox[Any]], *, anew: bool = False
    ) -> None:
        self._anew = anew
        self.plan = plan
        self.board = board
        self.inboxes = inboxes
        self.error: BaseException | None = None
        self.outcome: Outcome | None = None
        self._loader = loader
        self._ready = threading.Event()
        self._over = threading.Event()
        self._run: Supervisor | LocalRun | None = None
        self._asked: list[threading.Event] = []
        cameras = {camera: dict[str, Any]() for camera in plan.camera_settings}
        self._status: dict[str, Any] = {"graph": plan.graph, "phase": "starting", "cameras": cameras}
        self._stopped = self._hurried = False
        self._abandoned_at = 0.0
        self.addresses: Mapping[str, Path] = {}

    def start(self) -> None:
        """Begin. Raises what keeps it from beginning. One of the same name that is ending here is waited for."""
        for other in list(_running):
            if other.plan.graph == self.plan.graph and other.is_ending:
                other.wait(_EXIT_S)
        threading.Thread(target=self._main, name=f"camgraph-{self.plan.graph}", daemon=True).start()
        _running.add(self)
        try:
            self._ready.wait()
        except BaseException:  # Ctrl-C: nobody will have a run that has begun
            self.abandon()
            raise
        if self.error is not None and self._run is None:
            raise self.error

    # ---- the thread

    def _main(self) -> None:
        try:
            with said_for_people(), only_run(self.plan) as folder:
                if self._anew:
                    self._forget_earlier()
                self._listen(folder)
                self._run = self._made(folder)
                self._ready.set()
                self.outcome = self._run.run()
                self._status = self._run.status()
        except BaseException as error:  # noqa: BLE001 - raised again where somebody waits for the end
            self.error = error
        finally:
            # Before anybody hears of the end: whoever waits for it may start the next run.
            with self.board.changed:
                for inbox in self.inboxes:
                    inbox.close()
            self._over.set()
            self._ready.set()
            self._answer()
            self.board.end()
            _running.discard(self)

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

    def _made(self, folder: RunFolder) -> Supervisor | LocalRun:
        plan = addressed(self.plan, self.addresses)
        if plan.in_process:
            return LocalRun(plan, self._look)
        require_processes()
        return Supervisor(plan, folder, self._look, self._loader)

    def _look(self, run: Supervisor | LocalRun) -> None:
        """Called by the run, about ten times a second."""
        if self._asked:
            self._status = run.status()
            self._answer()
        if self._abandoned_at and not self._stopped:
            self._let_go()
            self.stop()
        if self._abandoned_at and time.monotonic() - self._abandoned_at > _ABANDONED_S:
            self.hurry()

    def _let_go(self) -> None:
        with self.board.changed:
            for inbox in self.inboxes:
                if self._anew:  # no later run would get what is kept
                    inbox.discard()
                else:
                    inbox.close()

    def _answer(self) -> None:
        asked, self._asked = self._asked, []
        for one in asked:
            one.set()

    # ---- from other threads

    def status(self) -> dict[str, Any]:
        """How the run is, as `pipeline.status` says it; of one that is busy, how it was."""
        if not self._over.is_set():
            answered = threading.Event()
            self._asked.append(answered)
            if not self._over.is_set():
                answered.wait(_STATUS_S)
        return self._status

    def stop(self) -> None:
        """Let the cameras end, and what is on its way arrive."""
        if self._run is not None and not self._stopped:
            self._stopped = True
            self._run.stop()

    def hurry(self) -> None:
        """Give up what is on its way."""
        self.stop()
        if self._run is None or self._hurried:
            return
        self._hurried = True
        if isinstance(self._run, LocalRun):
            self._run.hurry()
        else:
            self._run.stop()

    def abandon(self) -> None:
        """Nobody reads any more. Returns at once, and takes no lock: the garbage collector calls it."""
        self._abandoned_at = self._abandoned_at or time.monotonic()

    @property
    def is_ending(self) -> bool:
        """Whether somebody has stopped it, or nobody reads any more."""
        return self._stopped or self._abandoned_at > 0

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for the end of the run; False where it goes on."""
        return self._over.wait(timeout_s)


_running: weakref.WeakSet[Background] = weakref.WeakSet()


def _end_all() -> None:
    """Python ends: every run does. Their processes would notice that by themselves, up to 2 s later."""
    left = list(_running)
    for run in left:
        run.abandon()
    until = time.monotonic() + _EXIT_S
    for run in left:
        if not run.wait(until - time.monotonic()):
            run.hurry()
    for run in left:
        run.wait(max(1.0, until - time.monotonic()))


def _forget_all() -> None:
    """A fork of this process has the objects, and none of the threads: the runs are its parent's."""
    _running.clear()


atexit.register(_end_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
