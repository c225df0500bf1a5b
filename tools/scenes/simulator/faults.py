"""The faults of a camera: their names, their arguments, and how they are written on a command line.

A fault of a client's packets can wait until that client has got so many packets or frames since its PLAY
(``after_packets``, ``after_frames``): it then meets each client at the same place, until it is healed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from pydantic import Field, ValidationError, model_validator

from camgraph.pipeline.errors import UserError
from camgraph.tools.scenes.simulator.settings import Frozen

FaultName = Literal[
    "refuse", "silence", "answer", "stall", "hold", "cut", "reboot", "half_open", "drop", "reorder", "corrupt",
    "resize", "codec", "jump", "wrap", "timestamps", "clock", "fps",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Kind:
    """The argument behind the colon of a fault, and the description of the fault."""

    argument: str
    fits: Callable[[str], bool]
    about: str
    counts: bool = False

    @property
    def expected(self) -> str:
        """The expected argument, in words."""
        bounds = f" from {self.fits.low:g} to {self.fits.high:g}" if isinstance(self.fits, _Number) else ""
        return f"{self.argument or 'no argument'}{bounds}"


@dataclass(frozen=True, slots=True)
class _Number:
    """Fits a number within bounds."""

    low: float
    high: float

    def __call__(self, value: str) -> bool:
        return bool(re.fullmatch(r"-?\d+(\.\d+)?", value)) and self.low <= float(value) <= self.high


def _one_of(*words: str) -> Callable[[str], bool]:
    return lambda value: value in words


def _size(value: str) -> bool:
    sides = re.fullmatch(r"(\d+)x(\d+)", value)
    return sides is not None and all(64 <= int(side) <= 4096 and int(side) % 2 == 0 for side in sides.groups())


_NOTHING = _one_of("")
_PERCENT = _Number(0, 100)
_STAMPS = _one_of("constant", "duplicate")
_YEAR_S = 366 * 86_400

KINDS: Mapping[FaultName, Kind] = {
    "refuse": Kind("", _NOTHING, "New connections are refused; those that are open go on."),
    "silence": Kind("", _NOTHING, "Connections are accepted, nothing is answered; packets of open ones go on."),
    "answer": Kind("401|404|503", _one_of("401", "404", "503"), "All requests but OPTIONS are answered with it."),
    "stall": Kind("", _NOTHING, "No more packets; the connection stays and is answered.", counts=True),
    "hold": Kind("SECONDS", _Number(0, 3600), "Over TCP everything is late by this time, from mid-packet on."),
    "cut": Kind("fin|rst", _one_of("fin", "rst"), "The connections end, in order or with a reset.", counts=True),
    "reboot": Kind("SECONDS", _Number(0, 3600), "Reset, refuse for this time, then be back as if just switched on."),
    "half_open": Kind("", _NOTHING, "Open connections are no longer read or written; new ones work.", counts=True),
    "drop": Kind("PERCENT", _PERCENT, "This share of UDP packets is lost.", counts=True),
    "reorder": Kind("PERCENT", _PERCENT, "This share of UDP packets arrives after later ones.", counts=True),
    "corrupt": Kind("PERCENT", _PERCENT, "In this share of packets, bytes change.", counts=True),
    "resize": Kind("WIDTHxHEIGHT", _size, "The resolution changes, without a new DESCRIBE.", counts=True),
    "codec": Kind("h264|h265", _one_of("h264", "h265"), "The codec changes, without a new DESCRIBE.", counts=True),
    "jump": Kind("SECONDS", _Number(-_YEAR_S, _YEAR_S), "Time stamps jump, forward or back.", counts=True),
    "wrap": Kind("SECONDS", _Number(0, 3600), "Time stamps of new clients pass 2**32 after this time."),
    "timestamps": Kind("constant|duplicate", _STAMPS, "Time stamps stand still, or come twice.", counts=True),
    "clock": Kind("SECONDS", _Number(-_YEAR_S, _YEAR_S), "Sender reports are wrong by this time."),
    "fps": Kind("FPS", _Number(0.01, 1000), "The SDP gives this rate, whatever is sent."),
}  # fmt: skip


class Fault(Frozen):
    """One fault. Raises ValidationError (a ValueError) for an argument that does not belong to it."""

    name: FaultName
    value: str = ""
    seed: int = 0
    after_packets: int = Field(default=0, ge=0)
    after_frames: int = Field(default=0, ge=0)

    @model_validator(mode="after")
    def _belongs_together(self) -> Fault:
        kind = KINDS[self.name]
        if not kind.fits(self.value):
            raise ValueError(f"{self.name}: expected {kind.expected}, got `{self.value}`")
        if self.waits and not kind.counts:
            raise ValueError(f"{self.name}: it cannot wait for packets or frames")
        return self

    @property
    def waits(self) -> bool:
        """Whether it waits for a client's packets or frames instead of coming at once."""
        return self.after_packets > 0 or self.after_frames > 0

    @property
    def number(self) -> float:
        """The argument of faults that take a number."""
        return float(self.value)

    def packets_left(self, packets: int, frames: int) -> float:
        """How many more packets a client gets, from the packets and frames that it has got."""
        if self.after_packets:
            return max(0, self.after_packets - packets)
        return float("inf") if frames < self.after_frames else 0


class ScheduledFault(Frozen):
    """A fault ``at_s`` seconds after the start, healed ``for_s`` later; of all cameras if none is named."""

    fault: Fault
    camera: str | None = None
    at_s: float = Field(ge=0)
    for_s: float | None = Field(default=None, gt=0)


_WRITTEN = re.compile(
    r"(?:(?P<camera>[\w.-]+)=)?(?P<name>\w+)(?::(?P<value>[^@]+))?@(?P<at>\d+(?:\.\d+)?)(?:\+(?P<span>\d+(?:\.\d+)?))?"
)


def parse_fault(text: str) -> ScheduledFault:
    """`[CAMERA=]NAME[:ARG]@SECONDS[+DURATION]` as a value. Raises UserError if it is none."""
    match = _WRITTEN.fullmatch(text)
    if match is None:
        raise UserError(
            f"--fault {text}: expected [CAMERA=]NAME[:ARG]@SECONDS[+DURATION], such as drop:5@10+20",
            error_id="option-value",
        )
    if match["name"] not in KINDS:
        raise UserError(
            f"--fault {text}: there is no fault `{match['name']}`; there are {', '.join(KINDS)}",
            error_id="name-unknown",
        )
    try:
        fault = Fault.model_validate({"name": match["name"], "value": match["value"] or ""})
        span = float(match["span"]) if match["span"] else None
        return ScheduledFault(fault=fault, camera=match["camera"], at_s=float(match["at"]), for_s=span)
    except ValidationError as error:
        raise UserError(
            f"--fault {text}: {error.errors()[0]['msg'].removeprefix('Value error, ')}", error_id="option-value"
        ) from None
