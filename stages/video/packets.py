"""The compressed packets of a camera, as they travel from `capture` to those who keep them.

    ["s", codec, sample, width, height, [num, den], epoch, live, [turns, mirrored], paced]    a stream
    ["p", pts, dts, duration, key, data]                                                      a packet
    ["x", why]                                  no packets of the present stream come, and why, for people
    ["e"]                                                                                     the end

These are the messages of a side channel, which `capture` serves: both sides run the same version as the same user.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

from camgraph.pipeline.errors import WireError
from camgraph.pipeline.system.names import ascii_form
from camgraph.stages.vision.orientation import UPRIGHT, Orientation

SUFFIX = ".packets"
"""Of the sockets on which packets are served."""


@dataclass(frozen=True, slots=True)
class VideoStreamInfo:
    """How the packets of one connection (or file) are to be decoded; `time_base` is a pts in seconds.

    `sample` is a file with a keyframe in it: only of an opened file does PyAV make a decoder, or a stream of another
    file. `codec` is FFmpeg's name of the codec, whichever decoder decodes it.
    """

    codec: str
    sample: bytes
    width: int
    height: int
    time_base: Fraction
    epoch: int
    is_live: bool
    """Its packets come as they are filmed; those of a file come long before the events about them."""
    orientation: Orientation = UPRIGHT
    """It sets its pictures upright. `sample` does not know of it."""
    is_paced: bool = True
    """Its packets come as fast as they were filmed; those of a file may come as fast as they can be read."""

    @property
    def upright_size(self) -> tuple[int, int]:
        """(width, height) of its pictures once they are upright."""
        return self.orientation.upright_size(self.width, self.height)


@dataclass(frozen=True, slots=True)
class Packet:
    """One compressed picture. `pts` and `dts` count in the time base of its stream."""

    stream: VideoStreamInfo
    pts: int
    dts: int
    duration: int
    is_key: bool
    data: bytes


def shown_frame(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """The name of the frame that shows the people of an event; empty if the event names none."""
    return data.get("last_seen") or data.get("frame") or {}


class Moment(NamedTuple):
    """A picture of a stream, by its time in seconds of the stream."""

    epoch: int
    at: Fraction

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Moment | None:
        """Of the frame that the `data` of an event name; None if the camera gives its pictures no times."""
        return cls._of_frame(data["frame"])

    @classmethod
    def shown(cls, data: Mapping[str, Any]) -> Moment | None:
        """Of the frame that shows the people of an event: who is lost is no longer seen in that of the event."""
        return cls._of_frame(shown_frame(data))

    @classmethod
    def _of_frame(cls, frame: Mapping[str, Any]) -> Moment | None:
        if frame.get("pts") is None:
            return None
        return cls(int(frame["epoch"]), Fraction(*frame["time_base"]) * int(frame["pts"]))

    def pts(self, time_base: Fraction, *, earlier_s: float = 0.0) -> int:
        """In units of `time_base`."""
        return round((self.at - Fraction(earlier_s).limit_denominator(1000)) / time_base)


def socket_path(state_folder: Path, camera: str) -> Path:
    """Where the packets of a camera are served; `state_folder` is that of the stage that reads it."""
    return state_folder / f"{ascii_form(camera)}{SUFFIX}"


def wanted_mark(stages_folder: Path) -> Path:
    """A file that is there while somebody keeps packets: sources that can wait do so until they are listened to.

    `stages_folder` has the state folders of all stages.
    """
    return stages_folder / "packets-wanted"


def stream_message(stream: VideoStreamInfo) -> list[Any]:
    """The beginning of a stream."""
    base = [stream.time_base.numerator, stream.time_base.denominator]
    size = stream.width, stream.height
    facts = stream.epoch, stream.is_live, list(stream.orientation), stream.is_paced
    return ["s", stream.codec, stream.sample, *size, base, *facts]


def packet_message(packet: Packet) -> list[Any]:
    """One packet."""
    return ["p", packet.pts, packet.dts, packet.duration, packet.is_key, packet.data]


def refusal_message(why: str) -> list[Any]:
    """That no packets of the present stream come."""
    return ["x", why]


def end_message() -> list[Any]:
    """That nothing more comes."""
    return ["e"]


class PacketReader:
    """Makes packets of the messages of one connection."""

    def __init__(self) -> None:
        self._stream: VideoStreamInfo | None = None
        self.refusal = ""
        """Why no packets of the present stream come, for people; "" if they come."""
        self.ended = False
        """The camera has said that nothing more comes."""

    def packets(self, messages: Iterable[Any]) -> Iterator[Packet]:
        """The packets in these messages. Raises WireError, ValueError or TypeError for anything else."""
        for message in messages:
            match message:
                case ["p", pts, dts, duration, is_key, packet] if self._stream is not None:
                    yield Packet(self._stream, pts, dts, duration, is_key, packet)
                case ["s", codec, sample, width, height, [num, den], epoch, live, [turns, mirrored], paced]:
                    base, upright = Fraction(num, den), Orientation(turns, mirrored)
                    self._stream = VideoStreamInfo(codec, sample, width, height, base, epoch, live, upright, paced)
                    self.refusal = ""
                case ["x", str(why)]:
                    self.refusal = why
                case ["e"]:
                    self.ended = True
                case _:
                    raise WireError("expected a packet of a camera")
