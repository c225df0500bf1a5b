"""The steps, each run in a process of its own, with the task on stdin.

    python -m tools.benchmarks.gpu_smoke.steps NAME FOLDER

A step returns what it found, or raises Failed; figures that it has until then are kept.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from pipeline.stage import Stage
    from stages.inference.engines.engine import ProviderName
    from stages.messages import Tensor

_AT_LEAST_SAME = 0.95
"""Of the people that the CPU finds: the same on the GPU, and as many besides at most. TF32 moves scores a little."""
_FILES = 4
_ROUNDS = 5
_NO_DEARER = 2.0
"""For pictures of few pixels, a few more nodes may cost more than their bytes save."""
_TIMES_SLOWER = 5
_CANDIDATES = {"most": 1000, "min_score": 0.3}
"""As `decode` asks for them in a graph."""
_BINDING_NO_SLOWER = 0.5
"""Of the rate of a plain run: a step is short, and the machine has other work."""
_LEFT_MB = 300
"""So much of the GPU's memory may be missing in the end: other programs come and go."""
_MOST_ROWS = 1024
"""The largest `batch: {max}`."""
_IN_A_PROCESS = 16
"""Cameras that share a process, and with it a context of CUDA, where that is tried."""
_FOLDS: Mapping[str, Mapping[str, Any]] = {
    "as it is": {"fold": "never"},
    "pixels folded": {},
    "folded": {"candidates": _CANDIDATES},
    "folded, CUDA graphs": {"candidates": _CANDIDATES, "cuda": {"enable_cuda_graph": True}},
}
"""Settings of `infer`; `cuda`: options of the provider."""


class Failed(Exception):
    """What a step had to show did not show."""


@dataclass(frozen=True)
class Task:
    """What the steps are to try, and how long each measurement takes."""

    model: str
    clip: str
    seconds: float = 3.0
    frames: int = 40
    cameras: Sequence[int] = (16, 64)
    device: int = 0
    free_mb: float | None = None
    """Of the GPU's memory, before the other steps; None if nobody has looked."""


@dataclass
class Bench:
    """What a step works with: the task, an own folder, and a place for figures."""

    task: Task
    folder: Path
    figures: dict[str, Any] = field(default_factory=dict)

    def command(self, *arguments: str) -> str:
        """What `camgraph ...` prints. Raises Failed if it ends with another status than 0 or 1."""
        done = subprocess.run(  # noqa: S603 - our own program
            [sys.executable, "-P", "-m", "tools.cli", *arguments], capture_output=True, text=True, check=False
        )
        if done.returncode not in (0, 1, 3):
            raise Failed(f"camgraph {arguments[0]} ended with status {done.returncode}: {done.stderr[-500:]}")
        return done.stdout


class Step(NamedTuple):
    """`shows`: what a GPU must show in it; `limit_s`: the longest that it may take."""

    shows: str
    limit_s: float
    run: Callable[[Bench], str]


# ---- the machine


def libraries(bench: Bench) -> str:
    """CUDA's libraries load, and the GPU tells its memory."""
    import onnxruntime as ort  # noqa: PLC0415

    from stages.inference.engines.nvidia import cuda_runtime, why_no_cuda  # noqa: PLC0415

    bench.figures |= {"nvidia_smi": _nvidia_smi(), "onnxruntime": ort.__version__, "built_for": ort.cuda_version}
    if why := why_no_cuda():
        raise Failed(why)
    runtime = cuda_runtime(bench.task.device)
    memory = runtime.memory() if runtime else None
    if memory is None:
        raise Failed(f"GPU {bench.task.device} does not tell its memory")
    bench.figures["free_mb"], bench.figures["total_mb"] = (round(size / 1e6) for size in memory)
    return f"ONNX Runtime {ort.__version__} for CUDA {ort.cuda_version}; {memory[1] / 1e9:.1f} GB on the GPU"


def _nvidia_smi() -> str:
    command = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()  # noqa: S603
    except OSError as error:
        return f"not here: {error.strerror}"


