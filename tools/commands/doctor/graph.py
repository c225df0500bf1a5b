"""Whether a graph fits this machine: its limits of GPU memory into the GPUs, its clips onto their disks.

each stage `infer` on CUDA: gpu_mem_limit x sizes of batches, in each of its processes ──> sum for each GPU
                                                                                           against nvidia-smi
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from camgraph.pipeline.errors import CamgraphError
from camgraph.pipeline.graph import Graph, load_graph, plan_of
from camgraph.pipeline.graph.env_file import Variables
from camgraph.pipeline.plan import RunPlan, StagePlan
from camgraph.pipeline.system.disk import why_no_links
from camgraph.stages.people.inference.engines.devices import device_of
from camgraph.stages.people.inference.engines.host_runs import MOST_SESSIONS
from camgraph.stages.people.inference.engines.options import records
from camgraph.stages.people.inference.infer_settings import InferSettings
from camgraph.stages.vision.run_sizes import buckets
from camgraph.tools.commands.doctor.notice import Notice
from camgraph.tools.measuring.nvidia_smi import Gpu

_MIB = re.compile(r"(\d+) MiB")
_CURE = "set a smaller `gpu_mem_limit`, a smaller `batch: {max}`, fewer `batch_sizes` or fewer `workers`"

_NOT_THERE = "name a GPU that is there in `devices` or `device_id`; numbers begin with 0"


class Share(NamedTuple):
    """The memory that one process may take of GPU `device` for one stage; `limit_bytes` 0 if nothing limits it."""

    stage: str
    device: int
    limit_bytes: int
    sessions: int


def look_at_graph(graph_file: Path, gpus: Sequence[Gpu], env_files: Sequence[Path] = ()) -> Iterator[Notice]:
    """A finding for each GPU that the graph names, and for each folder of clips."""
    try:
        graph = load_graph(graph_file, environ=Variables(env_files).anew()[0])
        plan = plan_of(graph)
    except CamgraphError as error:
        yield Notice("wrong", "graph", str(error), f"camgraph check {graph_file}")
        return
    yield from limits_against(shares_of(plan), gpus)
    yield from map(_about_links, _clip_folders(graph))


def _clip_folders(graph: Graph) -> Iterator[Path]:
    for node in graph.completed.nodes:
        if node.stage is not None and node.entry.use == "sink_footage" and node.settings.wants_clips:
            yield from node.stage.written_folders(node.settings, graph.base_folder)


def _about_links(folder: Path) -> Notice:
    """Incidents that share a clip need hard links."""
    why = why_no_links(folder)
    if not why:
        return Notice("ok", "clips", f"{folder}: incidents can share a clip")
    found = f"{folder}: no hard links ({why}): incidents that share a clip each take its room on the disk"
    return Notice("warning", "clips", found, "put `path` of `sink_footage` on a disk such as ext4, XFS or NTFS")


def shares_of(plan: RunPlan) -> Iterator[Share]:
    """Of all processes of a run that may have a model on CUDA."""
    for process in plan.processes:
        for stage in process.stages:
            if stage.use == "infer" and (share := _share(stage, process.worker)):
                yield share


def _share(stage: StagePlan, worker: int) -> Share | None:
    settings = InferSettings.model_validate(stage.settings)
    if settings.server or not {"cuda", "auto"}.intersection(settings.providers):
        return None
    own = settings.options.cuda
    device = device_of(settings.devices, worker)
    return Share(
        stage.name,
        own.device_id or 0 if device is None else device,
        own.gpu_mem_limit or 0,
        _sessions(settings, stage.batch_max),
    )


def _sessions(settings: InferSettings, batch_max: int) -> int:
    """At most: a model of one fixed batch has a single one."""
    if records("cuda", settings.options.of("cuda", Path())):
        return 1
    return min(MOST_SESSIONS, len(settings.batch_sizes or buckets(min(batch_max, settings.max_rows))))


def limits_against(shares: Iterable[Share], gpus: Sequence[Gpu]) -> Iterator[Notice]:
    """``gpus``: in the order of their numbers."""
    by_device: defaultdict[int, list[Share]] = defaultdict(list)
    for share in shares:
        by_device[share.device].append(share)
    for device, own in sorted(by_device.items()):
        what = f"memory of GPU {device}"
        if gpus and device >= len(gpus):
            names = ", ".join(sorted({share.stage for share in own}))
            seen = "GPU 0 alone" if len(gpus) == 1 else f"GPUs 0 to {len(gpus) - 1}"
            yield Notice("warning", what, f"{names}: is to run there, and nvidia-smi sees {seen}", _NOT_THERE)
            continue
        found = _MIB.fullmatch(gpus[device].total) if gpus else None
        there = int(found[1]) << 20 if found else None
        if unlimited := {share.stage for share in own if not share.limit_bytes}:
            names = ", ".join(sorted(unlimited))
            yield Notice("ok", what, f"{names}: no `gpu_mem_limit`, so ONNX Runtime takes as much as it needs")
        else:
            yield _compared(what, own, there)


def _compared(what: str, shares: Sequence[Share], there: int | None) -> Notice:
    """Compare the sum with the GPU's memory. Contexts, inputs and outputs need an unknown amount more."""
    together = sum(share.limit_bytes * share.sessions for share in shares)
    sessions = sum(share.sessions for share in shares)
    processes = "1 process" if len(shares) == 1 else f"{len(shares)} processes"
    message = f"limits of {together / 1e6:,.0f} MB together ({sessions} sizes of batches in {processes})"
    if there is None:
        return Notice(
            "warning", what, f"{message}, and nvidia-smi does not say how much it has", "look with nvidia-smi"
        )
    if together > there:
        return Notice("warning", what, f"{message}, but it has {there / 1e6:,.0f}: they do not protect it", _CURE)
    return Notice("ok", what, f"{message}, and it has {there / 1e6:,.0f}")
