"""The switches of a run: states by name that its stages declare, and that people set while it runs."""

from __future__ import annotations

from collections.abc import Mapping

from pipeline.errors import UserError
from pipeline.monitoring.declared import declaring
from pipeline.plan import RunPlan
from pipeline.system.spelling import did_you_mean


class Switches:
    """The states that somebody has set (`changed`), over those with which the stages begin. Kept as long as the run."""

    def __init__(self) -> None:
        self.changed: dict[str, bool] = {}
        self._known: tuple[RunPlan | None, Mapping[str, bool]] = None, {}

    def now(self, plan: RunPlan) -> dict[str, bool]:
        """All switches that the stages of this plan have."""
        known, declared = self._known
        if known is not plan:
            declared = declared_in(plan)
            self._known = plan, declared
        return {name: self.changed.get(name, state) for name, state in sorted(declared.items())}

    def turn(self, plan: RunPlan, name: str, *, on: bool) -> None:
        """Set one. Raises UserError if no stage has it."""
        known = self.now(plan)
        if name not in known:
            listed = f"; there are: {', '.join(known)}" if known else ": its rules have no `switches`"
            raise UserError(f"the run has no switch {name[:64]!r}{did_you_mean(name, known) or listed}")
        self.changed[name] = on


def declared_in(plan: RunPlan) -> dict[str, bool]:
    """The switches of all stages, as they are at the start; on if the stages do not agree."""
    found: dict[str, bool] = {}
    for switches in declaring(plan, "switches"):
        for name, on in switches.items():
            found[name] = found.get(name, False) or on
    return found
