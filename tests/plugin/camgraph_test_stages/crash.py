"""Goes wrong on demand."""

from __future__ import annotations

import ctypes
import json
import logging
import os
import resource
import signal
import struct
import sys
import threading
import time
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field

from camgraph.pipeline.errors import BadItem, UserError
from camgraph.pipeline.messages import Message
from camgraph.pipeline.stage import Context, Counts, Settings, Stage
from camgraph.pipeline.system.paths import resolve
from camgraph.pipeline.worker.batcher import Batcher
from camgraph_test_stages.messages import Number

How = Literal[
    "raise", "bad_item", "user_error", "interrupt", "system_exit", "exit", "kill", "segfault", "hang", "close",
    "close_segfault", "close_slowly", "open", "babble", "misreport", "shout", "stall", "speak", "flood", "confess",
    "make",
]  # fmt: skip
_PR_GET_DUMPABLE = 3
_SAYS = {
    "babble": struct.pack("<I", 3) + b"\xc1\xc1\xc1",
    "misreport": struct.pack("<I", 25) + b"\x82\xa2op\xa9heartbeat\xa9in_flight\xc0",
    "shout": struct.pack("<I", 5 << 20),
}
"""To the supervisor, in the place of reports: no msgpack, a report of wrong types, and a length beyond all bounds."""


class CrashSettings(Settings):
    """When and how to go wrong."""

    at_seq: int = Field(5, ge=0, description="The frame at which it happens.")
    camera: str = Field("", description="Only at this camera's frame; empty: at any camera's.")
    how: How = Field("raise", description="What happens.")
    close_s: float = Field(6.0, ge=0, description="How long it takes to close slowly.")
    open_s: float = Field(0.0, ge=0, description="How long it takes to open.")
    opens_with: str = Field("", description="It opens only when there is a file of this name.")
    opens_within_s: float = Field(0.0, ge=0, description="How long it says that opening may take; 0: it says nothing.")
    shut: str = Field("", description="While there is a file of this name, it does not open: the user's mistake.")
    note: str = Field("", description="Said in all ways, where it speaks.")
    reads: list[str] = Field(default=[], description="The variables of the environment that it reads.")
    marker: str = Field("", description="A file that is made when it happens, after which it does not; empty: always.")


class Crash(Stage[CrashSettings]):
    """Passes numbers on until it goes wrong."""

    settings_type = CrashSettings
    inputs = Number
    outputs = (Number,)
    counts: ClassVar[Counts] = {"dropped.told": "The settings said to refuse this number."}

    def __init__(self, settings: CrashSettings, context: Context) -> None:
        super().__init__(settings, context)
        if settings.how == "make":
            raise RuntimeError("told not to be made")

    def process(self, items: Sequence[Number]) -> Iterable[Message]:
        for item in items:
            item.verify()
            if self._is_time(item):
                self._go_wrong()
            yield item.with_value(item.value)

    def _go_wrong(self) -> None:
        if self.settings.how == "confess":
            _confess(resolve("confession", self.context.base_folder))
        if self.settings.how == "speak":
            _speak(self.settings.note)
            self.context.log.warning("spoken", note=self.settings.note)
        if self.settings.how == "speak" and self.settings.note:
            raise ValueError(self.settings.note)
        _go_wrong(self.settings.how)

    @classmethod
    def environment(cls, settings: CrashSettings) -> Iterable[str]:
        return settings.reads

    def open(self) -> None:
        if self.settings.opens_within_s:
            self.context.opening("building it, 1 of 2", self.settings.opens_within_s)
        time.sleep(self.settings.open_s)
        while self.settings.opens_with and not resolve(self.settings.opens_with, self.context.base_folder).exists():
            time.sleep(0.02)
        if self.settings.shut and resolve(self.settings.shut, self.context.base_folder).exists():
            raise UserError(f"the file {self.settings.shut} is there")
        if self.settings.how == "open":
            raise RuntimeError("told not to open")

    def close(self) -> None:
        if self.settings.how == "close":
            raise RuntimeError("told not to close")
        if self.settings.how == "close_segfault":
            ctypes.string_at(0)
        if self.settings.how == "close_slowly":
            time.sleep(self.settings.close_s)
            resolve(self.settings.marker, self.context.base_folder).touch()

    def _is_time(self, item: Number) -> bool:
        if item.stamp.seq != self.settings.at_seq or self.settings.camera not in ("", item.stamp.camera):
            return False
        if not self.settings.marker:
            return True
        try:
            resolve(self.settings.marker, self.context.base_folder).touch(exist_ok=False)
        except FileExistsError:
            return False
        return True


PLANTED = "\x1b]0;planted\x07\x1b[31m\x9b2J\u202e\u2028 rtsp://viewer:geheim@10.0.0.1/x"
"""What no terminal is to obey, and a password."""


def _confess(file: Path) -> None:
    """What others could find out about this process."""
    given = {
        "environ": dict(os.environ),
        "at_start": Path("/proc/self/environ").read_bytes().decode().split("\0"),
        "dumpable": ctypes.CDLL(None).prctl(_PR_GET_DUMPABLE, 0, 0, 0, 0),
        "core": resource.getrlimit(resource.RLIMIT_CORE),
    }
    file.write_text(json.dumps(given))


def _speak(note: str) -> None:
    """Say it in all ways that lead round the log: as a library does, as Python does, and in a thread that fails."""
    os.write(2, f"a note: {note}\n".encode())
    os.write(2, f"a library: {PLANTED}\nhalf a line: {PLANTED}".encode())
    os.write(2, b"\nno text: \xff\xfe\n")
    sys.stderr.write(f"Python: {PLANTED}\n")
    warnings.warn(f"a warning: {PLANTED}", stacklevel=1)
    logging.getLogger("planted").warning("logging: %s", PLANTED)
    failing = threading.Thread(target=lambda: int(PLANTED))
    failing.start()
    failing.join()


def _go_wrong(how: How) -> None:
    if how == "flood":
        for _ in range(1000):
            os.write(2, b"word " * 999 + b"\n")
    if how == "stall":  # the loop goes on and takes nothing any more
        Batcher.next = lambda _: None  # type: ignore[method-assign]
    if how in _SAYS:
        os.write(int(sys.argv[sys.argv.index("--control") + 1]), _SAYS[how])
        time.sleep(30)
    if how == "raise":
        raise RuntimeError("told to raise")
    if how == "bad_item":
        raise BadItem("told", "told to refuse this item")
    if how == "user_error":
        raise UserError("told to be the user's mistake", error_id="option-value")
    if how == "interrupt":
        raise KeyboardInterrupt
    if how == "system_exit":
        raise SystemExit(3)
    if how == "exit":
        os._exit(7)
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "segfault":
        ctypes.string_at(0)
    while how == "hang":
        time.sleep(0.1)
