"""The switches of a run: states by name that its stages declare, and that people set while it runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from camgraph.pipeline.errors import EnvironmentProblem, UserError
from camgraph.pipeline.monitoring.declared import declaring
from camgraph.pipeline.plan import RunPlan
from camgraph.pipeline.stage import Logger
from camgraph.pipeline.system.disk import read_text, write_whole
from camgraph.pipeline.system.spelling import did_you_mean

SWITCHES_FILE = "switches.json"


class Switches:
    """The states that somebody has set (`changed`), over those with which the stages begin.

    They last as long as the run, those that a stage wants to be kept longer: in a file of `folder`, if there is one.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.changed: dict[str, bool] = {}
        self._path = folder / SWITCHES_FILE if folder else None
        self._known: tuple[RunPlan | None, Mapping[str, bool]] = None, {}

    def restore(self, plan: RunPlan, log: Logger) -> None:
        """Take the kept states of an earlier run of this name. A file that cannot be read is logged and left out."""
        kept = _kept_by(plan)
        if self._path is None or not kept:
            return
        try:
            found = json.loads(read_text(self._path))
            states = {name: on for name, on in found.items() if name in kept and isinstance(on, bool)}
        except FileNotFoundError:
            return
        except (OSError, ValueError, AttributeError) as error:
            log.error("switches_not_restored", path=str(self._path), why=str(error))
            return
        self.changed |= states
        if states:
            log.info("switches_restored", **{name: "on" if on else "off" for name, on in sorted(states.items())})

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
            raise UserError(
                f"the run has no switch {name[:64]!r}{did_you_mean(name, known) or listed}", error_id="name-unknown"
            )
        self.changed[name] = on

    def keep(self, plan: RunPlan) -> None:
        """Write down the states that are to be kept. Raises EnvironmentProblem: then they last as long as the run."""
        kept = {name: on for name, on in sorted(self.changed.items()) if name in _kept_by(plan)}
        if self._path is None or not kept:
            return
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_whole(self._path, json.dumps(kept).encode(), durable=True)
        except OSError as error:
            states = ", ".join(f"{name} is {'on' if on else 'off'}" for name, on in kept.items())
            raise EnvironmentProblem(
                f"{states}, but the next run would not know it: {self._path} cannot be written: {error.strerror}",
                error_id="cannot-write",
            ) from None


def declared_in(plan: RunPlan) -> dict[str, bool]:
    """The switches of all stages, as they are at the start; on if the stages do not agree."""
    found: dict[str, bool] = {}
    for switches in declaring(plan, "switches"):
        for name, on in switches.items():
            found[name] = found.get(name, False) or on
    return found


def _kept_by(plan: RunPlan) -> set[str]:
    return {name for names in declaring(plan, "kept_switches") for name in names}
