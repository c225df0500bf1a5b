"""The faults: what is done to a camera, what the run must report, how it is healed, and which drops are allowed.

| returns | the camera is there again |
|---|---|
| healed | when the fault is healed |
| struck | at once, or ``down_s`` after the fault |
| told | at a time that nobody can know: the time counts from the last state that was reported |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from camgraph.pipeline.stage import CameraState
from camgraph.tools.lab.proofs.live_faults.cameras import FPS, Kind, Patient
from camgraph.tools.scenes.simulator import Fault
from camgraph.tools.scenes.simulator.faults import FaultName

Facts = Mapping[str, str | float]
DAMAGE = frozenset({"damaged"})
DETECTED_S = 10.0
BACK_S = 5.0
_LONG_S = 3.0


def _anything(_: Facts) -> bool:
    return True


def _nothing(_: Patient) -> None:
    """Do nothing: the fault was there before the run."""


@dataclass(frozen=True)
class Case:
    """One fault.

    ``states`` must be reported in this order. If there are none, the camera must stay live, unless ``may_be_lost``.
    ``holds_s``: how long the fault lasts after they were reported. ``at_start``: the fault was there before the run.
    ``shows``: holds once status shows the effect; only then is the camera healed. ``counts``: the reasons for which
    frames of this camera may be dropped. ``then``: a fault that follows at once on the same camera.
    """

    name: str
    strike: Callable[[Patient], None]
    heal: Callable[[Patient], None] = _nothing
    states: tuple[CameraState, ...] = ()
    may_be_lost: bool = False
    kinds: frozenset[Kind] = frozenset({"tcp", "udp", "absent"})
    at_start: bool = False
    holds_s: float = 0.0
    settles_s: float = 1.0
    returns: Literal["healed", "struck", "told"] = "healed"
    down_s: float = 0.0
    back_within_s: float = BACK_S
    shows: Callable[[Facts], bool] = _anything
    counts: frozenset[str] = frozenset()
    then: Case | None = None


UDP: frozenset[Kind] = frozenset({"udp"})
SERVER: frozenset[Kind] = frozenset({"server"})
ABSENT: frozenset[Kind] = frozenset({"absent"})


def _heal(*names: FaultName) -> Callable[[Patient], None]:
    return lambda patient: patient.simulator.heal(*names)


def _do(
    name: FaultName, value: str = "", *, then_cut: bool = False, after_packets: int = 0
) -> Callable[[Patient], None]:
    fault = Fault(name=name, value=value, after_packets=after_packets)

    def strike(patient: Patient) -> None:
        patient.simulator.apply(fault)
        if then_cut:
            patient.simulator.cut("rst")

    return strike


def _away(name: FaultName, value: str, *states: CameraState, back_within_s: float = BACK_S) -> Case:
    """New connections are refused, and open ones are cut off."""
    text = f"{name}:{value}" if value else name
    return Case(
        text, _do(name, value, then_cut=True), _heal(name), ("lost", *states), back_within_s=back_within_s, holds_s=1
    )


def _odd(name: FaultName, value: str, **more: bool | frozenset[str]) -> Case:
    """The packets come, but something is wrong with them."""
    kinds = UDP if name in ("drop", "reorder") else Case.kinds
    counts = DAMAGE if name in ("drop", "reorder", "corrupt") else frozenset[str]()
    may_be_lost = bool(more.get("may_be_lost", False))
    return Case(
        f"{name}:{value}", _do(name, value), _heal(name), kinds=kinds, counts=counts, holds_s=_LONG_S,
        may_be_lost=may_be_lost,
    )  # fmt: skip


def _shows(name: str, value: str | float) -> Callable[[Facts], bool]:
    return lambda facts: facts.get(name) == value


def _measures_in_spite_of(declared_fps: float) -> Callable[[Facts], bool]:
    return lambda facts: facts.get("fps_declared") == declared_fps and abs(float(facts.get("fps", 0)) - FPS) < FPS / 5


_CODEC_BACK = Case(
    "codec:h264, as before", _heal("codec"), _heal("codec"), ("lost",), returns="told", shows=_shows("codec", "h264"),
    counts=DAMAGE,
)  # fmt: skip

CASES: tuple[Case, ...] = (
    Case("absent at the start", _nothing, _heal("refuse"), ("lost",), kinds=ABSENT, at_start=True, holds_s=_LONG_S),
    Case("half_open", _do("half_open"), states=("stalled", "lost"), returns="told"),
    Case("stall, for long", _do("stall"), _heal("stall"), ("stalled", "lost"), holds_s=1,
         counts=DAMAGE),
    # A client that plays has got as many packets before: it stops at once, and would after each reopening.
    Case("stall, after 20 packets", _do("stall", after_packets=20), _heal("stall"), ("stalled",), counts=DAMAGE),
    Case("codec:h265", _do("codec", "h265"), states=("lost",), returns="told", shows=_shows("codec", "h265"),
         counts=DAMAGE, then=_CODEC_BACK),
    # Cameras lock accounts, and paths have to be corrected: these two wait longer (docs/cameras.md).
    _away("answer", "401", "unauthorised", back_within_s=BACK_S + 5),
    _away("answer", "404", "gone", back_within_s=BACK_S + 4),
    _away("answer", "503"),
    _away("silence", ""),
    _away("refuse", ""),
    Case("reboot:2", _do("reboot", "2"), states=("lost",), returns="struck", down_s=2),
    Case("cut:fin", _do("cut", "fin"), states=("lost",), returns="struck"),
    Case("cut:rst", _do("cut", "rst"), states=("lost",), returns="struck"),
    Case("fps:25, while 10 are sent", _do("fps", "25", then_cut=True), _heal("fps"), ("lost",), returns="struck",
         shows=_measures_in_spite_of(25)),
    Case("wrap:2", _do("wrap", "2", then_cut=True), _heal("wrap"), ("lost",), returns="struck", settles_s=_LONG_S),
    *(_odd("drop", percent) for percent in ("1", "5")),
    _odd("drop", "20", may_be_lost=True),
    *(_odd("reorder", percent) for percent in ("1", "5")),
    _odd("reorder", "20", may_be_lost=True),
    _odd("corrupt", "5", may_be_lost=True),
    Case("resize:640x360", _do("resize", "640x360"), _heal("resize"), holds_s=1, shows=_shows("size", "640x360")),
    _odd("jump", "3600"),
    _odd("jump", "-3600"),
    _odd("timestamps", "constant"),
    _odd("timestamps", "duplicate"),
    _odd("clock", "3600"),
    Case("the server ends", Patient.end, Patient.begin, ("lost",), kinds=SERVER, holds_s=1),
    Case("the server freezes", Patient.freeze, Patient.thaw, ("stalled",), kinds=SERVER, counts=DAMAGE),
)  # fmt: skip
