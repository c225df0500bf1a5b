"""Steps in which the GPU's memory is too small for a batch."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from camgraph.tools.lab.benchmarks.gpu_smoke.graph_run import run_files
from camgraph.tools.lab.benchmarks.gpu_smoke.open_model import Runs
from camgraph.tools.lab.benchmarks.gpu_smoke.task import Bench, Failed

_MOST_ROWS = 1024
"""The largest `batch: {max}`."""


def memory_limit(bench: Bench) -> str:
    """Too little memory is reported as such, and smaller batches go on."""
    from camgraph.stages.people.inference.engines.engine import OutOfMemory, RunFailed  # noqa: PLC0415

    limit = _tight_limit(bench)
    bench.figures["limit_mb"] = limit / 1e6
    runs = Runs(bench, ("cuda",), gpu_mem_limit=str(limit))
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


def out_of_memory(bench: Bench) -> str:
    """Batches that do not fit into the GPU's memory are reported and become smaller in a run: no frame is lost."""
    from camgraph.tools.models.declaration import DeclaredModel  # noqa: PLC0415

    contract = DeclaredModel(Path(bench.task.model)).contract()
    of_a_picture = 12 * (contract.width or 640) * (contract.height or 640)  # as three channels of float32
    limit = min(_tight_limit(bench), _MOST_ROWS * of_a_picture // 2)
    too_many = min(_MOST_ROWS, 2 * limit // of_a_picture)
    bench.figures |= {"limit_mb": limit / 1e6, "pictures_that_do_not_fit": too_many}
    with _log_in(bench.folder / "log") as log:
        status = run_files(bench, limit=limit, sizes=(1, 8, too_many))
    if "batches_smaller" not in log.read_text():
        raise Failed(f"{too_many} pictures fit into {limit / 1e6:.0f} MB, or nobody said that they do not")
    return f"{too_many} pictures do not fit, {status['stages']['infer']['items']} frames went on in smaller batches"


@contextmanager
def _log_in(file: Path) -> Iterator[Path]:
    """Redirect the output of this process and its children into a file; print it at the end."""
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
