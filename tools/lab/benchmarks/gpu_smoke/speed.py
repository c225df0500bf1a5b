"""Steps that time a model: by batch and threads, folded, in turn, with pinned memory, as CUDA graphs, beside others."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from camgraph.tools.lab.benchmarks.gpu_smoke.open_model import CANDIDATES, Runs, check_same, rate, seconds_a_run
from camgraph.tools.lab.benchmarks.gpu_smoke.task import Bench, Failed

if TYPE_CHECKING:
    from camgraph.pipeline.stage import Stage
    from camgraph.stages.messages import Tensor

_ROUNDS = 5

_NO_DEARER = 2.0
"""For pictures of few pixels, a few more nodes may cost more than their bytes save."""

_TIMES_SLOWER = 5

_BINDING_NO_SLOWER = 0.5
"""The least rate, as a part of a plain run's: a step is short, and the machine has other work."""

_FOLDS: Mapping[str, Mapping[str, Any]] = {
    "as it is": {"fold": "never"},
    "pixels folded": {},
    "folded": {"candidates": CANDIDATES},
    "folded, CUDA graphs": {"candidates": CANDIDATES, "cuda": {"enable_cuda_graph": True}},
}
"""Settings of `infer`; `cuda`: options of the provider."""


def rates(bench: Bench) -> str:
    """Frames a second and processor time of a frame, by batches and threads: two threads are faster than one."""
    found = bench.figures.setdefault("ways", [])
    for batch in (1, 8, 32):
        for threads in (1, 2):
            found.append({"batch": batch, "threads": threads, **rate(bench, batch, threads)})
    best = max(found, key=lambda one: float(one["fps"]))
    return "; ".join(f"{o['batch']} x {o['threads']}: {o['fps']:.0f}/s, {o['cpu_ms']:.2f} ms" for o in found) + (
        f"; best {best['fps']:.0f}/s"
    )


def folding(bench: Bench) -> str:
    """The stage itself, from pictures to outputs: with pixels and selection folded a frame costs less of the CPU."""
    found: dict[str, dict[str, float]] = bench.figures.setdefault("cpu_ms", {})
    with ExitStack() as stages:
        ways = {name: stages.enter_context(_infer(bench, settings)) for name, settings in _FOLDS.items()}
        for batch in (1, 8):
            items = _tensors(bench, batch)
            looks: dict[str, list[float]] = {name: [] for name in ways}
            for _ in range(_ROUNDS):  # in turn, so that what else the machine does hits all
                for name, stage in ways.items():
                    looks[name].append(_cpu_ms(stage, items, bench.task.seconds / _ROUNDS))
            found[str(batch)] = {name: median(values) for name, values in looks.items()}
    message = "; ".join(
        f"batches of {batch}: " + ", ".join(f"{name} {ms:.2f} ms" for name, ms in of.items())
        for batch, of in found.items()
    )
    if any(of["folded"] > _NO_DEARER * of["as it is"] for of in found.values()):
        raise Failed(message)
    return message


def _infer(bench: Bench, ways: Mapping[str, Any]) -> AbstractContextManager[Stage[Any]]:
    from camgraph.pipeline.single_stage import opened  # noqa: PLC0415
    from camgraph.stages.people.infer import Infer  # noqa: PLC0415

    rest = dict(ways)
    cuda = {"device_id": bench.task.device, **rest.pop("cuda", {})}
    settings = {"model": bench.task.model, "providers": ["cuda"], "options": {"cuda": cuda}, **rest}
    return opened(Infer, settings, folder=bench.folder, stage="infer", batch_max=8)


def _tensors(bench: Bench, count: int) -> list[Tensor]:
    """Pictures of noise, as `preprocess` hands them on."""
    from camgraph.pipeline.single_stage import stamp  # noqa: PLC0415
    from camgraph.stages.messages import Tensor  # noqa: PLC0415
    from camgraph.tools.models.declaration import DeclaredModel  # noqa: PLC0415

    contract = DeclaredModel(Path(bench.task.model)).contract()
    width, height = size = contract.width or 640, contract.height or 640
    noise = np.random.default_rng(0).integers(0, 256, (count, 1, height, width, 3), dtype=np.uint8)
    fit = np.array([[1, 1, 0, 0]], np.float32)
    return [Tensor(stamp(number), {"image": picture}, fit, size, size) for number, picture in enumerate(noise)]


