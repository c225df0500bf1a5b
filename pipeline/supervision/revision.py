"""The plan of a run with other cameras than before.

    groups, with their processes' cameras --stay, or least loaded--> homes --> processes, routes, senders

A camera stays with its processes; a new one goes, in each group, to the process with the fewest cameras. Windows
and depths stay as they are: they were counted for the cameras at the start, and running processes cannot change them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from camgraph.pipeline.plan import EVERY_CAMERA, EdgePlan, GroupPlan, ProcessPlan, RunPlan, StagePlan, priorities_of
from camgraph.pipeline.system.names import ascii_form

Homes = dict[str, tuple[str, ...]]
"""Process -> its cameras."""


def with_cameras(
    plan: RunPlan, cameras: Mapping[str, Mapping[str, Any]], live: Collection[str], *, origin: RunPlan | None = None
) -> RunPlan:
    """Return the plan for these cameras (name -> settings); `live`: the live ones among them.

    `origin`: a plan of the same stages in which every group has a process; needed if `plan` has no cameras.
    """
    processes = {process.name: process for process in plan.processes}
    models = _models(origin or plan)
    dealt = {group.name: _deal(group, processes, list(cameras)) for group in plan.groups}
    homes_of = {stage.name: dealt[group] for group, process in models.items() for stage in process.stages}
    return replace(
        plan,
        processes=tuple(
            replace(
                _process(processes.get(name, models[group.name]), name, own, homes_of),
                priorities=priorities_of(own, cameras),
                run_cameras=tuple(cameras) if own == (EVERY_CAMERA,) else (),
                live=any(camera in live for camera in own),
            )
            for group in plan.groups
            for name, own in dealt[group.name].items()
        ),
        groups=tuple(replace(group, processes=tuple(dealt[group.name])) for group in plan.groups),
        camera_settings=dict(cameras),
        live_cameras=tuple(name for name in cameras if name in live),
    )


def expecting(plan: RunPlan, *, more: bool) -> RunPlan:
    """Return the plan in which the outbox knows whether `more` cameras are about to come."""
    return replace(
        plan,
        processes=tuple(
            replace(process, expects_more=more) if any(stage.use == "outbox" for stage in process.stages) else process
            for process in plan.processes
        ),
    )


def with_stages(plan: RunPlan, stages: Mapping[str, StagePlan]) -> RunPlan:
    """Return the plan with these stages in place of those of the same name."""
    return replace(
        plan,
        processes=tuple(
            replace(process, stages=tuple(stages.get(stage.name, stage) for stage in process.stages))
            for process in plan.processes
        ),
    )


def _models(plan: RunPlan) -> dict[str, ProcessPlan]:
    """Group -> one of its processes."""
    processes = {process.name: process for process in plan.processes}
    return {group.name: processes[group.processes[0]] for group in plan.groups}


def _deal(group: GroupPlan, processes: Mapping[str, ProcessPlan], cameras: list[str]) -> Homes:
    """Distribute the cameras over the processes of one group."""
    if not (group.workers or group.cameras):
        return {name: processes[name].cameras for name in group.processes}
    homes = {name: [camera for camera in processes[name].cameras if camera in cameras] for name in group.processes}
    placed = {camera for own in homes.values() for camera in own}
    for camera in [camera for camera in cameras if camera not in placed]:
        homes.setdefault(_home(group, homes, camera), []).append(camera)
    # A worker without cameras waits for one; the process of a source has nothing to wait for.
    return {name: tuple(own) for name, own in homes.items() if own or not group.cameras}


def _home(group: GroupPlan, homes: Mapping[str, list[str]], camera: str) -> str:
    """Choose the process of a new camera: the emptiest that has room, or a new one."""
    if group.cameras == 1:
        return f"{group.name}.{ascii_form(camera)}"
    fresh = next(f"{group.name}.{n}" for n in range(len(homes) + 1) if f"{group.name}.{n}" not in homes)
    if group.cameras:
        open_to_more = [name for name, own in homes.items() if len(own) < group.cameras]
    else:
        open_to_more = list(homes) if len(homes) >= group.workers else []
    return min(open_to_more, key=lambda name: len(homes[name]), default=fresh)


def _process(template: ProcessPlan, name: str, cameras: tuple[str, ...], homes_of: Mapping[str, Homes]) -> ProcessPlan:
    return replace(
        template,
        name=name,
        cameras=cameras,
        routes={
            edge.name: template.routes[edge.name]
            if EVERY_CAMERA in template.routes[edge.name]
            else _routes(edge, cameras, homes_of)
            for edge in template.outgoing
        },
        senders={edge.name: tuple(homes_of[edge.sender]) for edge in template.incoming},
    )


def _routes(edge: EdgePlan, cameras: tuple[str, ...], homes_of: Mapping[str, Homes]) -> dict[str, str]:
    readers = homes_of[edge.reader]
    return {camera: next(process for process, own in readers.items() if camera in own) for camera in cameras}
