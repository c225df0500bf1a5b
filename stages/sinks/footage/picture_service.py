"""Gives programs a picture of a camera: the newest one, or that of a moment, as long as its packets are kept.

    request   {"camera": "front"}                                                            the newest
              {"camera": "front", "epoch": 0, "pts": 900, "time_base": [1, 90000]}
    answer    {"epoch": 0, "pts": 900, "time_base": [1, 90000], "width": 1280, "height": 720, "jpeg": bytes}
              {"gone": "why"}, or {"error": "why"}; if no picture may leave, also "id": "pictures-hidden"

Nothing is decoded before somebody asks: the newest picture is made of one keyframe, and another one of the packets from
its keyframe on. Clients ask over a side channel. A picture that is not there `WITHIN_S` after the client came is
"gone".
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from camgraph.pipeline.errors import EnvironmentProblem, UserError, WireError
from camgraph.pipeline.foreign_text import shown
from camgraph.pipeline.stage import Logger
from camgraph.pipeline.system.names import ascii_form, nfc
from camgraph.pipeline.system.side_channel import Client, SideChannel
from camgraph.pipeline.system.side_link import ask
from camgraph.stages.sinks.footage.still import decode_last, jpeg
from camgraph.stages.video.packets import Moment, Packet

NAME = "pictures"
"""Of the socket, in the state folder of its stage."""
WITHIN_S = 3.0
_FIND_S = 1.0
"""How long `FindPackets` takes at most."""
_SEND_S = 0.5
"""Of `WITHIN_S`: what is left for the answer to be sent."""
_MOST_MADE = 16
"""Pictures of moments that are kept for others who ask for the same ones."""
_MOST_NEWEST_BYTES = 64 << 20
"""Of the newest pictures, one of each camera, which many ask for: those of some hundred cameras."""
_MOST_REQUEST = 10_000
_HIDDEN = "pictures-hidden"


_Made = tuple[dict[str, Any], bytes]
"""The facts of a picture, and its JPEG."""
FindPackets = Callable[[str, Moment | None], Sequence[Packet]]
"""The packets that decode to the picture of this moment (the last of them), or to the newest; none if they are gone.

The camera is named in ASCII. May be called from any thread, and takes `_FIND_S` at most.
"""


_Key = tuple[str, int, int]
"""A camera in ASCII, an epoch and a pts."""


class MadePictures:
    """Pictures for the next who ask: the newest of each camera, and those of the last moments that were asked for."""

    def __init__(self) -> None:
        self._newest: dict[str, tuple[_Key, _Made]] = {}
        self._newest_bytes = 0
        self._others: dict[_Key, _Made] = {}

    def get(self, key: _Key) -> _Made | None:
        known = self._newest.get(key[0])
        return known[1] if known is not None and known[0] == key else self._others.get(key)

    def keep(self, key: _Key, made: _Made, *, is_newest: bool) -> None:
        """`is_newest`: of its camera, when it was asked for."""
        if not is_newest:
            self._others.pop(key, None)
            self._others[key] = made  # the newest last
            if len(self._others) > _MOST_MADE:
                del self._others[next(iter(self._others))]
            return
        self._drop(key[0])
        self._newest[key[0]] = (key, made)
        self._newest_bytes += len(made[1])
        while self._newest_bytes > _MOST_NEWEST_BYTES and len(self._newest) > 1:
            self._drop(next(iter(self._newest)))

    def _drop(self, camera: str) -> None:
        _, made = self._newest.pop(camera, (None, ({}, b"")))
        self._newest_bytes -= len(made[1])


class PictureService:
    """See the module. `find` gets packets; `refused`: why no picture may leave, for people, or ""."""

    def __init__(self, path: Path, find: FindPackets, log: Logger, *, refused: str = "") -> None:
        self._find, self._refused = find, refused
        self._made = MadePictures()
        self._channel = SideChannel(
            path, self._answer, log, name="pictures", within_s=WITHIN_S, most_request=_MOST_REQUEST
        )
        self.open, self.close = self._channel.serve, self._channel.close

    def _answer(self, client: Client) -> dict[str, Any]:
        """Raises WireError for a request that nobody can read."""
        camera, moment = _wanted(client.message)
        if self._refused:
            return {"error": self._refused, "id": _HIDDEN}
        until_s = client.since_s + WITHIN_S - _SEND_S
        if time.monotonic() > until_s - _FIND_S:
            return {"gone": "too many ask for pictures: try again"}
        packets = self._find(ascii_form(camera), moment)
        if not packets:
            return {"gone": f"no packets of {shown(camera)} are kept{' of that moment' if moment else ''}"}
        key = (ascii_form(camera), packets[-1].stream.epoch, packets[-1].pts)
        made = self._made.get(key) or _picture_of(packets, until_s)
        if made is None:
            return {"gone": "it cannot be decoded, or not in time"}
        self._made.keep(key, made, is_newest=moment is None)
        return {**made[0], "jpeg": made[1]}


def _picture_of(packets: Sequence[Packet], until_s: float) -> _Made | None:
    """The picture of the last of these packets; None if it cannot be decoded until then."""
    picture = decode_last(packets, until_s=until_s)
    if picture is None:
        return None
    data, last = jpeg(picture), packets[-1]
    base = last.stream.time_base
    head = {
        "epoch": last.stream.epoch,
        "pts": last.pts,
        "time_base": [base.numerator, base.denominator],
        "width": picture.shape[1],
        "height": picture.shape[0],
    }
    return head, data


def _wanted(request: Any) -> tuple[str, Moment | None]:
    match request:
        case {"camera": str(camera), "epoch": int(epoch), "pts": int(pts), "time_base": [int(num), int(den)]} if den:
            return nfc(camera), Moment(epoch, Fraction(num, den) * pts)
        case {"camera": str(camera)}:
            return nfc(camera), None
    raise WireError('expected {"camera": NAME}, or also "epoch", "pts" and "time_base"')


# ---- who asks


@dataclass(frozen=True, slots=True)
class ServedPicture:
    """A JPEG, and the facts about the picture as the answer has them."""

    jpeg: bytes
    facts: Mapping[str, Any]


def ask_picture(path: Path, camera: str, moment: Moment | None = None) -> ServedPicture:
    """Ask the service at this socket.

    Raises UserError if there is no such picture, EnvironmentProblem if no answer comes.
    """
    request: dict[str, Any] = {"camera": camera}
    if moment is not None:
        request |= {"epoch": moment.epoch, "pts": moment.at.numerator, "time_base": [1, moment.at.denominator]}
    try:
        facts = dict(ask(path, request, within_s=2 * WITHIN_S))
    except (OSError, WireError, TypeError, ValueError) as error:
        raise EnvironmentProblem(
            f"no picture came from {path}: {error or type(error).__name__}: try again", error_id="no-picture"
        ) from None
    if facts.get("id") == _HIDDEN:
        raise UserError(str(facts.get("error")), error_id="pictures-hidden")
    if why := facts.get("gone") or facts.get("error"):
        raise UserError(str(why), error_id="no-picture")
    return ServedPicture(facts.pop("jpeg", b""), facts)