def doctor(bench: Bench) -> str:
    """The doctor finds a provider `cuda` that runs a convolution."""
    found = {one["what"]: one for one in json.loads(bench.command("doctor", "--json"))}
    bench.figures["findings"] = [one for one in found.values() if one["state"] != "ok"]
    reported = found["provider cuda"]
    if reported["state"] != "ok" or "runs a model" not in reported["found"]:
        raise Failed(f"provider cuda: {reported['found']}")
    return f"cuda runs a model; decode: cuda: {found['decode: cuda']['found']}"


def doctor_after(bench: Bench) -> str:
    """As before the other steps: the GPU still runs a model, and nothing of them has stayed in its memory."""
    reported = doctor(bench)
    before, now = bench.task.free_mb, _free_mb(bench)
    bench.figures |= {"free_mb_before": before, "free_mb": now}
    if before is None:
        return f"{reported}; {now} MB free: step `libraries` was not run before"
    if now < before - _LEFT_MB:
        raise Failed(f"{before:.0f} MB of the GPU were free, and now {now}: look with nvidia-smi for whose they are")
    return f"{reported}; {now} MB free, {before:.0f} before"


def _free_mb(bench: Bench) -> int:
    from stages.inference.engines.nvidia import cuda_runtime, why_no_cuda  # noqa: PLC0415

    why = why_no_cuda()
    runtime = None if why else cuda_runtime(bench.task.device)
    memory = runtime.memory() if runtime else None
    if memory is None:
        raise Failed(why or f"GPU {bench.task.device} does not tell its memory")
    return round(memory[0] / 1e6)


# ---- one model


def placement(bench: Bench) -> str:
    """CUDA alone, without the CPU behind it, takes all nodes; first and later runs."""
    began = time.monotonic()
    runs = _Runs(bench, ("cuda",))
    opened_s = time.monotonic() - began
    shares = runs.engine.placement.shares()
    first_s, later_s = _timed(runs.run), _timed(runs.run)
    bench.figures |= {"shares": shares, "opened_s": opened_s, "first_run_s": first_s, "later_run_s": later_s}
    if shares != {"CUDAExecutionProvider": 1.0}:
        raise Failed(f"the nodes are on {shares}")
    return f"all nodes; opened in {opened_s:.1f} s, first run {first_s:.2f} s, later {later_s * 1000:.1f} ms"


def memcpy(bench: Bench) -> str:
    """No node copies between the GPU and the host in the middle of the model."""
    file = bench.folder / "profile.json"
    bench.command(
        "model", "profile", bench.task.model, "--providers", "cuda", "--runs", "5", "--seconds", "2",
        "--json", str(file), *_size(bench),
    )  # fmt: skip
    if not file.exists():
        raise Failed("there is no profile")
    copies = Counter(word for word in file.read_text().split('"') if word.startswith("Memcpy"))
    bench.figures["copies"] = dict(copies)
    if copies:
        raise Failed(f"nodes that copy: {dict(copies)}")
    return "none"


def people(bench: Bench) -> str:
    """The same people on the GPU as on the CPU."""
    return _same_people(bench, bench.task.model)


def prepared(bench: Bench) -> str:
    """The same people where pixels and suppression are in the model."""
    file = bench.folder / "prepared.onnx"
    bench.command("model", "prepare", bench.task.model, str(file), "--nms")
    if not file.exists():
        bench.command("model", "prepare", bench.task.model, str(file))
    if not file.exists():
        return "this model cannot be prepared: not tried"
    return _same_people(bench, str(file))


def fp16(bench: Bench) -> str:
    """The same people in half precision as in float on the CPU, and more of them a second."""
    file = bench.folder / "fp16.onnx"
    bench.command("model", "fp16", bench.task.model, str(file))
    if not file.exists():
        return "this model cannot be halved: not tried"
    halved = replace(bench, task=replace(bench.task, model=str(file)))
    bench.figures |= {"float": _rate(bench, 8, 2), "half": _rate(halved, 8, 2)}
    faster = bench.figures["half"]["fps"] / bench.figures["float"]["fps"]
    return f"{_same_people(bench, str(file), bench.task.model)}; batches of 8: {faster:.2f} of the rate in float"


