"""Adds and removes cameras and changes settings of stages while a run goes on, one step after the other.

    a camera goes     its source sends its end --done--> plan without it --all have it--> its process ends
    a camera comes    plan with it --all have it--> its source starts
    new settings      of a camera: it goes, and comes again; of a stage: its processes close and restart

The wanted cameras are kept apart from the present ones. The difference between the two decides the next step, whatever
dies meanwhile. A camera whose source was asked to end goes in any case, even if it is wanted again meanwhile.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from camgraph.pipeline.errors import UserError
from camgraph.pipeline.monitoring.reports import Revised
from camgraph.pipeline.plan import EdgePlan, GroupPlan, ProcessPlan, RunPlan, StagePlan
from camgraph.pipeline.stage import Logger
from camgraph.pipeline.supervision.fleet import Fleet, Replaced
from camgraph.pipeline.supervision.process import Process
from camgraph.pipeline.supervision.revision import expecting, with_cameras, with_stages
from camgraph.pipeline.system.names import ascii_form, twin_of
from camgraph.pipeline.system.redaction import hide
from camgraph.pipeline.system.spelling import did_you_mean


class Membership:
    """The cameras and stages of a run as they are (`plan`), and as they are wanted. `turn` goes one step further.

    `source`: the kind of the source stage. `paused`: the paused cameras. `problems`: camera -> why it was refused.
    `refused`: process -> why it did not open with the new settings of the last `restart`.
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
        """Camera -> its wanted settings."""
        return self._wanted

    @property
    def live(self) -> Collection[str]:
        """The live cameras."""
        return self._live

    @property
    def joining(self) -> Collection[str]:
        """Cameras that some processes do not know yet: their sources must not start."""
        return self._joining

    @property
    def busy(self) -> bool:
        """True while the present cameras differ from the wanted ones, or a change is unfinished."""
        return self.differs or self._under_way or bool(self.coming) or self._fleet.changing

    @property
    def differs(self) -> bool:
        """True while a camera is missing, expected, or leaving."""
        as_wanted = self._wanted == self.plan.camera_settings and not self.plan.expects_more
        return not as_wanted or bool(self._asked_to_leave)

    @property
    def leaving(self) -> list[str]:
        """Cameras that are leaving, some of them to come again."""
        here = self.plan.camera_settings
        return [name for name in here if name in self._asked_to_leave or self._wanted.get(name) != here[name]]

    @property
    def coming(self) -> list[str]:
        """Wanted cameras whose source has not started yet."""
        begun = self.plan.camera_settings.keys() & self._fleet.begun_cameras() - set(self._joining)
        return [name for name in self._wanted if name not in begun]

    # ---- the wanted cameras and settings

    def add(self, name: str, values: Mapping[str, Any], *, live: bool) -> None:
        """Add a camera, whose settings have been checked. Raises UserError if its name is taken."""
        if name in self._wanted:
            raise UserError(
                f"there is a camera called {name}: choose another name, or remove that one first", error_id="name-taken"
            )
        if name in self.plan.camera_settings:
            raise UserError(f"the camera {name} is still being removed: try again in a moment", error_id="name-taken")
        if twin := twin_of(name, {*self._wanted, *self.plan.camera_settings}):
            form = ascii_form(name)
            raise UserError(
                f"the camera {twin} has the ASCII form `{form}` of {name} already: choose another name",
                error_id="name-taken",
            )
        self.problems.pop(name, None)
        self._wanted[name] = values
        self._note_live(name, live=live)

    def remove(self, name: str) -> None:
        """Remove a camera. Raises UserError if there is none of this name, or if it is the only one."""
        self._require(name)
        if len(self._wanted) == 1:
            raise UserError(f"{name} is the only camera: `camgraph stop` ends the run", error_id="camera-change")
        del self._wanted[name]
        self.problems.pop(name, None)
        self.paused.discard(name)

    def pause(self, name: str, *, paused: bool) -> None:
        """Pause or resume a camera. Raises UserError if there is none of this name."""
        self._require(name)
        (self.paused.add if paused else self.paused.discard)(name)
        source = self._fleet.source_of(name)
        if source:
            self._send_paused(source)

    def want(self, cameras: Mapping[str, Mapping[str, Any]], live: Collection[str]) -> None:
        """Want exactly these cameras; `live`: the live ones among them."""
        self._wanted = dict(cameras)
        self._live = set(live)
        self.paused.intersection_update(self._wanted)
        self.problems = {camera: why for camera, why in self.problems.items() if camera not in self._wanted}

    def keep_secret(self, values: Iterable[str]) -> None:
        """Hide these values, here and in the processes that get them."""
        hide(values := tuple(values))
        self.plan = replace(self.plan, secrets=tuple(sorted({*self.plan.secrets, *values})))

    def adopt(self, plan: RunPlan) -> None:
        """Take over the time limits of `plan`, and what its processes to come and further cameras get."""
        self.plan = replace(
            self.plan,
            hang_s=plan.hang_s,
            open_s=plan.open_s,
            drain_s=plan.drain_s,
            readable_by=plan.readable_by,
            camera_defaults=plan.camera_defaults,
        )

    def restart(self, stages: Mapping[str, StagePlan]) -> Replaced:
        """Give these stages, whose settings have changed, their new ones: most processes restart for that."""
        self.refused.clear()
        self.plan, self._origin = with_stages(self.plan, stages), with_stages(self._origin, stages)
        return self._fleet.replace(self.plan)

    def stays(self, process: ProcessPlan, why: str) -> None:
        """Keep the present settings of the stages of this process: the new ones were refused."""
        self.refused[process.name] = why
        stages = {stage.name: stage for stage in process.stages}
        self.plan, self._origin = with_stages(self.plan, stages), with_stages(self._origin, stages)
        self._fleet.replace(self.plan)

    def _require(self, name: str) -> None:
        if name not in self._wanted:
            known = ", ".join(sorted(self._wanted))
            raise UserError(
                f"no camera called {name}; there are: {known}{did_you_mean(name, self._wanted)}",
                error_id="name-unknown",
            )

    def _note_live(self, name: str, *, live: bool) -> None:
        (self._live.add if live else self._live.discard)(name)

    # ---- step by step

    def turn(self, *, stopping: bool) -> None:
        """Go one step further; call it often. If the run is `stopping`, begun changes finish but none starts."""
        if self._under_way:
            if self._fleet.all_revised:
                self._settle()
            return
        self._fleet.start_new()
        if stopping:  # changes that have not started are dropped
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
        """Ask the source of a camera to end it, once in each incarnation.

        If the source has not started the camera yet, it gets this order before the start, and leaves the camera alone.
        """
        source = self._fleet.source_of(camera)
        if source is None or self._asked_to_leave.get(camera) == source.incarnation:
            return
        self._asked_to_leave[camera] = source.incarnation
        if source.channel:
            source.channel.send("remove", camera=camera)
        elif set(source.plan.cameras) <= set(self.leaving):
            source.start_now()  # it keeps dying, but the next one has nothing to do that could kill it

    def _has_left(self, camera: str) -> bool:
        """True when everything made of the camera's frames is done, in all processes."""
        source = self._fleet.source_of(camera)
        return source is None or not source.life.ready_at or camera in source.ended

    def _revise(self, cameras: Mapping[str, Mapping[str, Any]]) -> None:
        self._under_way = True
        plan = with_cameras(self.plan, cameras, self._live, origin=self._origin)
        self.plan = expecting(plan, more=not self._wanted.keys() <= cameras.keys())
        self._fleet.revise(self.plan)

    def _settle(self) -> None:
        """All running processes have the plan: start those that are new in it, and close those that are not in it."""
        here = self.plan.camera_settings
        unwanted = {camera for camera in self._joining if self._wanted.get(camera) != here[camera]}
        self._asked_to_leave = {camera: n for camera, n in self._asked_to_leave.items() if camera in here}
        self._joining = ()
        if unwanted:  # these cameras have not started, and not all processes may know them
            self._revise({name: values for name, values in here.items() if name not in unwanted})
            return
        self._under_way = False
        self._fleet.apply_plan()
        for source in self._fleet.processes:
            self.tell_paused(source)
        self._fleet.start_sources()

    # ---- reports

    def revised(self, report: Revised) -> None:
        """A process has the plan, or lacks memory for it: then the new cameras are refused."""
        if not report.problem:
            return
        for camera in self._joining:
            if self._wanted.pop(camera, None) is not None:
                self.problems[camera] = report.problem
                self._log.error("camera_not_taken_in", camera=camera, why=report.problem)

    def tell_paused(self, source: Process) -> None:
        """Tell the sources of a process which cameras are paused, before they start."""
        if source.plan.sources and self.paused.intersection(source.plan.cameras):
            self._send_paused(source)

    def _send_paused(self, source: Process) -> None:
        if source.channel:
            source.channel.send("pause", cameras=sorted(self.paused.intersection(source.plan.cameras)))


def same_structure(before: RunPlan, after: RunPlan) -> bool:
    """Whether two plans have the same stages, connected and placed in the same way; their settings may differ."""
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
    processes = {process.name: process for process in plan.processes}
    return _Structure(
        plan.in_process,
        # How many files share a process by default depends on their number, which may change.
        tuple(replace(group, processes=(), cameras=0 if group.by_default else group.cameras) for group in plan.groups),
        tuple(
            tuple((stage.name, stage.use) for stage in processes[group.processes[0]].stages) for group in plan.groups
        ),
        frozenset(replace(edge, depth=1) for process in plan.processes for edge in process.edges),
        dict(plan.event_filters),
        plan.ordered_sinks,
    )
