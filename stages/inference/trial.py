"""One run of a model on one provider, in a process of its own: some crash where others say what is missing.

caller ──what to open, shapes of its inputs──> python -m stages.inference.trial ──shapes of its outputs──> caller

What CUDA once has, it keeps until its process ends; that is another reason for a process.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.errors import CamgraphError
from pipeline.messages import Array
from stages.inference.engine import RunFailed
from stages.inference.opening import Asked, NoProvider, open_model
from stages.inference.rates import RIVALS, look

LIMIT_S = 40
"""Longer than CUDA takes to start, and two of them within the time that a stage has to open."""

Inputs = Mapping[str, tuple[str, tuple[int, ...]]]
"""Name -> (dtype, shape)."""
Answer = Mapping[str, tuple[str, tuple[int, ...]]]
"""Output -> (dtype, shape)."""


@dataclass(frozen=True)
class Trial:
    """What came of it: a failure, or an answer.

    ``share``: of the model's nodes, what was not left to the CPU; ``rate``: runs a second, of the CPU's rivals.
    """

    failure: str = ""
    answer: Answer = field(default_factory=dict)
    share: float = 0.0
    rate: float = 0.0


def answer_of(outputs: Mapping[str, Array]) -> Answer:
    """The types and shapes of a model's outputs."""
    return {name: (array.dtype.name, array.shape) for name, array in outputs.items()}


def try_in_process(path: Path, asked: Asked, inputs: Inputs, limit_s: float = LIMIT_S) -> Trial:
    """Open the model on the first provider of ``asked``, and run it on zeros of these shapes; it never raises for that.

    Without ``inputs`` it is only opened.

    After ``limit_s`` it is ended; it ends itself where nobody waits for it any more.
    """
    task = json.dumps({"path": str(path), "asked": asdict(asked), "inputs": inputs, "limit_s": limit_s}, default=str)
    command = [sys.executable, "-P", "-m", "stages.inference.trial"]
    try:
        done = subprocess.run(  # noqa: S603 - this Python
            command, input=task, capture_output=True, text=True, timeout=limit_s, check=False
        )
    except subprocess.TimeoutExpired:
        return Trial(f"it did not answer within {limit_s:g} s")
    if done.returncode < 0:
        return Trial(f"its process died of signal {-done.returncode}")
    if done.returncode:
        return Trial((done.stderr.strip().splitlines() or ["it failed"])[-1][:300])
    return _understood(json.loads(done.stdout.splitlines()[-1]))


def _understood(told: Mapping[str, Any]) -> Trial:
    answer = {name: (dtype, tuple(shape)) for name, (dtype, shape) in told["answer"].items()}
    return Trial(told["failure"], answer, told["share"], told["rate"])


def tried(path: Path, asked: Asked, inputs: Inputs) -> Trial:
    """The same in this process."""
    try:
        engine, passed_over = open_model(path, asked)
        if passed_over:
            return Trial(passed_over[asked.providers[0]])
        zeros = {name: np.zeros(shape, dtype) for name, (dtype, shape) in inputs.items()}
        outputs = engine.run(zeros) if zeros else {}
        rate = look(engine, zeros, asked.at_once) if zeros and asked.providers[0] in RIVALS else 0.0
    except NoProvider as error:
        return Trial(error.why[asked.providers[0]])
    except (CamgraphError, RunFailed) as error:
        return Trial(str(error))
    share = sum(part for name, part in engine.placement.shares().items() if name != "CPUExecutionProvider")
    return Trial("", answer_of(outputs), share, rate)


def main() -> None:
    """What the process does."""
    task = json.load(sys.stdin)
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, 2 * task["limit_s"])
    asked = task["asked"]
    asked["providers"] = tuple(asked["providers"])
    asked["libraries"] = tuple(map(Path, asked["libraries"]))
    json.dump(asdict(tried(Path(task["path"]), Asked(**asked), task["inputs"])), sys.stdout)


if __name__ == "__main__":
    main()
