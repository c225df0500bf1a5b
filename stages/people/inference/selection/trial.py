"""One run of a model on one provider, in a process of its own: some providers crash instead of raising an error.

    caller ──the model, files for its inputs and outputs──> python -m camgraph.stages.people.inference.selection.trial
    caller <──the result──

CUDA keeps its memory until its process ends; that is another reason for a process. The process may take as much memory
as the models of the caller.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from camgraph.pipeline.errors import CamgraphError
from camgraph.pipeline.messages import Array
from camgraph.stages.people.inference.engines.engine import RunFailed
from camgraph.stages.people.inference.model.model_memory import KILLED, ModelMemory, lift, models_bytes, most_of
from camgraph.stages.people.inference.selection.opening import Asked, NoProvider, open_model
from camgraph.stages.people.inference.selection.rates import RIVALS, measured_rate

LIMIT_S = 40
"""Longer than CUDA takes to start, and two of them within the time that a stage has to open."""

Arrays = Mapping[str, Array]


@dataclass(frozen=True)
class Trial:
    """The result: a failure, or outputs.

    ``begun``: False if the machine failed, which shows nothing about the provider. ``share``: the part of the model's
    nodes that was not left to the CPU; ``rate``: runs a second, for rivals of the CPU.
    """

    failure: str = ""
    outputs: Arrays = field(default_factory=dict)
    share: float = 0.0
    rate: float = 0.0
    begun: bool = True


def try_in_process(path: Path, asked: Asked, inputs: Arrays, limit_s: float = LIMIT_S) -> Trial:
    """Open the model on the first provider of ``asked``, and run it on these inputs; it never raises for that.

    Without ``inputs`` it is only opened.

    After ``limit_s`` it is ended; it ends itself if nobody waits for it any more.
    """
    try:
        with tempfile.TemporaryDirectory() as folder:
            return _tried_with(Path(folder), path, asked, inputs, limit_s)
    except OSError as error:
        where = error.filename or tempfile.gettempdir()
        return Trial(f"it could not be tried: {where}: {error.strerror or error}", begun=False)


def _tried_with(folder: Path, path: Path, asked: Asked, inputs: Arrays, limit_s: float) -> Trial:
    _write(folder / "inputs.npz", inputs)
    names = list(inputs)
    task = {
        "path": str(path),
        "asked": asdict(asked),
        "inputs": names,
        "limit_s": limit_s,
        "folder": str(folder),
        "memory": models_bytes(),
    }
    command = [sys.executable, "-P", "-m", "camgraph.stages.people.inference.selection.trial"]
    try:
        done = subprocess.run(  # noqa: S603 - this Python
            command,
            input=json.dumps(task, default=str),
            capture_output=True,
            text=True,
            timeout=limit_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Trial(f"it did not answer within {limit_s:g} s")
    last = done.stderr.strip().splitlines()[-1:]
    if done.returncode < 0 and not (last and last[0].startswith(KILLED)):
        return Trial(f"its process died of signal {-done.returncode}")
    if done.returncode:
        return Trial((last or ["it failed"])[0][:300])
    answer = json.loads(done.stdout.splitlines()[-1])
    return Trial(answer["failure"], _read(folder / "outputs.npz", answer["outputs"]), answer["share"], answer["rate"])


def _write(file: Path, arrays: Arrays) -> None:
    """By their order: a model's names may be anything, and names in such a file are paths."""
    np.savez(file, *arrays.values())


def _read(file: Path, names: list[str]) -> Arrays:
    with np.load(file) as arrays:
        return {name: arrays[f"arr_{number}"] for number, name in enumerate(names)}


def tried(path: Path, asked: Asked, inputs: Arrays) -> Trial:
    """The same in this process."""
    try:
        engine, passed_over = open_model(path, asked)
        if passed_over:
            return Trial(passed_over[asked.providers[0]])
        outputs = engine.run(inputs) if inputs else {}
        rate = measured_rate(engine, inputs, asked.at_once) if inputs and asked.providers[0] in RIVALS else 0.0
    except NoProvider as error:
        return Trial(error.why[asked.providers[0]])
    except (CamgraphError, RunFailed) as error:
        return Trial(str(error))
    share = sum(part for name, part in engine.placement.shares().items() if name != "CPUExecutionProvider")
    return Trial("", outputs, share, rate)


def main() -> None:
    """The work of the process."""
    task = json.load(sys.stdin)
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, 2 * task["limit_s"])
    folder, asked = Path(task["folder"]), _asked(task["asked"])
    lift()
    ModelMemory(task["memory"] or most_of(None)).hold(asked.providers[0])
    trial = tried(Path(task["path"]), asked, _read(folder / "inputs.npz", task["inputs"]))
    _write(folder / "outputs.npz", trial.outputs)
    answer = {"failure": trial.failure, "outputs": list(trial.outputs), "share": trial.share, "rate": trial.rate}
    json.dump(answer, sys.stdout)


def _asked(task: dict[str, Any]) -> Asked:
    task["providers"] = tuple(task["providers"])
    task["libraries"] = tuple(map(Path, task["libraries"]))
    return Asked(**task)


if __name__ == "__main__":
    main()