def rates(bench: Bench) -> str:
    """Frames a second and processor time of a frame, by batches and threads: two threads are faster than one."""
    found = bench.figures.setdefault("ways", [])
    for batch in (1, 8, 32):
        for threads in (1, 2):
            found.append({"batch": batch, "threads": threads, **_rate(bench, batch, threads)})
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
    from pipeline.single_stage import opened  # noqa: PLC0415
    from stages.infer import Infer  # noqa: PLC0415

    all_rates = dict(ways)
    cuda = {"device_id": bench.task.device, **all_rates.pop("cuda", {})}
    settings = {"model": bench.task.model, "providers": ["cuda"], "options": {"cuda": cuda}, **all_rates}
    return opened(Infer, settings, folder=bench.folder, stage="infer", batch_max=8)


def _tensors(bench: Bench, count: int) -> list[Tensor]:
    """Pictures of noise, as `preprocess` hands them on."""
    from pipeline.single_stage import stamp  # noqa: PLC0415
    from stages.messages import Tensor  # noqa: PLC0415
    from tools.models.declaration import DeclaredModel  # noqa: PLC0415

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


def binding(bench: Bench) -> str:
    """Pinned batches and outputs give what a plain run gives, and are no slower; beside them, copies by hand."""
    from stages.inference.engines.bindings import BoundSet, Place  # noqa: PLC0415

    runs = _Runs(bench, ("cuda",))
    session, pinned = runs.engine._session, dict(runs.inputs(8))  # type: ignore[attr-defined]
    plain = {name: np.array(array) for name, array in pinned.items()}
    names = [port.name for port in runs.engine.signature.outputs]
    by_hand = BoundSet(session, plain, Place("cuda", bench.task.device))
    ways: dict[str, Callable[[], Mapping[str, Any]]] = {
        "pinned": lambda: runs.engine.run(pinned),
        "plain": lambda: dict(zip(names, session.run(names, plain), strict=True)),
        "by hand": lambda: by_hand.run(plain),
    }
    _check_same(bench, *([call() for _ in range(3)][-1] for call in (ways["plain"], ways["pinned"])))
    rates = bench.figures.setdefault("fps", {way: 8 / _seconds_a_run(bench, call) for way, call in ways.items()})
    message = "; ".join(f"{way}: {fps:.0f} frames/s" for way, fps in rates.items())
    if rates["pinned"] < _BINDING_NO_SLOWER * rates["plain"]:
        raise Failed(message)
    return message


def tensorrt(bench: Bench) -> str:
    """Engines are built for all sizes of batches, in a known time; the next start takes them from the cache."""
    cache = bench.folder / "engines"
    cache.mkdir()
    built_s = bench.figures["built_s"] = _timed(lambda: _build(bench, cache))
    if why := bench.figures.get("passed_over"):
        return f"TensorRT cannot be had: not tried ({why})"
    kept = sorted(file.name for file in cache.iterdir())
    again_s = bench.figures["again_s"] = _timed(lambda: _build(bench, cache))
    bench.figures["kept"] = kept
    message = f"built in {built_s:.0f} s, opened from the cache in {again_s:.1f} s; {len(kept)} files kept"
    if not kept or again_s > built_s / 2:
        raise Failed(message)
    return message


def _build(bench: Bench, cache: Path) -> None:
    """Open and run it as the stage does, with all sizes of `batch: {max: 8}`."""
    from stages.inference.engines.options import with_caches  # noqa: PLC0415
    from stages.vision.batching import buckets, engine_order  # noqa: PLC0415

    options = with_caches({"device_id": str(bench.task.device)}, cache)
    runs = _Runs(bench, ("tensorrt", "cuda"), "tensorrt", **options)
    if why := runs.passed_over.get("tensorrt"):
        bench.figures["passed_over"] = why
        return
    for rows in engine_order(buckets(8)):
        runs.run(rows)
    shares = bench.figures["shares"] = runs.engine.placement.shares()
    if not shares.get("TensorrtExecutionProvider"):
        raise Failed(f"the nodes are on {shares}")


