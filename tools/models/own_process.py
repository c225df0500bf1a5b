"""Asks a process of its own about a model: one that never answers can be ended, and its death costs nothing.

ask(module, task)  --task as JSON on the input-->  python -P -m module: `answer(run)`
                   <--JSON, or an error's words and exit status--
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from camgraph.pipeline.errors import EXIT_ENVIRONMENT, EXIT_USER, CamgraphError, EnvironmentProblem, UserError

_MOST_SHOWN = 500
"""Letters of a failed process's output."""


def ask(module: str, model: Path, task: Mapping[str, Any], *, limit_s: float, advice: str) -> Any:
    """The answer of the module's process about the model. ``advice``: for users, if it did not answer in time.

    Raises UserError and EnvironmentProblem as the process did, EnvironmentProblem if it failed or did not end.
    """
    given = json.dumps({**task, "model": str(model), "limit_s": limit_s}, default=str)
    try:
        done = subprocess.run(  # noqa: S603 - this program itself
            [sys.executable, "-P", "-m", module],
            input=given,
            capture_output=True,
            text=True,
            timeout=limit_s,
            check=False,
        )
    except OSError as error:
        raise EnvironmentProblem(
            f"{model}: a process to run it cannot be started: {error.filename}: {error.strerror}",
            error_id="model-does-not-run",
        ) from None
    except subprocess.TimeoutExpired:
        raise EnvironmentProblem(
            f"{model}: it was not opened and run within {limit_s:g} s: {advice}", error_id="model-does-not-run"
        ) from None
    if done.returncode in (EXIT_USER, EXIT_ENVIRONMENT):
        kind = UserError if done.returncode == EXIT_USER else EnvironmentProblem
        told = json.loads(done.stdout.splitlines()[-1])
        raise kind(told["error"], error_id=told["error_id"] or "model-does-not-run")
    if done.returncode:
        how = f"died of signal {-done.returncode}" if done.returncode < 0 else done.stderr.strip()[-_MOST_SHOWN:]
        raise EnvironmentProblem(f"{model}: the process that ran it: {how}", error_id="model-does-not-run")
    return json.loads(done.stdout.splitlines()[-1])


def answer(run: Callable[[dict[str, Any]], Any]) -> None:
    """The other side: pass the task to ``run``, and send its result. Ends by itself if nobody waits any more."""
    task = json.load(sys.stdin)
    limit_s = task.pop("limit_s")
    if hasattr(signal, "setitimer"):  # there is none on Windows
        signal.setitimer(signal.ITIMER_REAL, 2 * limit_s)
    try:
        result = run(task)
    except CamgraphError as error:
        sys.stdout.write(f"{json.dumps({'error': str(error), 'error_id': error.error_id})}\n")
        sys.exit(error.exit_status)
    sys.stdout.write(f"{json.dumps(result)}\n")
