"""How much memory a model takes: the peak of a process of its own, which opens it and runs it a few times.

`python -m tools.models.memory '{"model": "pose.onnx", ...}'` prints the peak in bytes, or null where the system does
not tell; settings are those of `infer`. The kernel's own high-water mark is read (VmHWM), which begins anew with the
program; that of `getrusage` would begin with the memory of whoever started it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.errors import EXIT_ENVIRONMENT, EXIT_USER, BadItem, CamgraphError, EnvironmentProblem, UserError
from pipeline.single_stage import stamp
from stages.messages import Frame
from tools.models.chain import Chain

_RUNS = 3
_STATUS = Path("/proc/self/status")
LIMIT_S = 600.0
"""For opening it and running it."""


def peak_bytes(model: Path, **settings: Any) -> int | None:
    """Of a process that opens the model and runs it, Python and its libraries included; a GPU's memory is not.

    None where the system does not tell (only Linux does). Raises UserError where the model cannot be opened,
    EnvironmentProblem where the process failed or did not end.
    """
    given = json.dumps({**settings, "model": str(model)})
    try:
        done = subprocess.run(  # noqa: S603 - this program itself
            [sys.executable, "-m", "tools.models.memory", given],
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise EnvironmentProblem(
            f"{model}: a process that opens it and runs it {_RUNS} times did not end within {LIMIT_S:g} s: "
            "does this model ever answer?"
        ) from None
    if done.returncode in (EXIT_USER, EXIT_ENVIRONMENT):
        raise (UserError if done.returncode == EXIT_USER else EnvironmentProblem)(done.stderr.strip())
    if done.returncode:
        raise EnvironmentProblem(f"{model}: its memory could not be measured: {done.stderr.strip()[-500:]}")
    told = json.loads(done.stdout.splitlines()[-1])
    return None if told is None else int(told)


def high_water_bytes() -> int | None:
    """Of this process until now; None where the system does not tell."""
    try:
        lines = _STATUS.read_text().splitlines()
    except OSError:
        return None
    [line] = [line for line in lines if line.startswith("VmHWM:")]
    return int(line.split()[1]) * 1024


def _run(settings: dict[str, Any]) -> None:
    model = Path(settings.pop("model"))
    with Chain(model, **settings) as chain:
        prepared = chain.prepared(Frame(stamp(), np.zeros((480, 640, 3), np.uint8), 640, 480))
        for _ in range(_RUNS):
            with suppress(BadItem):  # what it answered took its memory all the same
                chain.people(chain.inferred(prepared))


if __name__ == "__main__":
    try:
        _run(json.loads(sys.argv[1]))
    except CamgraphError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(error.exit_status)
    sys.stdout.write(f"{json.dumps(high_water_bytes())}\n")
