"""Runs of a model on a GPU: the calls of CUDA, their threads and devices, and what follows from errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

BEGIN = """
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
import numpy as np
from camgraph.stages.people.inference.selection.opening import Asked, open_model

model, device = Path(sys.argv[1]), sys.argv[2]

def opened(**options):
    return open_model(model, Asked(("cuda",), options={"cuda": {"device_id": device, **options}})).engine

def batch(engine, rows=2):
    array = engine.new_array(rows * 3 * 32 * 32, "float32").reshape(rows, 3, 32, 32)
    array[...] = 1
    return {"images": array}
"""
IN_THREADS = """
engine = opened()
with ThreadPoolExecutor(3) as pool:
    for outputs in pool.map(lambda _: engine.run(batch(engine)), range(12)):
        assert outputs["out"].shape == (2, 4, 32, 32)
"""


def run(cuda: Any, model: Path, program: str, device: int = 0, **settings: object) -> Any:
    done = cuda.run("-c", BEGIN + program, str(model), str(device), **settings)
    assert done.status == 0, done.err
    return done


def test_nothing_is_begun_on_another_gpu(cuda: Any, convolution: Path) -> None:
    """A context on the first GPU for each worker of the others costs hundreds of MB there."""
    done = run(cuda, convolution, IN_THREADS, 1, gpus=2)
    assert {call["device"] for call in done.calls} == {1}, [call for call in done.calls if call["device"] != 1][:5]
    assert len({call["thread"] for call in done.named("cudaMemcpyAsync")}) > 1


def test_copies_use_pinned_memory(cuda: Any, convolution: Path) -> None:
    # The first run learns the shapes: with it out of the way, the twelve in threads copy to and fro, and nothing else.
    done = run(cuda, convolution, IN_THREADS.replace("with ", "engine.run(batch(engine))\nwith ", 1))
    runs = done.named("cudaMemcpyAsync")[-24:]
    assert {call["way"] for call in runs} == {"to device", "to host"}
    assert all(call["pinned"] for call in runs), runs


def test_threads_that_wait_for_the_gpu_do_not_spin(cuda: Any, convolution: Path) -> None:
    done = run(cuda, convolution, IN_THREADS)
    calls = [call["call"] for call in done.calls]
    assert calls.index("cudaSetDeviceFlags") < calls.index("cudaMalloc")


def test_memory_that_cannot_be_locked_fails_no_kernel(cuda: Any, convolution: Path) -> None:
    cuda.fail("cudaHostAlloc", 2)
    done = run(cuda, convolution, IN_THREADS)
    assert not any(call["pinned"] for call in done.named("cudaMemcpyAsync"))


def test_too_little_memory_says_so_and_how_much_was_wanted(cuda: Any, convolution: Path) -> None:
    program = """
from camgraph.stages.people.inference.engines.engine import OutOfMemory
engine = opened()
try:
    engine.run(batch(engine, 200))
except OutOfMemory as error:
    print(error)
print(engine.run(batch(engine, 2))["out"].shape)
"""
    result, shape = run(cuda, convolution, program, memory=4_000_000).out.splitlines()
    assert result.startswith("the memory of GPU 0 is used up: 3 MB more were asked for, ")
    assert "of 4 MB are free; set a smaller `batch: {max}`" in result
    assert shape == "(2, 4, 32, 32)"


def test_a_limit_that_is_set_is_named_first(cuda: Any, convolution: Path) -> None:
    program = """
from camgraph.stages.people.inference.engines.engine import OutOfMemory
engine = opened(gpu_mem_limit="2000000")
try:
    engine.run(batch(engine, 400))
except OutOfMemory as error:
    print(error)
"""
    result = run(cuda, convolution, program).out
    assert result.startswith("`gpu_mem_limit` of 2 MB, which each size of batches has for itself, is used up: ")
    assert "MB more were asked for; set a larger one, or set a smaller `batch: {max}`" in result


def test_batches_that_do_not_fit_are_halved_once_and_for_all(cuda: Any, convolution: Path) -> None:
    program = """
