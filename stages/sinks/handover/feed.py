"""Hands frames to a program at its pace: every frame of files, the newest one of each live camera.

every    blocks on a frame until the program has room for it
newest   keeps each camera's newest frame, which replaces an unread one, and sends it when the program asks
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Generic, TypeVar

from camgraph.pipeline.errors import Unavailable
from camgraph.pipeline.messages import Stamp
from camgraph.pipeline.stage import Context, Counts
from camgraph.stages.sinks.handover.link import Link
from camgraph.stages.sinks.handover.parcel import Parcel

WAIT_S = 0.5
_RETRY_S = 0.25
NOT_READ: Counts = {
    "skipped.not_read": "A program that reads live cameras from Python had not asked yet: a newer frame took its place."
}
"""The counters of the stages that have a feed."""

K = TypeVar("K")


class Feed(Generic[K]):
    """Sends frames. `keep` copies a frame that must wait; `pack` makes a parcel of a frame and the number skipped."""

    def __init__(
        self, address: str, context: Context, *, keep: Callable[[K], K], pack: Callable[[K, int], Parcel]
    ) -> None:
        self._link = Link(address)
        self._context = context
        self._keep = keep
        self._pack = pack
        self._last: dict[str, tuple[int, int]] = {}
        self._skipped: Counter[str] = Counter()
        self._pending: dict[str, K] = {}
        self._changed = threading.Condition()
        self._closing = False
        self._bug: Exception | None = None
        self._thread: threading.Thread | None = None

    def open(self) -> None:
        """Connect. If the program is gone, the first `offer` raises Unavailable."""
        with suppress(Unavailable):
            self._link.connect()

    def offer(self, stamp: Stamp, item: K) -> None:
        """Send a frame, or keep it to send later.

        Raises Unavailable if the caller must offer it again, and what the thread that sends later has raised.
        """
        if self._bug is not None:
            bug, self._bug, self._thread = self._bug, None, None
            raise bug
        if self._thread is None and self._link.connect() == "every":
            self._send_now(stamp, item)
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name="handover", daemon=True)
            self._thread.start()
        with self._changed:
            if self._pending.get(stamp.camera) is not None:
                self._skipped[stamp.camera] += 1
                self._context.count("skipped.not_read", stamp.camera)
            self._pending[stamp.camera] = self._keep(item)
            self._changed.notify()

    def close(self) -> None:
        """Stop sending."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        if self._thread:
            self._thread.join(2 * WAIT_S)
        self._link.close()

    def _send_now(self, stamp: Stamp, item: K) -> None:
        if self._last.get(stamp.camera, (-1, -1)) >= stamp.place:
            return  # already sent: a later frame of the same batch was refused, so the whole batch comes again
        if not self._link.wait_credit(time.monotonic() + WAIT_S):
            raise Unavailable("the program that reads has not asked for more yet", patient=True)
        self._link.send(self._pack(item, 0))
        self._last[stamp.camera] = stamp.place

    # ---- the newest

    def _serve(self) -> None:
        while not self._closing:
            try:
                if self._wait_pending() and self._link.wait_credit(time.monotonic() + WAIT_S):
                    self._send_newest()
            except Unavailable:
                with self._changed:
                    self._changed.wait_for(lambda: self._closing, _RETRY_S)
            except Exception as bug:  # noqa: BLE001 - raised by `offer`: the runtime knows what a bug of a stage costs
                self._bug = bug
                return

    def _wait_pending(self) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: self._pending or self._closing, WAIT_S) and not self._closing

    def _send_newest(self) -> None:
        with self._changed:
            camera = next(iter(self._pending))
            item, skipped = self._pending.pop(camera), self._skipped.pop(camera, 0)
        self._link.send(self._pack(item, skipped))
