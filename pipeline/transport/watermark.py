"""The low watermark of an edge and camera: up to which key everything that does not come (again) is done.

Only a reader that has taken a dead process's place needs it. Its senders may know different things: one has received
the ack of a frame and does not send it again, another has not and does. The partner that does not come must be
neither counted as lost nor waited for. So each sender reports, before it sends anything again (message W), two keys:

    provisional   Every message up to this key that does not come is done. A sender passes it on as soon as its own
                  senders have reported it.
    final         The same, and it is known which message up to this key is the last one that comes (`again`). A sender
                  knows that when it has taken everything that came again to itself.

    W1  Both only rise, and `final` is not higher than `provisional`: a report stays true when a process dies.
    W2  A message up to `provisional` that is missing between others is done: no loss.
    W3  Once the message `again` has come, nothing more comes up to `final`: joins and merges need not wait.

A report takes this way through a process:

    Receiver -> Mailboxes.raise_watermark    `ReceivedWatermark` keeps it, for each edge and camera
    Mailbox.provisional, Mailbox.final       that of a camera is the lowest of all edges, as soon as each has one
    Mailboxes.take_provisional, .take_final  when the process may report it: at once, or after what comes again
    StageChain.watermarks_behind             its key on each edge that leaves the process
    Sender.raise_watermarks                  `SentWatermark` keeps it, and sends what is news to a reader; a reader that
                                             says hello gets all (`InFlight.watermarks`)

`tests/pipeline/test_resending.py` checks W1 and W3 and the consequences with a state machine: nothing is lost (S1),
repeated or out of order (S2), counted as lost though it was done (S3), or waited for in vain (S4).
"""

from __future__ import annotations

from dataclasses import dataclass

from camgraph.pipeline.items import Key
from camgraph.pipeline.transport.protocol import Watermark


@dataclass(slots=True)
class SentWatermark:
    """The sender's side."""

    submitted: Key | None = None
    """The last message's. Keys rise, so each message up to it that has not been submitted will not come: that is final.
    It is set for each message, and looked at when somebody asks.
    """
    _provisional: Key | None = None
    _final: Key | None = None
    _reported: tuple[Key | None, Key | None] = (None, None)

    @property
    def provisional(self) -> Key | None:
        return _higher(self._provisional, self.submitted)

    @property
    def final(self) -> Key | None:
        return _higher(self._final, self.submitted)

    def rise(self, key: Key, *, final: bool) -> None:
        """Every message up to this key that is left out is done and, if `final`, the others have been submitted."""
        self._provisional = _higher(self._provisional, key)
        if final:
            self._final = _higher(self._final, key)

    @property
    def is_news(self) -> bool:
        """Whether it has risen since it was last reported to the reader, on any connection."""
        return self._reported != (self.provisional, self.final)

    def report(self, edge: str, camera: str, last: Key | None) -> list[Watermark]:
        """The report for the reader, which counts as sent now. `last`: the key of the last message in flight."""
        provisional, final = self._reported = self.provisional, self.final
        rows = []
        if final:
            rows.append(Watermark(edge, camera, final, last, final=True))
        if provisional and provisional != final:
            rows.append(Watermark(edge, camera, provisional, None, final=False))
        return rows


@dataclass(slots=True)
class ReceivedWatermark:
    """The reader's side: the highest of its senders' reports, also of those that have died since."""

    provisional: Key | None = None
    final: Key | None = None
    again: Key | None = None

    def rise(self, reported: Watermark) -> None:
        """A sender reports."""
        self.provisional = _higher(self.provisional, reported.key)
        if reported.final:
            self.final = _higher(self.final, reported.key)
            self.again = _higher(self.again, reported.again)

    def has_all_again(self, last: Key | None) -> bool:
        """Whether all messages have come that the sender has announced; `last` is the key of the last one."""
        return self.again is None or (last is not None and self.again <= last)

    def is_silent(self, key: Key, last: Key | None) -> bool:
        """Whether no more messages come with a key up to this one (W3)."""
        return self.final is not None and key <= self.final and self.has_all_again(last)

    def was_done(self, key: Key) -> bool:
        """Whether a message with this key that does not come is done (W2)."""
        return self.provisional is not None and key <= self.provisional


def _higher(known: Key | None, key: Key | None) -> Key | None:
    return key if known is None or (key is not None and key > known) else known
