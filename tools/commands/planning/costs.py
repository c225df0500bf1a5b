"""From the measurements of a trial to the costs of a camera. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from statistics import mean

from camgraph.pipeline.plan import RunPlan, StagePlan
from camgraph.tools.commands.planning.arithmetic import Costs, StageTime
from camgraph.tools.commands.planning.trial_run import Span, Trial
from camgraph.tools.measuring.processes import SUPERVISOR, Member

_ON_CPU = {"cpu"}
_LEAST_FPS = 1e-3
_LEAST_PART = 0.2
"""Two measurements whose rates differ less say nothing, and at least so much of a process's time is for the frames."""


def costs_of(plan: RunPlan, trial: Trial, recorded: Mapping[str, float], *, has_outbox: bool) -> Costs:
    """What a camera of this plan costs.

    ``recorded``: camera -> frames a second of its file, which it brings on a machine with enough time. ``has_outbox``:
    the graph has one, which the trial has not.
    """
    span = trial.loaded
    there = [name for name in plan.camera_settings if name not in trial.absent]
    frames = sum(span.frames.get(name, 0.0) for name in there)
    through = max(1.0, _through(span))
    loaded, fewer = _cores(span, plan), _cores(trial.fewer, plan)
    reading = _reading_groups(plan)
    rates = through / span.seconds, _through(trial.fewer) / trial.fewer.seconds
    after = {
        group: affine((rates[1], fewer.get(group, 0.0)), (rates[0], cores))
        for group, cores in loaded.items()
        if group not in reading
    }
    memory = _memory(trial, plan, reading, cameras=len(there), has_outbox=has_outbox)
    return Costs(
        read_fps=mean(recorded.get(name) or span.frames.get(name, 0.0) / span.seconds for name in there),
        reading_s=sum(loaded[group] for group in reading) * span.seconds / max(1.0, frames),
        after_s={group: slope for group, (slope, _) in after.items()},
        fixed_cores={group: fixed for group, (_, fixed) in after.items()},
        stages=_stages(plan, span, through, reading),
        camera_bytes=memory[0],
        fixed_bytes=memory[1],
        camera_shared_bytes=trial.memory.shm_bytes / len(there),
    )


def affine(less: tuple[float, float], more: tuple[float, float]) -> tuple[float, float]:
    """The line through two measurements (frames a second, cores): cores for a frame a second, and without any.

    Neither is negative: a machine that others disturb shows some that cannot be.
    """
    (few, few_cores), (many, many_cores) = less, more
    if many < _LEAST_FPS:
        return 0.0, many_cores
    slope = (many_cores - few_cores) / (many - few) if many - few > _LEAST_PART * many else many_cores / many
    slope = min(max(slope, _LEAST_PART * many_cores / many), many_cores / many)
    return slope, many_cores - slope * many


def _through(span: Span) -> float:
    """Frames that were read and not dropped."""
    return max(0.0, sum(span.frames.values()) - span.drops)


def _groups(plan: RunPlan) -> dict[str, str]:
    """Process -> its group; the supervisor is one of its own."""
    return {SUPERVISOR: SUPERVISOR, **{name: group.name for group in plan.groups for name in group.processes}}


def _cores(span: Span, plan: RunPlan) -> dict[str, float]:
    """Process group -> cores."""
    groups, found = _groups(plan), defaultdict[str, float](float)
    for process, seconds in span.cpu_s.items():
        found[groups.get(process, process)] += seconds / span.seconds
    return dict(found)


def _reading_groups(plan: RunPlan) -> set[str]:
    groups = _groups(plan)
    return {groups[process.name] for process in plan.processes if process.sources}


# ---- stages


def _stages(plan: RunPlan, span: Span, through: float, reading: Collection[str]) -> dict[str, StageTime]:
    """Of the stages that share their processes with no source: more cameras do not give them more processes."""
    groups = _groups(plan)
    found = {}
    for process in plan.processes:
        if groups[process.name] in reading:
            continue
        # Other programs make calls longer, but a stage that calculates here works no longer than its processor time.
        busy = {stage.name: span.busy_s.get(stage.name, 0.0) for stage in process.stages}
        used_s = _cores(span, plan)[groups[process.name]] * span.seconds
        part = min(1.0, used_s / sum(busy.values())) if sum(busy.values()) > 0 else 1.0
        on_cpu = all(map(_calculates_here, process.stages))
        for stage in process.stages:
            busy_s = busy[stage.name] * (part if on_cpu else 1.0)
            found[stage.name] = StageTime(busy_s / through, max(1, stage.threads) * max(1, stage.workers))
    return found


def _calculates_here(stage: StagePlan) -> bool:
    """False for a model on a GPU or on a server: its time is no time of the processor."""
    providers = stage.settings.get("providers") or ["cpu"]
    return not stage.settings.get("server") and providers != "auto" and set(providers) <= _ON_CPU


# ---- memory


def _memory(
    trial: Trial, plan: RunPlan, reading: Collection[str], *, cameras: int, has_outbox: bool
) -> tuple[float, float]:
    """Bytes of a camera without its shared memory, and of all else."""
    groups = _groups(plan)
    own: defaultdict[str, list[int]] = defaultdict(list)
    for member in trial.memory.living:
        own[groups.get(member.process, SUPERVISOR)].append(member.own_kb)
    camera_kb = sum(sum(own.pop(group, [])) for group in reading) / cameras
    smallest_kb = min((kb for group, each in own.items() if group != SUPERVISOR for kb in each), default=0)
    fixed_kb = sum(map(sum, own.values())) + smallest_kb * has_outbox
    return 1024 * camera_kb, 1024 * fixed_kb + _program_bytes(trial.memory.living, trial.memory.shm_bytes)


def _program_bytes(members: Collection[Member], shared_bytes: int) -> float:
    """Programs and libraries, which all processes have together."""
    return max(0.0, 1024.0 * sum(one.pss_kb - one.own_kb for one in members) - shared_bytes)