def graphs(bench: Bench) -> str:
    """Recorded runs (CUDA graphs) give what plain ones give, and are no slower for single frames."""
    plain, recorded = _rate(bench, 1, 1), _rate(bench, 1, 1, enable_cuda_graph="1")
    bench.figures |= {"plain": plain, "recorded": recorded}
    ends = []
    for options in ({}, {"enable_cuda_graph": "1"}):
        runs = _Runs(bench, ("cuda",), **options)
        ends.append([runs.run() for _ in range(3)][-1])
    worst = _check_same(bench, *ends)
    return f"{recorded['fps']:.0f} against {plain['fps']:.0f} frames/s; outputs differ by {worst:.2g}"


def _check_same(bench: Bench, one: Mapping[str, Any], other: Mapping[str, Any]) -> float:
    """How far outputs are apart at most. Raises Failed if that is more than rounding."""
    worst = max(float(np.abs(other[name] - array).max()) for name, array in one.items() if array.size)
    largest = max(float(np.abs(array).max()) for array in one.values() if array.size)
    bench.figures["differ_by"] = worst
    if worst > 1e-6 + 1e-2 * largest:
        raise Failed(f"outputs differ by {worst:g}")
    return worst


def memory_limit(bench: Bench) -> str:
    """Too little memory is said to be that, and smaller batches go on."""
    from stages.inference.engines.engine import OutOfMemory, RunFailed  # noqa: PLC0415

    limit = _tight_limit(bench)
    bench.figures["limit_mb"] = limit / 1e6
    runs = _Runs(bench, ("cuda",), gpu_mem_limit=str(limit))
    try:
        for rows in (1, 64, 512, 4096):
            runs.run(rows)
    except OutOfMemory as error:
        runs.run(1)
        return f"at {rows} pictures: {error}"
    except RunFailed as error:
        raise Failed(f"at {rows} pictures it was not known as a lack of memory: {error}") from None
    raise Failed(f"4096 pictures fit into {limit / 1e6:.0f} MB")


def _tight_limit(bench: Bench) -> int:
    """Bytes of an arena: enough to open the model, and too little for thousands of pictures."""
    return 256 * 2**20 + 20 * Path(bench.task.model).stat().st_size


def alternating(bench: Bench) -> str:
    """Batches of two sizes in turn are as fast as each by itself: nothing is planned anew for each."""
    runs = _Runs(bench, ("cuda",))
    sizes = (1, 8)
    for rows in (*sizes, *sizes):
        runs.run(rows)
    steady = sum(_seconds_a_run(bench, partial(runs.run, rows)) for rows in sizes)
    turns = _seconds_a_run(bench, lambda: [runs.run(rows) for rows in sizes])
    bench.figures |= {"one_after_the_other_s": steady, "in_turn_s": turns}
    message = f"batches of 1 and 8: {turns * 1000:.1f} ms in turn, {steady * 1000:.1f} ms by themselves"
    if turns > _TIMES_SLOWER * steady:
        raise Failed(message)
    return message


# ---- graphs


def files(bench: Bench) -> str:
    """Four files through one model on the GPU: no frame is lost."""
    status = _run_files(bench)
    return f"{status['stages']['infer']['items']} frames, {status['worked_s']:.1f} s"


def kill(bench: Bench) -> str:
    """The process of the model is killed in the middle: it comes back, and no frame is lost."""
    from tools.measuring.file_runs import Killing  # noqa: PLC0415

    killing = Killing(["model.0"], after_frames=40)
    _run_files(bench, killing)
    bench.figures["recovery_s"] = killing.recovery_s
    if not killing.recovery_s:
        raise Failed("the run was over before anything was killed: use a longer clip")
    return f"back after {killing.recovery_s['model.0']:.1f} s"


