"""Steps that look at which nodes the GPU takes: CUDA, copies between GPU and host, TensorRT."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

from camgraph.tools.lab.benchmarks.gpu_smoke.open_model import Runs, timed
from camgraph.tools.lab.benchmarks.gpu_smoke.task import Bench, Failed


def placement(bench: Bench) -> str:
    """CUDA alone, without the CPU behind it, takes all nodes; first and later runs."""
    began = time.monotonic()
    runs = Runs(bench, ("cuda",))
    opened_s = time.monotonic() - began
    shares = runs.engine.placement.shares()
    first_s, later_s = timed(runs.run), timed(runs.run)
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


def _size(bench: Bench) -> tuple[str, ...]:
    from camgraph.tools.models.declaration import DeclaredModel  # noqa: PLC0415

    contract = DeclaredModel(Path(bench.task.model)).contract()
    return () if contract.width else ("--size", "640x640")


def tensorrt(bench: Bench) -> str:
    """Engines are built for all sizes of batches, in a known time; the next start takes them from the cache."""
    cache = bench.folder / "engines"
    cache.mkdir()
    built_s = bench.figures["built_s"] = timed(lambda: _build(bench, cache))
    if why := bench.figures.get("passed_over"):
        return f"TensorRT cannot be had: not tried ({why})"
    kept = sorted(file.name for file in cache.iterdir())
    again_s = bench.figures["again_s"] = timed(lambda: _build(bench, cache))
    bench.figures["kept"] = kept
    message = f"built in {built_s:.0f} s, opened from the cache in {again_s:.1f} s; {len(kept)} files kept"
    if not kept or again_s > built_s / 2:
        raise Failed(message)
    return message


def _build(bench: Bench, cache: Path) -> None:
    """Open and run it as the stage does, with all sizes of `batch: {max: 8}`."""
    from camgraph.stages.people.inference.engines.options import with_caches  # noqa: PLC0415
    from camgraph.stages.vision.run_sizes import buckets, engine_order  # noqa: PLC0415

    options = with_caches({"device_id": str(bench.task.device)}, cache)
    runs = Runs(bench, ("tensorrt", "cuda"), "tensorrt", **options)
    if why := runs.passed_over.get("tensorrt"):
        bench.figures["passed_over"] = why
        return
    for rows in engine_order(buckets(8)):
        runs.run(rows)
    shares = bench.figures["shares"] = runs.engine.placement.shares()
    if not shares.get("TensorrtExecutionProvider"):
        raise Failed(f"the nodes are on {shares}")
