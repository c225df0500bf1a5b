"""Cameras come and go while a run goes on, and stages get other settings: one step after the other.

    a camera goes     its source says its last word --done--> plan without it --all have it--> its process ends
    a camera comes    plan with it --all have it--> its source starts
    other settings    of a camera: it goes, and comes again; of a stage: its processes close, and begin anew

What is wanted is kept apart from what is: whatever dies meanwhile, the difference between the two says what to do next.
A camera whose source has been asked for its last word goes in any case, also where it is wanted again meanwhile.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pipeline.errors import UserError
from pipeline.monitoring.reports import Revised
from pipeline.plan import EdgePlan, GroupPlan, RunPlan, StagePlan, UnitPlan
from pipeline.stage import Logger
from pipeline.supervision.fleet import Fleet
from pipeline.supervision.process import Process
from pipeline.supervision.revision import expecting, with_cameras, with_stages
from pipeline.system.names import ascii_form, twin_of
from pipeline.system.redaction import hide
from pipeline.system.spelling import did_you_mean


class Membership:
    """The cameras and stages of a run as they are (`plan`), and as they are wanted. `turn` goes one step further.

    `source`: the kind of the source stage. `paused`: cameras that rest. `problems`: camera -> why it was not taken in.
    `refused`: process -> why it does not open with the settings that it was to have since the last `restart`.
    """

    def __init__(self, plan: RunPlan, fleet: Fleet, log: Logger) -> None:
        self.plan = plan
        self.paused: set[str] = set()
        self.problems: dict[str, str] = {}
        self.refused: dict[str, str] = {}
        self._fleet = fleet
        self._log = log
        self.source = plan.source
        self._origin = plan
        self._wanted: dict[str, Mapping[str, Any]] = dict(plan.camera_settings)
        self._live = set(plan.live_cameras)
        self._asked_to_leave: dict[str, int] = {}
        """Camera -> the incarnation of its source that was asked last."""
        self._joining: tuple[str, ...] = ()
        self._under_way = False

    @property
    def wanted(self) -> Mapping[str, Mapping[str, Any]]:
        """Camera -> its settings, as they are to be."""
        return self._wanted

    @property
    def live(self) -> Collection[str]:
        """Which of the cameras never wait."""
        return self._live

    @property
    def joining(self) -> Collection[str]:
        """Cameras that not all processes know yet: their sources must not begin."""
        return self._joining

    @property
    def busy(self) -> bool:
        """True while what is differs from what is wanted, or a change has not come to its end."""
        return self.differs or self._under_way or bool(self.coming) or self._fleet.changing

    @property
    def differs(self) -> bool:
        """True while other cameras are wanted than are there, or expected, or one that is there is on its way out."""
        as_wanted = self._wanted == self.plan.camera_settings and not self.plan.expects_more
        return not as_wanted or bool(self._asked_to_leave)

    @property
    def leaving(self) -> list[str]:
        """Cameras that are on their way out, some of them to come again."""
        here = self.plan.camera_settings
        return [name for name in here if name in self._asked_to_leave or self._wanted.get(name) != here[name]]

    @property
    def coming(self) -> list[str]:
        """Cameras that are wanted and whose source has not begun yet."""
        here = self.plan.camera_settings
        return [name for name in self._wanted if name not in here or name in self._joining or not self._has_begun(name)]

    def _has_begun(self, camera: str) -> bool:
        source = self._fleet.source_of(camera)
        return source is not None and source.life.ready_at > 0

    # ---- what is wanted

    def add(self, name: str, values: Mapping[str, Any], *, live: bool) -> None:
        """One more camera; its settings have been checked. Raises UserError where its name is taken."""
        if name in self._wanted:
            raise UserError(f"there is a camera called {name}: choose another name, or remove that one first")
        if name in self.plan.camera_settings:
            raise UserError(f"the camera {name} is still on its way out: try again in a moment")
        if twin := twin_of(name, {*self._wanted, *self.plan.camera_settings}):
            form = ascii_form(name)
            raise UserError(f"the camera {twin} has the ASCII form `{form}` of {name} already: choose another name")
        self.problems.pop(name, None)
        self._wanted[name] = values
        self._note_live(name, live=live)

    def remove(self, name: str) -> None:
        """One camera less. Raises UserError where there is none of this name, or no other."""
        self._require(name)
        if len(self._wanted) == 1:
            raise UserError(f"{name} is the only camera: `camgraph stop` ends the run")
        del self._wanted[name]
        self.problems.pop(name, None)
        self.paused.discard(name)

    def pause(self, name: str, *, paused: bool) -> None:
        """Let a camera rest, or go on. Raises UserError where there is none of this name."""
        self._require(name)
        (self.paused.add if paused else self.paused.discard)(name)
        source = self._fleet.source_of(name)
        if source:
            self._tell_paused(source)

    def want(self, cameras: Mapping[str, Mapping[str, Any]], live: Collection[str]) -> None:
        """Exactly these cameras; `live`: which of them never wait."""
        self._wanted = dict(cameras)
        self._live = set(live)
        self.paused.intersection_update(self._wanted)
        self.problems = {camera: why for camera, why in self.problems.items() if camera not in self._wanted}

    def keep_secret(self, values: Iterable[str]) -> None:
        """Values that nobody may see, here and in the processes that get them."""
        hide(values := tuple(values))
        self.plan = replace(self.plan, secrets=tuple(sorted({*self.plan.secrets, *values})))

    def adopt(self, plan: RunPlan) -> None:
        """Take on how long things may take, and what a further camera has by itself."""
        self.plan = replace(
            self.plan,
            hang_s=plan.hang_s,
            open_s=plan.open_s,
            drain_s=plan.drain_s,
            camera_defaults=plan.camera_defaults,
        )

    def restart(self, stages: Mapping[str, StagePlan]) -> list[str]:
        """Let the processes of these stages, whose settings are others than before, begin anew; their names."""
        self.refused.clear()
        self.plan, self._origin = with_stages(self.plan, stages), with_stages(self._origin, stages)
        return self._fleet.replace(self.plan)

    def stays(self, unit: UnitPlan, why: str) -> None:
        """The stages of this unit keep the settings that they have in it: others have been refused."""
        self.refused[unit.name] = why
        stages = {stage.name: stage for stage in unit.stages}
        self.plan, self._origin = with_stages(self.plan, stages), with_stages(self._origin, stages)
        self._fleet.replace(self.plan)

    def _require(self, name: str) -> None:
        if name not in self._wanted:
            known = ", ".join(sorted(self._wanted))
            raise UserError(f"no camera called {name}; there are: {known}{did_you_mean(name, self._wanted)}")

    def _note_live(self, name: str, *, live: bool) -> None:
        (self._live.add if live else self._live.discard)(name)

    # ---- step by step

    def turn(self, *, stopping: bool) -> None:
        """To be called often. While the run is `stopping` nothing new begins, but what has begun comes to its end."""
        if self._under_way:
            if self._fleet.all_revised:
                self._settle()
            return
        self._fleet.start_new()
        if stopping:  # what has not begun to change stays as it is
            here, leaving = self.plan.camera_settings, self._asked_to_leave
            self._wanted = {name: values for name, values in here.items() if name not in leaving}
        if self.differs:
            self._go_on()

    def _go_on(self) -> None:
        leaving = self.leaving
        for camera in leaving:
            self._see_off(camera)
        here = self.plan.camera_settings
        left = {camera for camera in leaving if self._has_left(camera)}
        self._joining = tuple(name for name in self._wanted if name not in here)
        if left or self._joining or self.plan.expects_more:
            cameras = {name: values for name, values in here.items() if name not in left}
            self._revise({**cameras, **{name: self._wanted[name] for name in self._joining}})

    def _see_off(self, camera: str) -> None:
        """Ask its source for its last word, each incarnation once.

        One that has not begun with the camera hears it before it is told to start, and leaves the camera alone.
        """
        source = self._fleet.source_of(camera)
        if source is None or self._asked_to_leave.get(camera) == source.incarnation:
            return
        self._asked_to_leave[camera] = source.incarnation
        if source.channel:
            source.channel.send("remove", camera=camera)
        elif set(source.plan.cameras) <= set(self.leaving):
            source.hurry()  # it keeps dying, but the next one has nothing to do that it could die of

    def _has_left(self, camera: str) -> bool:
        """True when all that was made of it is done, everywhere."""
        source = self._fleet.source_of(camera)
        return source is None or not source.life.ready_at or camera in source.ended

    def _revise(self, cameras: Mapping[str, Mapping[str, Any]]) -> None:
        self._under_way = True
        plan = with_cameras(self.plan, cameras, self._live, origin=self._origin)
        self.plan = expecting(plan, more=not self._wanted.keys() <= cameras.keys())
        self._fleet.revise(self.plan)

    def _settle(self) -> None:
        """All that live have the plan: those that are new to it may come, and those that are not in it may go."""
        here = self.plan.camera_settings
        unwanted = {camera for camera in self._joining if self._wanted.get(camera) != here[camera]}
        self._asked_to_leave = {camera: n for camera, n in self._asked_to_leave.items() if camera in here}
        self._joining = ()
        if unwanted:  # nothing of them has begun, and not all may know them
            self._revise({name: values for name, values in here.items() if name not in unwanted})
            return
        self._under_way = False
        self._fleet.settle()
        for source in self._fleet.processes:
            self.greet(source)
        self._fleet.start_sources()

    # ---- what processes say

    def revised(self, report: Revised) -> None:
        """A process has the plan, or no memory for it: then those that were to come do not."""
        if not report.problem:
            return
        for camera in self._joining:
            if self._wanted.pop(camera, None) is not None:
                self.problems[camera] = report.problem
                self._log.error("camera_not_taken_in", camera=camera, why=report.problem)

    def greet(self, source: Process) -> None:
        """Before the sources of a process start, it hears which of them are to rest."""
        if source.plan.sources and self.paused.intersection(source.plan.cameras):
            self._tell_paused(source)

    def _tell_paused(self, source: Process) -> None:
        if source.channel:
            source.channel.send("pause", cameras=sorted(self.paused.intersection(source.plan.cameras)))


def same_structure(before: RunPlan, after: RunPlan) -> bool:
    """Whether the stages of two plans are the same, and how they are joined and placed; their settings may differ."""
    return _structure(before) == _structure(after)


@dataclass(frozen=True, slots=True)
class _Structure:
    """All of a plan but cameras, settings of stages, and the depths that were counted for the cameras.

    `stages`: (name, use) of each group's stages. `edges`: with a depth of 1.
    """

    in_process: bool
    groups: tuple[GroupPlan, ...]
    stages: tuple[tuple[tuple[str, str], ...], ...]
    edges: frozenset[EdgePlan]
    event_filters: Mapping[str, tuple[str, ...]]
    ordered_sinks: tuple[str, ...]


def _structure(plan: RunPlan) -> _Structure:
    units = {unit.name: unit for unit in plan.units}
    return _Structure(
        plan.in_process,
        tuple(replace(group, units=()) for group in plan.groups),
        tuple(tuple((stage.name, stage.use) for stage in units[group.units[0]].stages) for group in plan.groups),
        frozenset(replace(edge, depth=1) for unit in plan.units for edge in unit.edges),
        dict(plan.event_filters),
        plan.ordered_sinks,
    )
