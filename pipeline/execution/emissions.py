"""Events that a sink gives to the outbox by itself, such as "the clip is ready", until they are committed.

    stage --emit--> waiting --send--> [the way to the outbox] --committed--> known --> emit returns

The way leads through the supervisor if the stage has a process of its own (`pipeline.worker.worker`), and straight to
the outbox if the whole graph is one process (`pipeline.local`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from camgraph.pipeline.errors import Unavailable
from camgraph.pipeline.messages import Event

_WITHIN_S = 5.0
_MOST_KNOWN = 4096
"""So many committed events, the last ones, are known again: a call is repeated until it hears of its event."""

Send = Callable[[str, Event], object]


class Emissions:
    """The emitted events of one process. `emit` may be called from any thread, `committed` too.

    `send(stage, event)` takes an event on its way and returns at once. If it commits events itself, it calls
    `committed` before it returns.
    """

    def __init__(self, send: Send) -> None:
        self._send = send
        self._changed = threading.Condition()
        self._committed: dict[str, None] = {}
        self._loop = threading.get_ident()

    def emit(self, stage: str, event: Event) -> None:
        """Return once the event is committed. Raises Unavailable if that takes longer: then call it again.

        In the thread of the process's loop it does not wait, because it is the loop that hears of the outbox.
        """
        if self._knows(event.id):
            return
        self._send(stage, event)
        within_s = 0.0 if threading.get_ident() == self._loop else _WITHIN_S
        with self._changed:
            if not self._changed.wait_for(lambda: event.id in self._committed, within_s):
                raise Unavailable("the outbox has not committed its own events yet", patient=not within_s)

    def _knows(self, event_id: str) -> bool:
        with self._changed:
            return event_id in self._committed

    def committed(self, event_id: str) -> None:
        """The outbox has committed the event of this id."""
        with self._changed:
            self._committed[event_id] = None
            while len(self._committed) > _MOST_KNOWN:
                del self._committed[next(iter(self._committed))]
            self._changed.notify_all()