def _cpu_ms(stage: Stage[Any], items: Sequence[Tensor], seconds: float) -> float:
    """Milliseconds of this process's processor time for a frame."""
    for _ in range(3):
        list(stage.process(items))
    frames, cpu_s, end = 0, time.process_time(), time.monotonic() + seconds
    while not frames or time.monotonic() < end:
        list(stage.process(items))
        frames += len(items)
    return 1000 * (time.process_time() - cpu_s) / frames


def alternating(bench: Bench) -> str:
    """Batches of two sizes in turn are as fast as each by itself: nothing is planned anew for each."""
    runs = Runs(bench, ("cuda",))
    sizes = (1, 8)
    for rows in (*sizes, *sizes):
        runs.run(rows)
    steady = sum(seconds_a_run(bench, partial(runs.run, rows)) for rows in sizes)
    turns = seconds_a_run(bench, lambda: [runs.run(rows) for rows in sizes])
    bench.figures |= {"one_after_the_other_s": steady, "in_turn_s": turns}
    message = f"batches of 1 and 8: {turns * 1000:.1f} ms in turn, {steady * 1000:.1f} ms by themselves"
    if turns > _TIMES_SLOWER * steady:
        raise Failed(message)
    return message


def binding(bench: Bench) -> str:
    """Pinned batches and outputs give what a plain run gives, and are no slower; beside them, copies by hand."""
    from camgraph.stages.people.inference.engines.bindings import BoundSet, Place  # noqa: PLC0415

    runs = Runs(bench, ("cuda",))
    session, pinned = runs.engine._session, dict(runs.inputs(8))  # type: ignore[attr-defined]
    plain = {name: np.array(array) for name, array in pinned.items()}
    names = [port.name for port in runs.engine.signature.outputs]
    by_hand = BoundSet(session, plain, Place("cuda", bench.task.device))
    ways: dict[str, Callable[[], Mapping[str, Any]]] = {
        "pinned": lambda: runs.engine.run(pinned),
        "plain": lambda: dict(zip(names, session.run(names, plain), strict=True)),
        "by hand": lambda: by_hand.run(plain),
    }
    check_same(bench, *([call() for _ in range(3)][-1] for call in (ways["plain"], ways["pinned"])))
    rates = bench.figures.setdefault("fps", {way: 8 / seconds_a_run(bench, call) for way, call in ways.items()})
    message = "; ".join(f"{way}: {fps:.0f} frames/s" for way, fps in rates.items())
    if rates["pinned"] < _BINDING_NO_SLOWER * rates["plain"]:
        raise Failed(message)
    return message


def graphs(bench: Bench) -> str:
    """Recorded runs (CUDA graphs) give what plain ones give, and are no slower for single frames."""
    plain, recorded = rate(bench, 1, 1), rate(bench, 1, 1, enable_cuda_graph="1")
    bench.figures |= {"plain": plain, "recorded": recorded}
    ends = []
    for options in ({}, {"enable_cuda_graph": "1"}):
        runs = Runs(bench, ("cuda",), **options)
        ends.append([runs.run() for _ in range(3)][-1])
    worst = check_same(bench, *ends)
    return f"{recorded['fps']:.0f} against {plain['fps']:.0f} frames/s; outputs differ by {worst:.2g}"


def peers(bench: Bench) -> str:
    """camgraph beside a bare loop and others that are installed here, all on the GPU."""
    from camgraph.tools.models.declaration import DeclaredModel  # noqa: PLC0415

    contract = DeclaredModel(Path(bench.task.model)).contract()
    file = bench.folder / "peers.json"
    options = ["--size", str(contract.width or 640), str(contract.height or 640), "--count", "4", "--rounds", "1"]
    done = subprocess.run(  # noqa: S603 - our own program
        [
            *(sys.executable, "-P", "-m", "camgraph.tools.lab.benchmarks.peers"),
            *("--gpu", "--no-install", "--json", str(file)),
            *("--model", bench.task.model, "--clip", bench.task.clip, "--frames", str(8 * bench.task.frames), *options),
        ],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode or not file.exists():
        raise Failed(f"it ended with status {done.returncode}: {done.stderr[-500:]}")
    bench.figures["peers"] = json.loads(file.read_text())
    lines = [line for line in done.stdout.splitlines() if line.startswith("round ") or " is left out: " in line]
    message = "; ".join(line.removeprefix("round 1, 4 cameras, ") for line in lines)
    if not any(line.startswith("round 1, 4 cameras, camgraph") for line in lines):
        raise Failed(message or "nobody took part")
    return message
