"""Runs a model with ONNX Runtime's own profiling."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pipeline.errors import EnvironmentProblem, UserError
from pipeline.messages import Array
from stages.inference.engine import NotToBeHad, Placement, ProviderName, RunFailed
from stages.inference.onnxruntime_engine import open_with
from tools.models.profile_events import Profile, read_profile

WARM_UP = 3


@dataclass(frozen=True, slots=True)
class Wanted:
    """``providers``: the best first; nodes that it does not take go to the others. ``seconds``: no longer than this."""

    providers: tuple[ProviderName, ...]
    threads: int
    runs: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Profiled:
    """``trace``: the profile as ONNX Runtime wrote it."""

    runs_on: str
    placement: Placement
    profile: Profile
    trace: str


def profile(model: Path, inputs: Mapping[str, Array], wanted: Wanted) -> Profiled:
    """Some runs on these inputs, and what they did.

    Raises EnvironmentProblem where the first provider cannot be had, and UserError where the model does not run.
    """
    options = {name: dict[str, str]() for name in wanted.providers}
    with tempfile.TemporaryDirectory() as folder:
        try:
            engine = open_with(options, model, threads=wanted.threads, profile=Path(folder) / "profile")
        except NotToBeHad as error:
            raise EnvironmentProblem(f"{model}: cannot be profiled on {wanted.providers[0]}: {error}") from None
        try:
            until_s = time.monotonic() + wanted.seconds
            for number in range(WARM_UP + wanted.runs):
                engine.run(inputs)
                if number >= WARM_UP and time.monotonic() > until_s:
                    break
        except RunFailed as error:
            raise UserError(f"{model}: does not run: {error}") from None
        trace = engine.end_profile().read_text()
    return Profiled(engine.provider, engine.placement, read_profile(json.loads(trace), warm_up=WARM_UP), trace)
