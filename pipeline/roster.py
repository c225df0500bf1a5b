"""What a process does as its cameras come and go: its plan is another, and nothing that stays is touched.

remove   its source says the camera's last word; when that is done everywhere, a revised plan follows
revise   cameras that are new get their ways and their places; of those that are gone everything is forgotten
pause    sources rest, and go on later behind their last frame
"""

from __future__ import annotations

from collections.abc import Callable

from pipeline.boot import Boot
from pipeline.errors import EnvironmentProblem
from pipeline.feed import SourceFeed
from pipeline.inlet import Inlet
from pipeline.outbox import Outbox
from pipeline.outlet import Outlet
from pipeline.plan import slots_of
from pipeline.slots import SlotRing
from pipeline.sources import Sources
from pipeline.unit import Unit


class Roster:
    """The cameras of a process. `new_feed(boot, camera)` makes the source of one. For the loop's thread."""

    def __init__(
        self,
        unit: Unit,
        inlet: Inlet | None,
        outlet: Outlet,
        *,
        ring: SlotRing,
        sources: Sources,
        new_feed: Callable[[Boot, str], SourceFeed],
    ) -> None:
        self._unit = unit
        self._inlet = inlet
        self._outlet = outlet
        self._ring = ring
        self._sources = sources
        self._new_feed = new_feed

    def revise(self, boot: Boot) -> str:
        """Go on by another plan of the same unit; why it cannot be, where there is no memory or no time left for it."""
        before, plan = self._unit.plan, boot.unit
        coming = [camera for camera in plan.cameras if camera not in before.cameras]
        if coming and any(isinstance(r.stage, Outbox) and r.stage.all_ended for r in self._unit.runners.values()):
            return "the run is at its end"
        try:
            self._ring.resize(slots_of(plan))
        except EnvironmentProblem as problem:
            return str(problem)
        self._outlet.revise(plan.routes)
        if self._inlet:
            self._inlet.revise(plan)
        self._unit.revise(plan)
        self._sources.keep_only(plan.cameras)
        for camera in coming if plan.sources else ():
            self._sources.add(self._new_feed(boot, camera))
        return ""
