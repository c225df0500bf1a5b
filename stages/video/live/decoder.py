"""Packets of one connection into the pictures that are wanted of it, and may be believed.

    packet -> AccessUnit, FfmpegLog -> Trust      is anything missing or damaged?
           -> Skipping                             need it be decoded at all?
           -> FFmpeg                               its picture, now or some packets later
           -> Trust                                dropped.damaged
           -> Pace, Selection                      skipped.rate
           -> LivePicture

Packets are numbered, and FFmpeg hands each number on to its picture (`opaque`), in any order of display.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple

import av
from av.packet import Packet
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from camgraph.pipeline.errors import EnvironmentProblem
from camgraph.stages.video.camera import Camera
from camgraph.stages.video.ffmpeg_log import FfmpegLog
from camgraph.stages.video.formats import DECODER_OPTIONS
from camgraph.stages.video.live import access_units, hardware
from camgraph.stages.video.live.arrivals import Arrival, reported_ns
from camgraph.stages.video.live.camera_reporter import CameraReporter
from camgraph.stages.video.live.clocks import Clock, Pace, Rate, Reading, WallClock
from camgraph.stages.video.live.skipping import Level, Skipping
from camgraph.stages.video.timeline import Selection

MOST_HELD = 64
"""No picture comes out this many packets after its own: decoders keep back at most 16 decoded ones."""


class Ticket(NamedTuple):
    """The data that a packet hands on to its picture. A new one for each: PyAV (18.1) keeps them by their address in
    memory.
    """

    number: int


class LivePicture(NamedTuple):
    """A decoded picture. `arrived_ns` is CLOCK_MONOTONIC and never runs backwards; `clock` says whose `wall_ns` is.

    `number` is that of its packet, in the order of decoding, from 0 for the first of the connection.
    """

    frame: VideoFrame
    arrived_ns: int
    wall_ns: int
    clock: Clock
    pts: int | None
    time_base: Fraction
    number: int


class Decoder:
    """Decodes one connection, which it never outlives; used by the thread that reads it alone.

    It begins with the first keyframe: packets before it refer to pictures that never came.

    Raises EnvironmentProblem if `decode: cuda` is asked for and cannot be.
    """

    def __init__(self, stream: VideoStream, camera: Camera, reporter: CameraReporter, log: FfmpegLog) -> None:
        self._reporter = reporter
        self._log = log
        self._decode = camera.decode
        self._turns = reporter.turns
        with nullcontext() if camera.decode == "cpu" else self._turns.one():
            self._context, fallback = hardware.context_for(stream, camera.decode, camera.decode_device)
        # One thread for each camera: more cost memory and bring nothing if cameras outnumber cores.
        self._context.thread_type = "NONE"
        self._context.copy_opaque = True
        self._context.options = DECODER_OPTIONS
        self._placed = False
        self._report_where(fallback)
        self._time_base = stream.time_base or Fraction(1, 90_000)
        self._units = access_units.reader_for(self._context.name, stream.codec_context.extradata)
        self._number = -1
        self._begun = False
        self._trust = Trust(lost_before="loss" in log.take())
        self._skipping = Skipping(camera.max_fps)
        self._pace, self._key_pace = Pace(self._time_base), Pace(self._time_base)
        self._selection = Selection(max_fps=camera.max_fps)
        self._clock = WallClock()
        self._rate = Rate()
        self._readings: OrderedDict[int, Reading] = OrderedDict()
        self._reported_clock: Clock | None = None
        self.refused = 0
        """Packets that the decoder refused since its last picture: if they add up, the codec has changed."""

    @property
    def level(self) -> Level:
        """How much is decoded."""
        return self._skipping.level

    def pictures(self, arrival: Arrival) -> Iterator[LivePicture]:
        """Those that are finished with this packet, trusted and wanted; the others are counted."""
        packet = arrival.packet
        self._number += 1
        disposable = self._observe(packet)
        self._note_times(arrival)
        self._begun = self._begun or packet.is_keyframe
        if not self._begun:
            return
        if not self._needs_decoding(arrival, disposable):
            self._reporter.count("skipped.rate")
            return
        for frame in self._decoded(packet):
            ticket = frame.opaque
            # Pictures that a decoder makes up for missing ones have none.
            made_up = not isinstance(ticket, Ticket)
            number = ticket.number if isinstance(ticket, Ticket) else self._number
            if not self._trust.believes(number, corrupt=frame.is_corrupt or made_up):
                self._reporter.count("dropped.damaged")
            elif not self._selection.takes(self._pace.at(frame.pts, arrival.arrived_ns)):
                self._reporter.count("skipped.rate")
            else:
                yield self._picture(frame, arrival, number)

    def _observe(self, packet: Packet[VideoStream]) -> bool:
        """Tell `Trust` of the packet; whether no other picture needs it."""
        unit = self._units.observe(bytes(packet))
        if "loss" in self._log.take() or packet.is_corrupt:
            self._trust.lost(self._number)
        if unit.gap:
            self._trust.damaged(self._number)
        if packet.is_keyframe:
            self._trust.keyframe(self._number)
        return unit.disposable

    def _needs_decoding(self, arrival: Arrival, disposable: bool) -> bool:
        packet = arrival.packet
        keyframe_ns = self._key_pace.at(packet.pts, arrival.arrived_ns) if packet.is_keyframe else None
        return self._skipping.decodes(keyframe_ns, disposable=disposable)

    def _decoded(self, packet: Packet[VideoStream]) -> list[VideoFrame]:
        packet.opaque = Ticket(self._number)
        try:
            # A device's decoder is opened by the first picture.
            with nullcontext() if self._placed else self._turns.one():
                frames = self._context.decode(packet)
            if self.level == "key":
                frames += self._drained()
        except av.FFmpegError:
            self.refused += 1
            self._reporter.count("dropped.damaged")
            self._trust.damaged(self._number)
            self._log.take()
            return []
        if "damage" in self._log.take():
            self._trust.damaged(self._number)
        if frames:
            self.refused = 0
            self._report_device(frames[0])
        return frames

    def _drained(self) -> list[VideoFrame]:
        """The pictures that are left in the decoder, which a new keyframe may follow then, also after an error.

        A decoder of a stream with B-frames would wait for the pictures behind the next keyframes.
        """
        try:
            return self._context.decode(None)
        finally:
            self._context.flush_buffers()

    def _note_times(self, arrival: Arrival) -> None:
        reported = reported_ns(arrival.packet)
        self._readings[self._number] = self._clock.at(reported, arrival.arrived_ns, arrival.wall_ns)
        if len(self._readings) > MOST_HELD:
            self._readings.popitem(last=False)
        measured = self._rate.came(arrival.arrived_ns)
        if measured is not None:
            self._reporter.shows(fps=round(measured, 2))

    def _picture(self, frame: VideoFrame, arrival: Arrival, number: int) -> LivePicture:
        reading = self._readings.get(number, Reading(arrival.wall_ns, "wall"))
        if reading.clock != self._reported_clock:
            self._reported_clock = reading.clock
            self._reporter.shows(clock=reading.clock)
        return LivePicture(frame, arrival.arrived_ns, *reading, frame.pts, self._time_base, number)

    def _report_where(self, fallback: str) -> None:
        if fallback:
            self._reporter.warns_once("decode_falls_back", why=fallback)
        if not self._context.is_hwaccel:
            self._placed = True
            self._reporter.shows(decoder="cpu")

    def _report_device(self, frame: VideoFrame) -> None:
        """Once, at the first picture of a decoder with a device: did it come from there?"""
        if self._placed:
            return
        self._placed = True
        reason = hardware.why_not_on_device(frame, self._context.name)
        if reason and self._decode == "cuda":
            raise EnvironmentProblem(
                f"decode: cuda: {reason}; write `decode: auto` or `decode: cpu`", error_id="gpu-decoding"
            )
        if reason:
            self._reporter.warns_once("decode_falls_back", why=reason)
        self._reporter.shows(decoder="cpu" if reason else "cuda")


@dataclass(slots=True)
class _Doubt:
    """From the packet `since` on; each of `exits` is the number of a keyframe whose picture would end it."""

    since: int
    exits: set[int] = field(default_factory=set)


class Trust:
    """Decides which pictures of one connection may be trusted, from its first packet on. Pure.

                 damage: a loss, a gap, a refusal, a complaint, a corrupt picture
        believed ------------------------------------------------------------------> in doubt
                 <------------------------------------------------------------------
                 the picture of a keyframe comes out, and nothing was wrong with its packet or the one before

    The number of its packet, not its order, decides whether a picture is in doubt: pictures from before the damage that
    are shown later stay trusted, and those that come out before the keyframe's own (they lead it, and may refer to
    packets before it) do not. A loss that is noticed with one packet may have hit the next one as well: FFmpeg's parser
    holds one back.
    """

    def __init__(self, *, lost_before: bool = False) -> None:
        """`lost_before`: something was lost before the first packet, so its keyframe is not believed."""
        self._doubts: list[_Doubt] = []
        self._lost_at = 0 if lost_before else -2
        if lost_before:
            self.damaged(0)

    def lost(self, number: int) -> None:
        """Something that belongs to this packet, or to the next one, did not arrive, or not as it was sent."""
        self._lost_at = number
        self.damaged(number)

    def damaged(self, number: int) -> None:
        """This packet is damaged, or could not be decoded."""
        for doubt in self._doubts:
            doubt.exits = {key for key in doubt.exits if key < number}
        if not any(doubt.since <= number and not doubt.exits for doubt in self._doubts):
            self._doubts.append(_Doubt(number))

    def keyframe(self, number: int) -> None:
        """This packet is a keyframe; call it after reporting its damage."""
        self._forget(number)
        if number - self._lost_at > 1:
            for doubt in self._doubts:
                if doubt.since < number:
                    doubt.exits.add(number)

    def believes(self, number: int, *, corrupt: bool) -> bool:
        """Whether the picture of this packet, which comes out now, may be believed. `corrupt`: the decoder's word."""
        if corrupt:
            self.damaged(number)
        self._doubts = [doubt for doubt in self._doubts if number not in doubt.exits]
        return all(number < doubt.since for doubt in self._doubts)

    def _forget(self, number: int) -> None:
        """Exits whose pictures would be out by now, and doubts that end with one that began no later."""
        for doubt in self._doubts:
            doubt.exits = {key for key in doubt.exits if key > number - MOST_HELD}
        kept: list[_Doubt] = []
        for doubt in sorted(self._doubts, key=lambda one: one.since):
            if all(doubt.exits != other.exits for other in kept):
                kept.append(doubt)
        self._doubts = kept
