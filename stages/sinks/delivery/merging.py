"""Fewer alerts about one happening: incidents of a camera sent as one, and a pause between alerts.

`merge: 60s`      An incident that begins while another of its camera is open, or within this time after the last one
                  ended, belongs to it: its start arrives as an update of the first, and the end comes when all have
                  ended. If a further one begins after that end, an update follows, and another end.
`cooldown: 10min` After an alert, further incidents of the same rule and camera that begin within this time are left
                  out. So are further losses of a camera, which some networks make each minute.

`decide` remembers nothing. `done` remembers, and is called once the event is delivered or left out. An alert
that was not sent, for whatever reason, never holds back another: it starts no cooldown, and until something of a group
was sent, its next beginning is sent as one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, Literal

from camgraph.stages.sinks.delivery.event_view import EventView

_WITH_PHASES = ("incident", "camera")
_MOST_MEMBERS = 50
"""Named in a merged event, beside the first."""
_MOST_REMEMBERED = 1000
"""Left out incidents: their later events are left out as well. An older one that still goes on may be seen again."""

_LONGEST_OPEN_NS = 86_400 * 10**9
"""After so long without an event, incidents are no longer taken for open: their ends may have been given up."""


@dataclass(slots=True)
class _Group:
    """The incidents of a camera that are sent as one. The first one's id is the group's."""

    first: str
    start_time: str
    last_ns: int
    """When its latest event was."""
    is_known: bool = False
    """Whether anything of it was sent."""
    open: list[str] = field(default_factory=list)
    members: list[dict[str, str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Decision:
    """`send`: as it is. `join`: as an update, or the end, of the group. `leave_out`: not at all."""

    what: Literal["send", "join", "leave_out"]
    phase: str
    why: str = ""


class Merging:
    """See the module. Times in nanoseconds of the events' own clock; 0 for no merging, no cooldown."""

    def __init__(self, merge_ns: int, cooldown_ns: int) -> None:
        self._merge_ns, self._cooldown_ns = merge_ns, cooldown_ns
        self._groups: dict[str, _Group] = {}
        self._alerts: dict[tuple[str, str], tuple[int, str]] = {}
        """(camera, rule) -> time and incident of the last alert."""
        self._left_out: dict[str, None] = {}
        self._begun_unseen: dict[str, None] = {}
        """Incidents whose beginning no filter wanted: what is sent of them first is the alert."""

    @property
    def is_on(self) -> bool:
        return bool(self._merge_ns or self._cooldown_ns)

    def is_following(self, view: EventView) -> bool:
        """Whether it belongs to an incident that is open in a group, which must hear of its end."""
        group = self._groups.get(view.camera)
        return group is not None and view.incident in group.open

    # ---- deciding

    def decide(self, view: EventView) -> Decision:
        """What becomes of an incident's event; events of other kinds are sent as they are."""
        if view.kind not in _WITH_PHASES:
            return Decision("send", view.phase)
        if view.incident in self._left_out or self._is_too_soon(view):
            return Decision("leave_out", view.phase, "cooldown")
        group = self._group_of(view)
        if group is None or (view.incident == group.first and view.phase != "end"):
            return Decision("send", view.phase)
        if _begins(view) and not group.is_known:
            return Decision("send", view.phase)
        if view.phase == "end":
            others = [one for one in group.open if one != view.incident]
            return Decision("leave_out", "end", "merged") if others else self._last_end(group, view)
        return Decision("join", "update")

    def _last_end(self, group: _Group, view: EventView) -> Decision:
        alone = [one["incident"] for one in group.members] == [view.incident]
        return Decision("send" if alone else "join", "end")

    def _is_too_soon(self, view: EventView) -> bool:
        """Whether a new incident begins within the cooldown after the last alert of its rule and camera."""
        at_ns, incident = self._alerts.get((view.camera, view.rule), (0, ""))
        if not self._cooldown_ns or not incident or incident == view.incident or not _begins(view):
            return False
        return at_ns <= view.wall_ns < at_ns + self._cooldown_ns

    def _group_of(self, view: EventView) -> _Group | None:
        group = self._groups.get(view.camera) if self._merge_ns and view.kind == "incident" else None
        if group is None or view.incident in group.open:
            return group
        # On both sides: a clock that was set back must not make all that comes belong to what was.
        within_ns = max(self._merge_ns, _LONGEST_OPEN_NS) if group.open else self._merge_ns
        is_near = abs(view.wall_ns - group.last_ns) < within_ns
        return group if is_near and (_begins(view) or _is_among(view, group)) else None

    # ---- remembering

    def given_up(self, view: EventView) -> None:
        """The event will never be delivered. If it is an end, its incident is over all the same."""
        group = self._group_of(view)
        if group and view.phase == "end" and view.incident in group.open:
            group.open.remove(view.incident)

    def done(self, view: EventView, decision: Decision, *, is_sent: bool) -> None:
        """The event was delivered, or left out: as decided, or because a filter does not want its phase."""
        if view.kind not in _WITH_PHASES:
            return
        if decision.why == "cooldown":
            self._leave_out(view)
            return
        if self._cooldown_ns:
            self._note_alert(view, is_sent)
        if self._merge_ns and view.kind == "incident":
            self._note_in_group(view, is_sent)

    def _leave_out(self, view: EventView) -> None:
        if view.phase == "end":
            self._left_out.pop(view.incident, None)
        elif view.phase != "single":
            self._left_out[view.incident] = None
        _forget_oldest(self._left_out)

    def _note_alert(self, view: EventView, is_sent: bool) -> None:
        is_first = _begins(view) or view.incident in self._begun_unseen
        if is_sent and is_first:
            self._alerts[view.camera, view.rule] = view.wall_ns, view.incident
        if is_sent or view.phase == "end":
            self._begun_unseen.pop(view.incident, None)
        elif view.phase == "start":
            self._begun_unseen[view.incident] = None
            _forget_oldest(self._begun_unseen)

    def _note_in_group(self, view: EventView, is_sent: bool) -> None:
        group = self._group_of(view)
        if group is None:
            if not _begins(view):
                return
            group = self._groups[view.camera] = _Group(view.incident, _start_of(view), view.wall_ns)
        elif is_sent and _begins(view) and not group.is_known:  # the receiver knows of no earlier one
            group.first, group.start_time, group.members = view.incident, _start_of(view), []
        group.is_known |= is_sent
        group.last_ns = view.wall_ns
        if view.phase == "end" and view.incident in group.open:
            group.open.remove(view.incident)
        elif _begins(view) and not _is_among(view, group):
            _add_to(group, view)

    # ---- the merged event

    def joined(self, view: EventView, decision: Decision) -> dict[str, Any]:
        """The body of an event that joins its group: an update, or the end, of the group's first incident."""
        group = self._groups[view.camera]
        me = {"incident": view.incident, "rule": view.rule, "action": view.action}
        members = group.members if _is_among(view, group) else [*group.members, me]
        data = {**view.data, "incident": group.first, "phase": decision.phase, "merged": members}
        if decision.phase == "end":
            data.update(_whole_time(group.start_time, str(view.data.get("end_time") or view.body.get("time", ""))))
        return {**view.body, "type": f"camgraph.incident.{decision.phase}", "data": data}

    # ---- the state of a restarted process

    def state(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "groups": {camera: asdict(group) for camera, group in self._groups.items()},
            "alerts": [[*place, *alert] for place, alert in self._alerts.items()],
            "left_out": list(self._left_out),
            "begun_unseen": list(self._begun_unseen),
        }

    def take(self, state: Mapping[str, Any]) -> None:
        """Go on with what `state` has given. Raises KeyError, TypeError or ValueError for anything else."""
        self._groups = {camera: _Group(**group) for camera, group in state["groups"].items()}
        self._alerts = {(camera, rule): (int(at), incident) for camera, rule, at, incident in state["alerts"]}
        self._left_out = dict.fromkeys(state["left_out"])
        self._begun_unseen = dict.fromkeys(state["begun_unseen"])


def _whole_time(start: str, end: str) -> dict[str, Any]:
    """From the start of the first incident of a group to the end of the last."""
    try:
        lasted_s = (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()
    except (ValueError, TypeError):  # TypeError: one of them has a zone
        return {}
    return {"start_time": start, "duration_s": round(max(0.0, lasted_s), 3)}


def _forget_oldest(incidents: dict[str, None]) -> None:
    while len(incidents) > _MOST_REMEMBERED:
        del incidents[next(iter(incidents))]


def _start_of(view: EventView) -> str:
    return str(view.data.get("start_time", ""))


def _add_to(group: _Group, view: EventView) -> None:
    group.members.append({"incident": view.incident, "rule": view.rule, "action": view.action})
    group.members = [group.members[0], *group.members[1:][-_MOST_MEMBERS:]]
    if view.phase == "start":
        group.open = [*group.open, view.incident][-_MOST_REMEMBERED:]


def _begins(view: EventView) -> bool:
    return view.phase in ("start", "single")


def _is_among(view: EventView, group: _Group) -> bool:
    return any(one["incident"] == view.incident for one in group.members)
