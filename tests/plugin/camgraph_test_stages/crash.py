"""Goes wrong on demand."""

from __future__ import annotations

import ctypes
import os
import signal
import struct
import sys
import time
from collections.abc import Iterable, Sequence
from typing import Literal

from pydantic import Field

from camgraph_test_stages.messages import Number
from pipeline.errors import BadItem, UserError
from pipeline.gatherer import Gatherer
from pipeline.messages import Message
from pipeline.paths import resolve
from pipeline.stage import Settings, Stage

How = Literal[
    "raise", "bad_item", "user_error", "interrupt", "system_exit", "exit", "kill", "segfault", "hang", "close",
    "close_segfault", "close_slowly", "open", "babble", "misreport", "shout", "stall",
]  # fmt: skip
_SAYS = {
    "babble": struct.pack("<I", 3) + b"\xc1\xc1\xc1",
    "misreport": struct.pack("<I", 18) + b"\x82\xa2op\xa4beat\xa7custody\xc0",
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
    shut: str = Field("", description="While there is a file of this name, it does not open: the user's mistake.")
    marker: str = Field("", description="A file that is made when it happens, after which it does not; empty: always.")


class Crash(Stage[CrashSettings]):
    """Passes numbers on until it goes wrong."""

    settings_type = CrashSettings
    inputs = Number
    outputs = (Number,)

    def process(self, items: Sequence[Number]) -> Iterable[Message]:
        for item in items:
            item.verify()
            if self._is_time(item):
                _go_wrong(self.settings.how)
            yield item.with_value(item.value)

    def open(self) -> None:
        time.sleep(self.settings.open_s)
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


def _go_wrong(how: How) -> None:
    if how == "stall":  # the loop goes on and takes nothing any more
        Gatherer.next = lambda _: None  # type: ignore[method-assign]
    if how in _SAYS:
        os.write(int(sys.argv[sys.argv.index("--control") + 1]), _SAYS[how])
        time.sleep(30)
    if how == "raise":
        raise RuntimeError("told to raise")
    if how == "bad_item":
        raise BadItem("told", "told to refuse this item")
    if how == "user_error":
        raise UserError("told to be the user's mistake")
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
