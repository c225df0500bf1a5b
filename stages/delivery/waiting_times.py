"""How long events have waited for their delivery, whatever becomes of the clock of this machine meanwhile."""

from __future__ import annotations

from collections import OrderedDict

from pipeline.messages import MOST_REPEATED
from stages.messages import Event

_KNOWN = 2 * MOST_REPEATED


class WaitingTimes:
    """The clock tells the age of an event once, when it comes here first. From then on its age grows with `steady_ns`.

    So a clock that is set while a receiver is away makes no event old. `wall_ns` is UTC since 1970; `steady_ns` is of a
    clock that nobody sets, which goes on while the machine sleeps (CLOCK_BOOTTIME).
    """

    def __init__(self) -> None:
        self._since: OrderedDict[str, int] = OrderedDict()
        """Event id -> when it was committed, as `steady_ns` would have told."""

    def of(self, event: Event, wall_ns: int, steady_ns: int) -> float:
        """In seconds since the outbox committed it; since it came here first if that is not known."""
        since_ns = self._since.get(event.id)
        if since_ns is None:
            age_ns = max(0, wall_ns - event.committed_ns) if event.committed_ns else 0
            since_ns = self._since[event.id] = steady_ns - age_ns
            if len(self._since) > _KNOWN:
                self._since.popitem(last=False)
        return (steady_ns - since_ns) / 1e9
