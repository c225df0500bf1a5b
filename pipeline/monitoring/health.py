"""The health of a run, in one word and a reason: for monitors, and for people who look. Pure.

healthy    a frame of every wanted camera went through lately, and there is no trouble
degraded   a camera or a stage does not work, or the run is starting or stopping
down       no frame of any wanted camera goes through, and none of them is only starting or connecting
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

Level = Literal["healthy", "degraded", "down"]
Phase = Literal["starting", "running", "stopping", "over"]

_UNWANTED = ("paused", "queued", "done", "stopped")
_PASSING = ("starting", "connecting")
"""These states end by themselves, with frames or with a state that gives the reason."""
_MOST_SHOWN = 3
_LONGEST = 300
"""So many characters the reasons have together: a long one is shortened, so that all names stay to be read."""
_LEAST_OF_EACH = 60
_WORTH_REPORTING = 0.02


@dataclass(frozen=True, slots=True)
class CameraCondition:
    """One camera. `state`, `why` and `since_s` as status shows them.

    `stuck_s`: how long no frame has gone through, None while frames do.
    """

    state: str
    why: str = ""
    since_s: float | None = None
    stuck_s: float | None = None

    @property
    def is_wanted(self) -> bool:
        """False if it need not bring frames."""
        return self.state not in _UNWANTED

    @property
    def works(self) -> bool:
        """True while its frames go through."""
        return self.stuck_s is None and self.state in ("live", "running", "waiting")


@dataclass(frozen=True, slots=True)
class Plight:
    """Why a process processes nothing; `opening`: it opens for the first time or with new settings, which is normal."""

    why: str
    since_s: float
    opening: bool = False


@dataclass(frozen=True, slots=True)
class Trouble:
    """A trouble of a stage or process, and its duration."""

    where: str
    why: str
    since_s: float

    def __str__(self) -> str:
        return f"{self.where}: {self.why} (for {duration(self.since_s)})"


class Flow(NamedTuple):
    """The rate of frames of all cameras, and the share of them that is dropped, 0 to 1."""

    rate: float
    dropped: float = 0.0


@dataclass(frozen=True, slots=True)
class Health:
    """`level`: a `Level`, or "" if nobody knows; a newer camgraph may have further words. `reason`: on one line."""

    level: str = ""
    reason: str = ""


def health_of(
    phase: Phase, phase_s: float, cameras: Mapping[str, CameraCondition], troubles: Sequence[Trouble], flow: Flow
) -> Health:
    """`phase_s`: the time since the run entered this phase."""
    if phase in ("starting", "stopping"):
        message = "; ".join(
            [f"{phase} for {duration(phase_s)}", *_troubles_in_words(troubles, min(_MOST_SHOWN, len(troubles)))]
        )
        return Health("degraded", message)
    wanted = {name: camera for name, camera in cameras.items() if camera.is_wanted}
    broken = {name: camera for name, camera in wanted.items() if not camera.works}
    shown = min(_MOST_SHOWN, len(broken)) + min(_MOST_SHOWN, len(troubles))
    message = "; ".join([*_cameras_in_words(broken, len(wanted), shown), *_troubles_in_words(troubles, shown)])
    if wanted and len(broken) == len(wanted) and not any(camera.state in _PASSING for camera in broken.values()):
        return Health("down", message)
    if broken or troubles:
        return Health("degraded", message)
    return Health("healthy", _fine(cameras, wanted, flow))


def _fine(cameras: Mapping[str, CameraCondition], wanted: Mapping[str, CameraCondition], flow: Flow) -> str:
    if wanted:
        dropped = f", {flow.dropped:.0%} of them dropped" if flow.dropped >= _WORTH_REPORTING else ""
        return f"{_counted(len(wanted), 'camera')}, {flow.rate:.1f} frames/s{dropped}"
    paused = any(camera.state == "paused" for camera in cameras.values())
    return "no camera is wanted: all are paused or have ended" if paused else "all cameras have ended"


def _troubles_in_words(troubles: Sequence[Trouble], shown: int) -> Iterator[str]:
    for trouble in troubles[:_MOST_SHOWN]:
        yield str(replace(trouble, why=_short(trouble.why, shown)))


def _cameras_in_words(broken: Mapping[str, CameraCondition], wanted: int, shown: int) -> Iterator[str]:
    if not broken:
        return
    message = ", ".join(
        f"{name} {_in_words(replace(camera, why=_short(camera.why, shown)))}"
        for name, camera in list(broken.items())[:_MOST_SHOWN]
    )
    more = f" and {len(broken) - _MOST_SHOWN} more" if len(broken) > _MOST_SHOWN else ""
    yield f"{len(broken)} of {_counted(wanted, 'camera')} without frames: {message}{more}"


def _in_words(camera: CameraCondition) -> str:
    """Describe a camera that is away, or whose frames do not go through."""
    known = f" ({camera.why})" if camera.why else ""
    if camera.state in ("live", "running", "waiting") and camera.stuck_s is not None:
        return f"{camera.state}, but no frame has gone through for {duration(camera.stuck_s)}{known}"
    since = f" for {duration(camera.since_s)}" if camera.since_s is not None else ""
    return f"{camera.state}{since}{known}"


def _short(why: str, shown: int) -> str:
    """The reason, or its beginning up to the end of a word, if so many are shown beside each other."""
    most = max(_LEAST_OF_EACH, _LONGEST // max(1, shown))
    if len(why) <= most:
        return why
    beginning = why[:most]
    return f"{beginning[: beginning.rfind(' ')] if ' ' in beginning else beginning}…"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def duration(seconds: float) -> str:
    """`12 s`, `3 min`, `2 h`, `4 days`: precise enough for people."""
    for limit, unit, name in ((120, 1, "s"), (7200, 60, "min"), (172_800, 3600, "h")):
        if seconds < limit:
            return f"{int(seconds // unit)} {name}"
    return f"{int(seconds // 86_400)} days"
