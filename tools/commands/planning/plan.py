"""The plan of a graph: its trial on this machine, and what that says about more cameras."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from camgraph.pipeline.errors import GraphError, UserError
from camgraph.pipeline.graph import Graph, load_graph, plan_of
from camgraph.pipeline.graph.shared_memory import free_shared_memory
from camgraph.pipeline.outbox.outbox_folder import outbox_folder
from camgraph.pipeline.system.cores import usable_cores
from camgraph.pipeline.system.found_runs import found_runs
from camgraph.pipeline.system.machine_memory import usable_memory
from camgraph.tools.commands.planning.arithmetic import (
    RESERVE,
    Costs,
    Machine,
    Most,
    Need,
    fps_that_fits,
    most_cameras,
    need_of,
)
from camgraph.tools.commands.planning.costs import costs_of
from camgraph.tools.commands.planning.trial_graph import (
    amend_for_trial,
    copies_of,
    recorded_fps,
    require_plannable,
    sample_of,
    sinks_of,
)
from camgraph.tools.commands.planning.trial_run import Span, own_state, trial_name, try_out
from camgraph.tools.commands.run_command import require_room
from camgraph.tools.commands.watching.picture_size import with_picture_sizes

_MEMINFO = Path("/proc/meminfo")
_CHEAPER = 0.5
"""The rate of the second answer, as a share of the cameras' own."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The command line. `cameras`: None for those of the graph; `max_fps`: None for the cameras' own rate."""

    graph: Path
    environ: Mapping[str, str]
    cameras: int | None = None
    max_fps: float | None = None
    sample: int = 8
    seconds: float = 10.0


@dataclass(frozen=True, slots=True)
class Planned:
    """A graph on this machine.

    `need`: of `cameras` cameras. `most`: how many there may be; `slower_fps` and `most_slower`: how many with fewer
    frames; `fitting_fps`: the rate at which `cameras` fit, if they do not at their own. `lost`: the share of the
    frames that the trial dropped or did not read in time.
    """

    graph: str
    cameras: int
    machine: Machine
    costs: Costs
    need: Need
    most: Most
    slower_fps: float
    most_slower: Most
    fitting_fps: float
    tried: Sequence[str]
    absent: Mapping[str, str]
    seconds: float
    other_cores: float
    lost: float
    left_out: Mapping[str, str]
    """Sink -> its kind."""
    reserve: float = RESERVE

    @property
    def fits(self) -> bool:
        return self.most.cameras >= self.cameras

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return {**asdict(self), "fits": self.fits, "fps": self.costs.read_fps}


def plan_graph(asked: Asked, show: Callable[[str], None]) -> Planned:
    """Try the graph out, for about half a minute. Raises GraphError, UserError or EnvironmentProblem."""
    graph = load_graph(asked.graph, environ=asked.environ)
    require_plannable(graph)
    _refuse_beside(graph.name)
    tried = sample_of(list(graph.cameras), asked.sample)
    with own_state():
        trial_graph = _trial_graph(graph, asked, tried)
        require_room(trial_graph)
        plan = replace(with_picture_sizes(plan_of(trial_graph), show), file="")
        machine = machine_now()
        trial = try_out(plan, asked.seconds, show)
    rates = {name: recorded_fps(camera, graph.base_folder) for name, camera in trial_graph.cameras.items()}
    recorded = {name: fps for name, fps in rates.items() if fps}
    costs = costs_of(plan, trial, recorded, has_outbox=outbox_folder(plan_of(graph)) is not None)
    cameras = asked.cameras or len(graph.cameras)
    slower_fps = _CHEAPER * costs.read_fps
    return Planned(
        graph=str(asked.graph),
        cameras=cameras,
        machine=machine,
        costs=costs,
        need=need_of(costs, cameras),
        most=most_cameras(costs, machine),
        slower_fps=slower_fps,
        most_slower=most_cameras(costs, machine, slower_fps),
        fitting_fps=fps_that_fits(costs, machine, cameras),
        tried=tried,
        absent={name: why for name, why in trial.absent.items() if name in tried},
        seconds=asked.seconds,
        other_cores=trial.loaded.other_cores if usable_cores() == os.cpu_count() else 0.0,
        lost=_lost(trial.loaded, recorded, trial.absent),
        left_out={name: node.entry.use for name, node in sinks_of(graph).items()},
    )


def _trial_graph(graph: Graph, asked: Asked, tried: Sequence[str]) -> Graph:
    def loaded(copies: Mapping[str, str]) -> Graph:
        cameras = {**{name: name for name in tried}, **copies}
        amend, known = amend_for_trial(graph, cameras, asked.max_fps), (*graph.cameras, *copies)
        return load_graph(asked.graph, name=trial_name(), environ=asked.environ, further=known, amend=amend)

    try:
        return loaded(copies_of(graph, tried, asked.sample))
    except GraphError:  # a stage may take no camera but those that it names
        return loaded({})


def machine_now() -> Machine:
    """What this graph may have here: all cores, and the memory that is free."""
    whole, free = usable_memory(), _free_memory()
    known = [size for size in (whole, free) if size is not None]
    return Machine(usable_cores(), min(known, default=0), free_shared_memory())


def _free_memory() -> int | None:
    """Bytes that programs can still get, of the whole machine; None if the system does not say."""
    try:
        lines = _MEMINFO.read_text().splitlines()
    except OSError:
        return None
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")), None)


def _refuse_beside(name: str) -> None:
    """Raises UserError if the graph is running: it takes the time that would be measured, and maybe the cameras."""
    run = next((run for run in found_runs() if run.name == name), None)
    if run:
        raise UserError(
            f"a run called {name} is going on ({run.where}): a plan would measure what that leaves. Stop it first "
            f"(camgraph stop --name {name}), or see how it does (camgraph status --name {name})",
            error_id="run-name-taken",
        )


def _lost(span: Span, recorded: Mapping[str, float], absent: Collection[str]) -> float:
    """The share of the frames that were dropped, or that files did not bring in time."""
    brought = {name: n for name, n in span.frames.items() if name not in absent}
    due = sum(max(n, recorded.get(name, 0.0) * span.seconds) for name, n in brought.items())
    return max(0.0, 1 - (sum(brought.values()) - span.drops) / due) if due else 0.0
