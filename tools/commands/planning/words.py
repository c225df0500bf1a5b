"""A plan in words for people. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from camgraph.tools.commands.planning.arithmetic import CPU, MEMORY, SHARED_MEMORY, Most
from camgraph.tools.commands.planning.plan import Planned

_ENDS = {CPU: "the processor", MEMORY: "the memory", SHARED_MEMORY: SHARED_MEMORY}
_QUIET_CORES = 0.2
_KEPT_UP = 0.05
_SHOWN = 0.005
_MOST_NAMED = 5
_ENCODES = ("sink_video",)
_KEEPS_PACKETS = ("sink_footage",)


def in_words(plan: Planned) -> Iterator[str]:
    """Lines for people."""
    yield from _answer(plan)
    yield ""
    yield from _where_it_goes(plan)
    yield ""
    yield from _grounds(plan)


def _answer(plan: Planned) -> Iterator[str]:
    fps, cores = plan.costs.read_fps, plan.machine.cores
    yield (
        f"This graph: {_cameras(plan.cameras)} at {fps:.3g} frames a second need{'s' * (plan.cameras == 1)} "
        f"{plan.need.cores:.1f} of {cores} cores."
    )
    yield f"You can have {_such(plan.most)}"
    fitting_fps = math.floor(10 * plan.fitting_fps) / 10
    if not plan.fits and fitting_fps:
        yield f"All {plan.cameras} fit with `max_fps: {fitting_fps:g}`."
    elif plan.most_slower.cameras > plan.most.cameras:
        yield f"With `max_fps: {plan.slower_fps:.3g}` you can have {_such(plan.most_slower)}"
    yield (
        f"Memory: {_size(plan.need.memory_bytes)} of {_size(plan.machine.memory_bytes)}; "
        f"{SHARED_MEMORY}: {_size(plan.need.shared_bytes)} of {_size(plan.machine.shared_bytes)}."
    )


def _such(most: Most) -> str:
    if most.cameras == 0:
        return f"no such camera: {_end(most.resource)} is the limit already."
    such = "such camera" if most.cameras == 1 else "such cameras"
    return f"{most.cameras} {such}; then {_end(most.resource)} is the limit."


def _end(resource: str) -> str:
    return _ENDS.get(resource, f"the stage `{resource}`")


def _where_it_goes(plan: Planned) -> Iterator[str]:
    costs = plan.costs
    yield "Processor time of a frame, by process:"
    yield f"  reading the camera {1000 * costs.reading_s:.1f} ms"
    for group, seconds in sorted(costs.after_s.items(), key=lambda each: -each[1]):
        if 1000 * seconds >= _SHOWN:
            yield f"  {group} {1000 * seconds:.1f} ms"
    yield f"  and {sum(costs.fixed_cores.values()):.2f} cores, however many frames come"


def _grounds(plan: Planned) -> Iterator[str]:
    there = len(plan.tried) - len(plan.absent)
    names = _named([name for name in plan.tried if name not in plan.absent])
    yield f"Measured: {_cameras(there)} ({names}) for {plan.seconds:g} s, with your stages and models."
    for name, why in plan.absent.items():
        yield f"  {name} brought no picture ({why}): it is planned as if it were like the others"
    if plan.lost > _KEPT_UP:
        yield f"  {plan.lost:.0%} of the frames were too many for this machine, so the plan is less exact"
    if plan.other_cores > _QUIET_CORES:
        yield f"  other programs took {plan.other_cores:.1f} cores meanwhile: plan again when they are quiet"
    yield f"Assumed: more cameras are like these; other programs are quiet; {plan.reserve:.0%} of all is left free."
    yield from _left_out(plan.left_out)


def _left_out(sinks: Mapping[str, str]) -> Iterator[str]:
    if not sinks:
        return
    yield f"Nothing was sent or written: {_named(list(sinks))} got no events, and what that costs is not counted."
    encoding = [name for name, use in sinks.items() if use in _ENCODES]
    if encoding:
        yield f"  {_named(encoding)} encodes videos, which takes much of a processor: leave room for it"
    keeping = [name for name, use in sinks.items() if use in _KEEPS_PACKETS]
    if keeping:
        yield f"  {_named(keeping)} keeps the last seconds of each camera in memory: some MB a camera"


def _named(names: list[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more


def _cameras(count: int) -> str:
    return "1 camera" if count == 1 else f"{count} cameras"


def _size(count: float) -> str:
    return f"{count / 1e6:.0f} MB" if count < 0.95e9 else f"{count / 1e9:.1f} GB"
