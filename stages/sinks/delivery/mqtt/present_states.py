"""Which incidents are open at each camera: what a newcomer has to know.

Events are changes. What shows a state, such as a light on a wall, needs the sum of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from camgraph.stages.sinks.delivery.event_view import EventView

_MOST_OPEN = 1000
"""Incidents of one camera; the oldest of more are taken for ended."""


class PresentStates:
    """The sum of the events that `take` has seen. An event that comes again changes nothing."""

    def __init__(self, kept: Mapping[str, Any] | None = None) -> None:
        """`kept`: as `kept` has returned it. Raises KeyError, TypeError or AttributeError if it is something else."""
        self._open: dict[str, dict[str, dict[str, Any]]] = {}
        """Camera -> incident -> its facts."""
        for camera, one in (kept or {}).items():
            self._open[camera] = {incident: dict(facts) for incident, facts in one["incidents"].items()}

    def copy(self) -> PresentStates:
        return PresentStates(deepcopy(self.kept()))

    def take(self, view: EventView) -> None:
        """Remember one more event."""
        if view.kind != "incident":
            return
        incidents = self._open.setdefault(view.camera, {})
        if view.phase in ("start", "update"):
            incidents[view.incident] = _facts(view)
            while len(incidents) > _MOST_OPEN:
                del incidents[next(iter(incidents))]
        elif view.phase == "end":
            incidents.pop(view.incident, None)

    def forget(self, camera: str) -> None:
        """This camera is gone."""
        self._open.pop(camera, None)

    def incidents(self, camera: str) -> list[dict[str, Any]]:
        """The open ones, in the order of their starts."""
        return [{"incident": name, **facts} for name, facts in self._open.get(camera, {}).items()]

    def is_open(self, camera: str, incident: str) -> bool:
        return incident in self._open.get(camera, {})

    def actions(self, camera: str) -> set[str]:
        """Those that somebody does now."""
        return {facts["action"] for facts in self._open.get(camera, {}).values()}

    def holds(self, camera: str, rule: str) -> bool:
        """Whether an incident of this rule is open."""
        return any(facts["rule"] == rule for facts in self._open.get(camera, {}).values())

    def kept(self) -> dict[str, Any]:
        """All of it as plain values, for a process that begins anew."""
        return {camera: {"incidents": incidents} for camera, incidents in self._open.items()}


def _facts(view: EventView) -> dict[str, Any]:
    people = view.data.get("people")
    return {
        "action": view.action,
        "rule": view.rule,
        "severity": view.severity,
        "since": str(view.data.get("start_time") or view.body.get("time", "")),
        "people": len(people) if isinstance(people, list) else 0,
        "zones": view.data.get("zones") or [],
    }
