"""The controls of a run, which its stages declare and people use while it runs: switches, and counters to set to zero.

    camgraph counter visitors reset --camera front      {"visitors": {"front": 1}}
    camgraph counter visitors reset                     {"visitors": {"front": 2, "back": 2}}

A stage obeys each number of such a command once: it remembers the last one beside its counts, so a command is neither
lost nor obeyed twice if the stage's process dies.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from camgraph.pipeline.errors import EnvironmentProblem, UserError
from camgraph.pipeline.plan import RunPlan
from camgraph.pipeline.registry import find_stage
from camgraph.pipeline.stage import Logger, Stage
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


class CounterResets:
    """Counter -> camera -> the number of the last command (`numbers`)."""

    def __init__(self) -> None:
        self.numbers: dict[str, dict[str, int]] = {}
        self._last = 0

    def reset(self, plan: RunPlan, name: str, camera: str | None) -> None:
        """Set a counter to zero, of one camera or of all. Raises UserError if there is no such counter or camera."""
        known = sorted({counter for counters in _declaring(plan, "counters") for counter in counters})
        if name not in known:
            listed = f"; there are: {', '.join(known)}" if known else ": its rules have no `counters`"
            raise UserError(
                f"the run has no counter {name[:64]!r}{did_you_mean(name, known) or listed}", error_id="name-unknown"
            )
        cameras = plan.camera_settings
        if camera is not None and camera not in cameras:
            listed = f"; there are: {', '.join(list(cameras)[:8])}"
            raise UserError(
                f"the run has no camera {camera[:64]!r}{did_you_mean(camera, cameras) or listed}",
                error_id="name-unknown",
            )
        self._last += 1
        before = {one: number for one, number in self.numbers.get(name, {}).items() if one in cameras}
        self.numbers[name] = {**before, **dict.fromkeys([camera] if camera is not None else cameras, self._last)}


def declared_in(plan: RunPlan) -> dict[str, bool]:
    """The switches of all stages, as they are at the start; on if the stages do not agree."""
    found: dict[str, bool] = {}
    for switches in _declaring(plan, "switches"):
        for name, on in switches.items():
            found[name] = found.get(name, False) or on
    return found


def _kept_by(plan: RunPlan) -> set[str]:
    return {name for names in _declaring(plan, "kept_switches") for name in names}


def _declaring(plan: RunPlan, hook: str) -> Iterator[Any]:
    """The answers of all stages that have a class method of this name of their own, each asked with its settings."""
    for stage in {stage.name: stage for process in plan.processes for stage in process.stages}.values():
        kind = find_stage(stage.use)
        if issubclass(kind, Stage) and getattr(kind, hook).__func__ is not getattr(Stage, hook).__func__:
            yield getattr(kind, hook)(kind.settings_type.model_validate(dict(stage.settings)))
