"""Decides which decoded pictures may be trusted. Pure: the reader numbers packets in the order of decoding.

             damage: a loss, a gap, a refusal, a complaint, a corrupt picture
    believed ------------------------------------------------------------------> in doubt
             <------------------------------------------------------------------
             the picture of a keyframe comes out, and nothing was wrong with its packet or the one before

The number of its packet, not its order, decides whether a picture is in doubt: pictures from before the damage that are
shown later stay trusted, and those that come out before the keyframe's own (they lead it, and may refer to packets
before it) do not. A loss that is noticed with one packet may have hit the next one as well: FFmpeg's parser holds one
back.
"""

from __future__ import annotations

from dataclasses import dataclass, field

MOST_HELD = 64
"""No picture comes out this many packets after its own: decoders keep back at most 16 decoded ones."""


@dataclass(slots=True)
class _Doubt:
    """From the packet `since` on; each of `exits` is the number of a keyframe whose picture would end it."""

    since: int
    exits: set[int] = field(default_factory=set)


class Trust:
    """Judges the pictures of one connection, from its first packet on."""

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
