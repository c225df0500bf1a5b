"""The GPUs of this machine, as nvidia-smi tells them. May be used from several threads.

nvidia-smi may hang for ever if the driver is ill, and then not even a kill ends it. So one thread at a time asks, and
nobody waits for it for long.
"""

from __future__ import annotations

import shutil
import subprocess
import threading
import time
from collections.abc import Sequence

from tools.measuring.nvidia_smi import LOADS, GpuLoad, loads_of

_FRESH_S = 5.0
"""For so long an answer is given to all who ask: nvidia-smi takes processor time, up to a second of it."""
_OLD_S = 60.0
"""An answer is given for so long while a newer one is awaited: without its persistence mode, the driver may take
seconds for each, and a scrape every quarter of a minute would never see one."""


class Gpus:
    """See the module. Nobody waits longer than `within_s`; nvidia-smi itself is given up after `given_up_s`."""

    def __init__(self, program: str = "nvidia-smi", *, within_s: float = 2.0, given_up_s: float = 20.0) -> None:
        self._program = program
        self._within_s = within_s
        self._given_up_s = given_up_s
        self._asking = threading.Lock()
        self._answered = threading.Event()
        self._answered.set()
        self._known: tuple[GpuLoad, ...] = ()
        self._fresh_until_s = self._known_until_s = 0.0

    def now(self) -> Sequence[GpuLoad]:
        """All GPUs; none if there is no driver of NVIDIA, or if it does not answer."""
        with self._asking:
            if self._answered.is_set() and time.monotonic() >= self._fresh_until_s:
                self._ask()
        if time.monotonic() >= self._known_until_s:  # otherwise those of a moment ago are given at once
            self._answered.wait(self._within_s)
        return self._known if time.monotonic() < self._known_until_s else ()

    def _ask(self) -> None:
        program = shutil.which(self._program)
        if program is None:
            self._note(())
            return
        self._answered.clear()
        try:
            threading.Thread(target=self._run, args=(program,), name="nvidia-smi", daemon=True).start()
        except RuntimeError:  # the machine gives no thread now: who asks next tries again
            self._answered.set()

    def _run(self, program: str) -> None:
        try:
            self._note(tuple(loads_of(self._output(program))))
        finally:
            self._answered.set()

    def _note(self, gpus: tuple[GpuLoad, ...]) -> None:
        now_s = time.monotonic()
        self._known, self._fresh_until_s, self._known_until_s = gpus, now_s + _FRESH_S, now_s + _OLD_S

    def _output(self, program: str) -> str:
        try:
            done = subprocess.run(  # noqa: S603 - as found on PATH
                (program, *LOADS), stdin=subprocess.DEVNULL, capture_output=True, timeout=self._given_up_s, check=True
            )
        except (OSError, subprocess.SubprocessError):
            return ""
        return done.stdout.decode(errors="replace")
