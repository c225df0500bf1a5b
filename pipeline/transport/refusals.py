"""Messages that are not believed: every one is counted, each kind is logged once."""

from __future__ import annotations

from camgraph.pipeline.errors import WireError
from camgraph.pipeline.monitoring.metrics import Counters
from camgraph.pipeline.stage import Logger

_MOST_LOGGED = 20


class Refusals:
    """Of one process, or one side of it. `sender` in the log is who sent it."""

    def __init__(self, counters: Counters, log: Logger) -> None:
        self._counters = counters
        self._log = log
        self._logged: set[tuple[str, str]] = set()

    def add(self, error: WireError, *, sender: str, counted: str, camera: str = "") -> None:
        """Count a message under `counted`; log the first of its kind only, because a wrong sender stays wrong."""
        self._counters.add(counted, camera)
        kind = (sender, str(error))
        if kind not in self._logged and len(self._logged) < _MOST_LOGGED:
            self._logged.add(kind)
            self._log.error("message_refused", sender=sender, error=str(error))