from camgraph.stages.people.inference.batches import BatchRuns, Given
from camgraph.stages.vision.model_contract import InputContract
engine = opened()
contract = InputContract("images", "nchw", "float32", "rgb", 1 / 255, None, None, None)
said = []
runs = BatchRuns(engine, contract, sizes=(), most=256, on_smaller=lambda rows, why: said.append(rows))
pictures = Given(np.zeros((200, 32, 32, 3), np.uint8))
for _ in range(2):
    [rows] = runs.rows([pictures])
    print(len(rows), said)
"""
    assert run(cuda, convolution, program, memory=4_000_000).out.splitlines() == ["200 [100, 50]", "200 [100, 50]"]


@pytest.mark.parametrize("call", ["cudaLaunchKernel", "cudaMemcpyAsync", "cudaStreamSynchronize"])
def test_an_error_that_passes_fails_its_batch_alone(cuda: Any, convolution: Path, call: str) -> None:
    program = f"""
from camgraph.stages.people.inference.engines.engine import RunFailed
engine = opened()
engine.run(batch(engine))
Path("errors").write_text("{call} 700")
try:
    engine.run(batch(engine))
except RunFailed as error:
    print(error)
Path("errors").unlink()
engine.run(batch(engine))
"""
    result = run(cuda, convolution, program).out
    assert result == "CUDA error 700, pretended error 700\n" or (call == "cudaLaunchKernel" and "CUDNN" in result)


def test_a_lost_gpu_is_told_apart_from_a_failed_batch(cuda: Any, convolution: Path) -> None:
    program = """
from camgraph.pipeline.errors import NeedsNewProcess
engine = opened()
Path("errors").write_text("* 719")
for _ in range(2):
    try:
        engine.run(batch(engine))
    except NeedsNewProcess as error:
        print(error)
"""
    expected = "GPU 0 is lost to this process: CUDA error 719, unspecified launch failure\n"
    assert run(cuda, convolution, program).out == 2 * expected


RECORDED = """
engine = opened(enable_cuda_graph="1")
for rows in (1, 2, 4):  # as opening does
    engine.run(batch(engine, rows))
with ThreadPoolExecutor(3) as pool:
    for outputs in pool.map(lambda n: engine.run(batch(engine, (1, 2, 4)[n % 3])), range(30)):
        assert outputs["out"].shape[1:] == (4, 32, 32)
print(engine.not_recorded)
"""


def test_one_thread_records_each_bucket_once_and_replays_it(cuda: Any, convolution: Path) -> None:
    done = run(cuda, convolution, RECORDED)
    assert done.out == "\n"
    begun, replayed = done.named("cudaStreamBeginCapture"), done.named("cudaGraphLaunch")
    assert len(begun) == 3
    assert len({call["thread"] for call in (*begun, *replayed)}) == 1
    assert len(replayed) == 33
    assert not [call for call in done.named("cudaMalloc") if call["error"]]


def test_a_model_that_cannot_be_recorded_runs_without(cuda: Any, convolution: Path) -> None:
    """As with suppression in the model, which tells the host in the middle how many are left."""
    cuda.fail("cudaStreamBeginCapture", 900)
    done = run(cuda, convolution, RECORDED)
    assert done.out == "CUDA error 900, pretended error 900\n"
    assert not done.named("cudaGraphLaunch")
    assert len(done.named("cudaStreamBeginCapture")) == 1


def test_each_number_of_pictures_has_a_session_of_its_own(cuda: Any, convolution: Path) -> None:
    """A session whose inputs change their shape plans its convolutions anew each time."""
    program = """
engine = opened()
for rows in (1, 2, 1, 2, 1, 2):
    assert engine.run(batch(engine, rows))["out"].shape == (rows, 4, 32, 32)
engine.run(batch(engine, 1))
print(len(engine._runs._sessions))
"""
    assert run(cuda, convolution, program).out == "2\n"


def test_locked_memory_goes_back_with_its_engine(cuda: Any, convolution: Path) -> None:
    program = """
import gc
for _ in range(3):
    engine = opened()
    for rows in (1, 2, 2):
        engine.run(batch(engine, rows))
    del engine
    gc.collect()
"""
    done = run(cuda, convolution, program)
    locked, freed = (done.named(name) for name in ("cudaHostAlloc", "cudaFreeHost"))
    assert len(locked) == len(freed) > 6