def workers(bench: Bench) -> str:
    """Four processes run the model on one GPU: no frame is lost. One with threads should be as fast."""
    one_s = bench.figures["one_process_s"] = _run_files(bench)["worked_s"]
    four_s = bench.figures["four_processes_s"] = _run_files(bench, workers=4)["worked_s"]
    return f"{bench.figures['inferred']} frames in {four_s:.1f} s by four processes, in {one_s:.1f} s by one"


def out_of_memory(bench: Bench) -> str:
    """Batches that do not fit into the GPU's memory are said and become smaller in a run: no frame is lost."""
    from tools.models.declaration import DeclaredModel  # noqa: PLC0415

    contract = DeclaredModel(Path(bench.task.model)).contract()
    of_a_picture = 12 * (contract.width or 640) * (contract.height or 640)  # as three channels of float32
    limit = min(_tight_limit(bench), _MOST_ROWS * of_a_picture // 2)
    too_many = min(_MOST_ROWS, 2 * limit // of_a_picture)
    bench.figures |= {"limit_mb": limit / 1e6, "pictures_that_do_not_fit": too_many}
    with _log_in(bench.folder / "log") as log:
        status = _run_files(bench, limit=limit, sizes=(1, 8, too_many))
    if "batches_smaller" not in log.read_text():
        raise Failed(f"{too_many} pictures fit into {limit / 1e6:.0f} MB, or nobody said that they do not")
    return f"{too_many} pictures do not fit, {status['stages']['infer']['items']} frames went on in smaller batches"


@contextmanager
def _log_in(file: Path) -> Iterator[Path]:
    """What this process and those that it starts say meanwhile goes into a file, and is said again then."""
    usual = {stream: os.dup(stream) for stream in (1, 2)}
    try:
        with file.open("wb") as into:
            for stream in usual:
                os.dup2(into.fileno(), stream)
        yield file
    finally:
        for stream, own in usual.items():
            os.dup2(own, stream)
            os.close(own)
        os.write(2, file.read_bytes())


def cameras_cpu(bench: Bench) -> str:
    """Live cameras, decoded on the CPU."""
    return _cameras(bench, "cpu")


def cameras_cuda(bench: Bench) -> str:
    """The same cameras, decoded on the GPU."""
    return _cameras(bench, "cuda")


def cameras_shared(bench: Bench) -> str:
    """The same, many in a process: they share its context of CUDA."""
    return _cameras(bench, "cuda", together=_IN_A_PROCESS)


# ---- others


def peers(bench: Bench) -> str:
    """camgraph beside a bare loop and others that are installed here, all on the GPU."""
    from tools.models.declaration import DeclaredModel  # noqa: PLC0415

    contract = DeclaredModel(Path(bench.task.model)).contract()
    file = bench.folder / "peers.json"
    options = ["--size", str(contract.width or 640), str(contract.height or 640), "--count", "4", "--rounds", "1"]
    done = subprocess.run(  # noqa: S603 - our own program
        [
            *(sys.executable, "-P", "-m", "tools.benchmarks.peers", "--gpu", "--no-install", "--json", str(file)),
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


STEPS: Mapping[str, Step] = {
    "libraries": Step("the driver and CUDA's libraries load", 60, libraries),
    "doctor": Step("the doctor finds a provider cuda that runs a model", 240, doctor),
    "placement": Step("strict [cuda] takes all nodes", 120, placement),
    "people": Step("the same people on cuda and cpu", 180, people),
    "rates": Step("frames a second by batch and threads", 240, rates),
    "folding": Step("less processor time a frame with pixels and selection in the graph", 180, folding),
    "alternating": Step("batches of two sizes in turn, as fast as by themselves", 120, alternating),
    "files": Step("four files through one model, no frame lost", 180, files),
    "kill": Step("a killed process of the model comes back, no frame lost", 180, kill),
    "memory_limit": Step("out of memory is said, and smaller batches go on", 90, memory_limit),
    "out_of_memory": Step("out of memory in a run: smaller batches, no frame lost", 180, out_of_memory),
    "cameras_cpu": Step("live cameras, decoded on the CPU", 300, cameras_cpu),
    "cameras_shared": Step("live cameras, decoded on the GPU, 16 in a process", 300, cameras_shared),
    "fp16": Step("the same people in half precision, faster", 240, fp16),
    "binding": Step("pinned memory: the same outputs as a plain run, no slower", 120, binding),
    "graphs": Step("CUDA graphs: the same outputs, no slower", 120, graphs),
    "workers": Step("four processes on one GPU, no frame lost", 300, workers),
    "memcpy": Step("no copies in the middle of the model", 120, memcpy),
    "prepared": Step("the same people with pixels and suppression in the model", 240, prepared),
    "cameras_cuda": Step("live cameras, decoded on the GPU, a process each", 300, cameras_cuda),
    "tensorrt": Step("TensorRT builds its engines, and keeps them", 1800, tensorrt),
    "peers": Step("camgraph beside others, all on the GPU", 900, peers),
    "doctor_after": Step("as before, and nothing has stayed in the GPU's memory", 240, doctor_after),
}
"""The most important first: the time on a borrowed machine may end at any moment."""


# ---- what steps share


class _Runs:
    """The model, opened on these providers, and pictures of noise for it."""

    def __init__(self, bench: Bench, providers: tuple[Any, ...], of: ProviderName = "cuda", /, **options: str) -> None:
        from stages.inference.selection.opening import Asked, open_model  # noqa: PLC0415
        from tools.models.declaration import DeclaredModel  # noqa: PLC0415

        device = {"device_id": str(bench.task.device)}
        options_of: dict[ProviderName, dict[str, str]] = {"cuda": device, of: device | options}
        path = Path(bench.task.model)
        self.engine, self.passed_over = open_model(path, Asked(providers, options=options_of))
        self._contract = DeclaredModel(path).contract()
        self._inputs: dict[int, Mapping[str, Any]] = {}

    def run(self, rows: int = 1) -> Mapping[str, Any]:
        """The outputs for so many pictures."""
        return self.engine.run(self.inputs(rows))

    def inputs(self, rows: int) -> Mapping[str, Any]:
        """Made once for each number of pictures."""
        from stages.vision.model_contract import Converter  # noqa: PLC0415

        if rows not in self._inputs:
            width, height = self._contract.width or 640, self._contract.height or 640
            noise = np.random.default_rng(0).integers(0, 256, (rows, height, width, 3), dtype=np.uint8)
            new_array = getattr(self.engine, "new_array", None)
            converter = Converter(self._contract, new_array) if new_array else Converter(self._contract)
            self._inputs[rows] = {self._contract.name: converter.batch([noise])}
        return self._inputs[rows]


def _rate(bench: Bench, batch: int, threads: int, **options: str) -> dict[str, float]:
    """Frames a second, and milliseconds of processor time of a frame."""
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415

    from stages.inference.selection.rates import runs_per_s  # noqa: PLC0415

    runs = _Runs(bench, ("cuda",), **options)
    inputs = runs.inputs(batch)
    with ThreadPoolExecutor(threads) as pool:
        runs_per_s(runs.engine, inputs, threads, 0.2, pool)
        cpu_s, began = time.process_time(), time.monotonic()
        fps = batch * runs_per_s(runs.engine, inputs, threads, bench.task.seconds, pool)
        frames = fps * (time.monotonic() - began)
        return {"fps": fps, "cpu_ms": 1000 * (time.process_time() - cpu_s) / frames}


def _seconds_a_run(bench: Bench, call: Callable[[], object]) -> float:
    """The mean of as many calls as the time allows, two at the least."""
    began, calls = time.monotonic(), 0
    while calls < 2 or time.monotonic() < began + bench.task.seconds / 2:
        call()
        calls += 1
    return (time.monotonic() - began) / calls


def _timed(call: Callable[[], object]) -> float:
    began = time.monotonic()
    call()
    return time.monotonic() - began


def _size(bench: Bench) -> tuple[str, ...]:
    from tools.models.declaration import DeclaredModel  # noqa: PLC0415

    contract = DeclaredModel(Path(bench.task.model)).contract()
    return () if contract.width else ("--size", "640x640")


def _same_people(bench: Bench, model: str, reference: str = "") -> str:
    """``reference``: what runs on the CPU, if it is not the same model."""
    from tools.models.chain import Chain  # noqa: PLC0415
    from tools.models.compare.agreement import Agreement  # noqa: PLC0415
    from tools.models.frames import frames_of  # noqa: PLC0415

    found = Agreement()
    options = {"cuda": {"device_id": bench.task.device}}
    on_gpu: dict[str, Any] = {"providers": ["cuda"], "options": options, "candidates": _CANDIDATES}
    with Chain(Path(reference or model)) as cpu, Chain(Path(model), **on_gpu) as gpu:
        for frame in frames_of([bench.task.clip], bench.task.frames):
            tensor = cpu.prepared(frame)
            found.add(cpu.people(cpu.inferred(tensor)), gpu.people(gpu.inferred(tensor)))
    apart = sorted(found.apart_px)
    bench.figures |= {
        "cpu": found.first, "gpu": found.other, "both": found.both,
        "apart_px_median": apart[len(apart) // 2] if apart else None, "apart_px_most": apart[-1] if apart else None,
    }  # fmt: skip
    message = f"{found.first} on the CPU, {found.other} on the GPU, {found.both} in both"
    if not found.first or found.both < _AT_LEAST_SAME * max(found.first, found.other):
        raise Failed(message)
    return f"{message}; joints at most {apart[-1]:.2f} px apart" if apart else message


_GRAPH = """
version: 1
name: {name}
cameras:
{cameras}
stages:
  capture: {{use: capture, cameras_per_process: {together}}}
  prepare: {{use: preprocess, from: capture{size}}}
  infer:
    use: infer
    from: prepare
    group: model
    workers: {workers}
    batch: {{max: {most}}}
    threads: 2
    with: {{model: "{model}", providers: [cuda], options: {{cuda: {{device_id: {device}{limit}}}}}{sizes}}}
  people: {{use: decode, from: infer, group: model, workers: {workers}}}
  end: {{use: sink_null, from: people}}
"""


def _plan(
    bench: Bench, cameras: str, *, workers: int = 1, together: int = 1, limit: int = 0, sizes: Sequence[int] = ()
) -> Any:
    """``together``: cameras of a process; ``limit``: bytes of the arena; ``sizes``: the `batch_sizes`."""
    from pipeline.graph.loading import parse_graph  # noqa: PLC0415
    from pipeline.graph.planning import plan_of  # noqa: PLC0415
    from tools.models.declaration import DeclaredModel  # noqa: PLC0415

    contract = DeclaredModel(Path(bench.task.model)).contract()
    text = _GRAPH.format(
        name=f"smoke{bench.folder.name[-8:]}", cameras=cameras, model=bench.task.model, device=bench.task.device,
        size="" if contract.width else ", with: {size: [640, 640]}", workers=workers, together=together,
        most=max(8, *sizes) if sizes else 8, limit=f", gpu_mem_limit: {limit}" if limit else "",
        sizes=f", batch_sizes: [{', '.join(map(str, sizes))}]" if sizes else "",
    )  # fmt: skip
    return plan_of(parse_graph(text, "smoke.yaml", base_folder=bench.folder))


def _run_files(bench: Bench, during: Callable[[Any], None] | None = None, **how: Any) -> Mapping[str, Any]:
    """``how``: as `_plan` has it."""
    from pipeline.testing import run_graph  # noqa: PLC0415

    cameras = "\n".join(f'  c{n}: {{url: "{bench.task.clip}", duration_s: 20}}' for n in range(_FILES))
    outcome, status = run_graph(_plan(bench, cameras, **how), during, limit_s=150)
    frames = sum(camera["frames"] for camera in status["cameras"].values())
    drops = {name: camera["drops_by_reason"] for name, camera in status["cameras"].items() if camera["drops"]}
    bench.figures |= {
        "frames": frames, "drops": drops, "worked_s": status["worked_s"],
        "inferred": status["stages"]["infer"]["items"], "problems": outcome.problems, "memory_mb": status["memory_mb"],
        "cpu_s": {name: process["cpu_s"] for name, process in status["processes"].items()},
    }  # fmt: skip
    if outcome.problems or drops or not frames:
        raise Failed("; ".join(outcome.problems) or f"{frames} frames, lost: {drops}")
    return status


def _cameras(bench: Bench, decode: str, together: int = 1) -> str:
    """Cameras of the simulator, 720p at 10 frames a second; what came through in the last of two looks."""
    from pipeline.testing import run_graph  # noqa: PLC0415
    from tools.measuring.camera_run import CameraSet  # noqa: PLC0415

    rows = []
    for count in bench.task.cameras:
        films = CameraSet(count, 10.0, (1280, 720), bench.task.clip)
        watch = _Watch(bench.task.seconds)
        with films.simulator() as simulator:
            plan = _plan(bench, films.as_yaml(simulator, f", decode: {decode}"), together=together)
            outcome, status = run_graph(plan, watch, limit_s=120)
        if outcome.status or len(watch.looks) < 2:
            raise Failed("; ".join(outcome.problems) or "the run ended too early")
        first, last = watch.looks
        fps = (last[1] - first[1]) / (last[0] - first[0])
        cores = {name: (cpu - first[2].get(name, 0.0)) / (last[0] - first[0]) for name, cpu in last[2].items()}
        shared: defaultdict[str, float] = defaultdict(float)
        for name, used in cores.items():
            shared[name.partition(".")[0]] += used
        decoders = Counter(camera["facts"].get("decoder", "?") for camera in status["cameras"].values())
        bench.figures[str(count)] = {"fps": fps, "of": 10.0 * count, "cores": shared, "decoders": decoders}
        rows.append(f"{count} cameras: {fps:.0f} of {10 * count} frames/s, cores {_rounded(shared)}, {dict(decoders)}")
        if decode == "cuda" and set(decoders) != {"cuda"}:
            raise Failed("; ".join(rows))
    return "; ".join(rows)


def _rounded(values: Mapping[str, float]) -> dict[str, float]:
    return {name: round(value, 2) for name, value in values.items()}


class _Watch:
    """Called by the supervisor: looks when all cameras have been there for a while, looks again, and stops the run.

    A look is (seconds, frames inferred, process -> processor time).
    """

    def __init__(self, seconds: float) -> None:
        self.looks: list[tuple[float, int, dict[str, float]]] = []
        self._seconds = seconds
        self._due = 0.0

    def __call__(self, supervisor: Any) -> None:
        now = time.monotonic()
        if len(self.looks) == 2 or now < self._due:
            return
        status = supervisor.status()
        if not all(camera["frames"] for camera in status["cameras"].values()):
            return
        if not self._due:
            self._due = now + self._seconds
            return
        cpu = {name: process["cpu_s"] for name, process in status["processes"].items()}
        self.looks.append((now, status["stages"]["infer"]["items"], cpu))
        self._due = now + self._seconds
        if len(self.looks) == 2:
            supervisor.stop()


def main() -> None:
    """Run one step; its result is in FOLDER/result.json."""
    name, folder = sys.argv[1], Path(sys.argv[2])
    bench = Bench(Task(**json.load(sys.stdin)), folder)
    os.environ |= {"XDG_RUNTIME_DIR": str(folder), "XDG_STATE_HOME": str(folder / "state")}
    try:
        result = {"state": "passed", "found": STEPS[name].run(bench)}
    except Failed as error:
        result = {"state": "failed", "found": str(error)}
    except Exception as error:
        result = {"state": "failed", "found": f"{type(error).__name__}: {error}"}
        raise
    finally:
        (folder / "result.json").write_text(json.dumps({**result, "figures": bench.figures}, default=float))


if __name__ == "__main__":
    main()
