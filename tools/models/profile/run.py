"""Runs a model with ONNX Runtime's own profiling, in a process of its own: one that never answers can be ended.

As a program it reads its task from its input, and writes ONNX Runtime's profile beside the pictures (inputs.npz); it
prints the provider that ran the model.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from camgraph.pipeline.errors import EnvironmentProblem, UserError
from camgraph.pipeline.messages import Array
from camgraph.stages.people.inference.engines.engine import NotToBeHad, ProviderName, RunFailed
from camgraph.stages.people.inference.engines.onnxruntime_engine import open_with
from camgraph.tools.models.own_process import answer, ask
from camgraph.tools.models.profile.events import Profile, read_profile

WARM_UP = 3
_THIS = "camgraph.tools.models.profile.run"
_ADVICE = "give it longer (--seconds and --limit-seconds), or does this model ever answer?"


@dataclass(frozen=True, slots=True)
class Wanted:
    """``providers``: the best first; nodes that it does not take go to the others. ``seconds``: no longer than this.

    ``libraries``: with operators of the model's own. ``limit_s``: beyond ``seconds``, for opening the model and for
    runs that do not end.
    """

    providers: tuple[ProviderName, ...]
    threads: int
    runs: int
    seconds: float
    libraries: tuple[Path, ...] = ()
    limit_s: float = 300.0


@dataclass(frozen=True, slots=True)
class Profiled:
    """``trace``: the profile as ONNX Runtime wrote it."""

    runs_on: str
    profile: Profile
    trace: str


def profile(model: Path, inputs: Mapping[str, Array], wanted: Wanted) -> Profiled:
    """Some runs on these inputs, and their profile.

    Raises EnvironmentProblem if the first provider cannot be had, or the model does not answer in time, and
    UserError if it does not run.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # By their order: a model's names may be anything, and names in such a file are paths.
        np.savez(folder / "inputs.npz", *inputs.values())
        task = {"folder": name, "inputs": list(inputs), "wanted": asdict(wanted)}
        runs_on = str(ask(_THIS, model, task, limit_s=wanted.seconds + wanted.limit_s, advice=_ADVICE))
        trace = (folder / "trace.json").read_text()
    return Profiled(runs_on, read_profile(json.loads(trace), warm_up=WARM_UP), trace)


def _run(task: dict[str, Any]) -> str:
    """The work of the process: opens the model, runs it, and leaves the trace. Returns the provider's name."""
    model, folder, wanted = Path(task["model"]), Path(task["folder"]), Wanted(**task["wanted"])
    with np.load(folder / "inputs.npz") as arrays:
        inputs = {name: arrays[f"arr_{number}"] for number, name in enumerate(task["inputs"])}
    options = {name: dict[str, str]() for name in wanted.providers}
    libraries = [Path(library) for library in wanted.libraries]
    try:
        engine = open_with(options, model, threads=wanted.threads, libraries=libraries, profile=folder / "profile")
    except NotToBeHad as error:
        raise EnvironmentProblem(
            f"{model}: cannot be profiled on {wanted.providers[0]}: {error}", error_id="model-does-not-run"
        ) from None
    try:
        until_s = time.monotonic() + wanted.seconds
        for number in range(WARM_UP + wanted.runs):
            engine.run(inputs)
            if number >= WARM_UP and time.monotonic() > until_s:
                break
    except RunFailed as error:
        raise UserError(f"{model}: does not run: {error}", error_id="model-does-not-run") from None
    engine.end_profile().rename(folder / "trace.json")
    return engine.provider


if __name__ == "__main__":
    answer(_run)
