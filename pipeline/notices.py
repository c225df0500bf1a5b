"""The supervisor's own events: a stage that remembers things has lost them.

They go to the outbox like all events, and are handed to it again until it says that it has committed them: the outbox
may die in between, and knows a repeated one by its id.
"""

from __future__ import annotations

import hashlib
import json
import os
from datetime import UTC, datetime
from typing import Any, Protocol

AGAIN_S = 1.0


class Sender(Protocol):
    """Where the outbox is told."""

    def send(self, op: str, **values: Any) -> bool: ...


class Notices:
    """Events that the outbox has not committed yet. `run` is the run's name, `graph` that of its graph.

    Without an `outbox` in the graph there is nobody to tell, and nothing is kept.
    """

    def __init__(self, run: str, graph: str, *, outbox: bool = True) -> None:
        self._outbox = outbox
        self._run = run
        self._graph = graph
        self._kept: dict[str, dict[str, Any]] = {}
        self._again_at = 0.0

    def lost(self, stage: str, camera: str, incarnation: int, reason: str) -> None:
        """A stage has lost what it remembered of a camera when its process died in this incarnation."""
        if not self._outbox:
            return
        subject = f"{stage}/{camera}/{incarnation}"
        event_id = hashlib.sha256(f"{self._run}/{os.getpid()}/{subject}".encode()).hexdigest()[:32]
        body = {
            "specversion": "1.0",
            "id": event_id,
            "source": f"camgraph/{self._graph}",
            "type": "camgraph.stage.restarted",
            "time": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "subject": camera,
            "data": {"stage": stage, "camera": camera, "reason": reason, "lost": "state"},
        }
        event = {"sender": stage, "camera": camera, "id": event_id, "incident": event_id, "phase": "single"}
        text = json.dumps(body, separators=(",", ":"))
        self._kept[event_id] = {**event, "incarnation": incarnation, "time_ns": 0, "body": text.encode()}
        self._again_at = 0.0

    def send(self, outbox: Sender, now: float, *, anew: bool = False) -> None:
        """Hand over what is not committed, if it is time: at once, to an outbox that began `anew`, and each second."""
        if self._kept and (anew or now >= self._again_at):
            self._again_at = now + AGAIN_S
            for event in self._kept.values():
                outbox.send("emit", **event)

    def committed(self, event: dict[str, Any]) -> None:
        """The outbox has this event (of whoever); if it is one of these it is safe now."""
        self._kept.pop(str(event.get("id", "")), None)

    def __len__(self) -> int:
        return len(self._kept)
