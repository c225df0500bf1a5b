"""Tries on a GPU all that camgraph does there, step by step.

    python -m camgraph.tools.lab.benchmarks.gpu_smoke --model FILE --clip FILE --json smoke.json [--only STEP] ...

    step ──a process of its own, with a time limit──> passed, failed or too slow ──> a line here, and the JSON file

Each step's result is written at once, so nothing is lost when the machine goes away; Ctrl-C ends the step that runs,
and what it has started. `docs/gpu.md` says what was seen, and where.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click

from camgraph.pipeline.errors import EXIT_GAVE_UP, EXIT_SIGINT
from camgraph.tools.assets import asset_path
from camgraph.tools.lab.benchmarks.gpu_smoke.steps import STEPS
from camgraph.tools.lab.benchmarks.gpu_smoke.task import Step, Task

_file = click.Path(path_type=Path, dir_okay=False)
_LAST_LINES = 15


@click.command()
@click.option("--model", type=_file, help="An ONNX model that finds people; by default the demo's.")
@click.option("--clip", type=_file, help="A video with people; by default the demo's.")
@click.option("--json", "saved", type=_file, default=Path("gpu_smoke.json"), show_default=True, help="For all results.")
@click.option("--only", multiple=True, type=click.Choice(list(STEPS)), help="These steps alone; repeatable.")
@click.option("--seconds", default=3.0, show_default=True, help="Of each measurement.")
@click.option("--frames", default=40, show_default=True, help="Of the clip, where people are compared.")
@click.option("--cameras", default=(16, 64), multiple=True, show_default=True, help="Of the simulator; repeatable.")
@click.option("--device", default=0, show_default=True, help="Which GPU.")
@click.pass_context
def main(ctx: click.Context, /, saved: Path, only: Sequence[str], **options: Any) -> None:
    """Try what camgraph does on a GPU, step by step; exit status 1 where a step failed."""
    model = Path(options.pop("model") or asset_path("movenet-multipose.onnx")).resolve()
    clip = Path(options.pop("clip") or asset_path("vtest.avi")).resolve()
    task = Task(str(model), str(clip), **options)
    results: list[dict[str, Any]] = []
    try:
        for name in only or STEPS:
            results.append({"step": name, "shows": STEPS[name].shows, **_tried(name, STEPS[name], task)})
            task = replace(task, free_mb=results[-1]["figures"].get("free_mb", task.free_mb))
            _write(saved, task, results)
            click.echo(_line(results[-1]))
            if results[-1]["state"] == "stopped":
                ctx.exit(EXIT_SIGINT)
    except KeyboardInterrupt:  # between two steps
        ctx.exit(EXIT_SIGINT)
    if any(result["state"] != "passed" for result in results):
        ctx.exit(EXIT_GAVE_UP)


def _tried(name: str, step: Step, task: Task) -> dict[str, Any]:
    """Run one step in a process group of its own, and kill what is left of the group."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="camgraph-smoke-") as folder, tempfile.TemporaryFile("w+") as output:
        command = [sys.executable, "-m", "camgraph.tools.lab.benchmarks.gpu_smoke.steps", name, folder]
        process = subprocess.Popen(  # noqa: S603 - this Python
            command, stdin=subprocess.PIPE, stdout=output, stderr=subprocess.STDOUT, text=True, start_new_session=True
        )
        try:
            process.communicate(json.dumps(asdict(task)), timeout=step.limit_s)
            state = ""
        except subprocess.TimeoutExpired:
            state = "too slow"
        except KeyboardInterrupt:
            state = "stopped"
        finally:
            _end_group(process)
        found = Path(folder) / "result.json"
        result = json.loads(found.read_text()) if found.exists() else {"state": "failed", "found": "", "figures": {}}
        output.seek(0)
        last = output.read().splitlines()[-_LAST_LINES:]
    if state == "too slow":
        result |= {"state": state, "found": f"not over after {step.limit_s:g} s {result['found']}".rstrip()}
    elif state or not found:
        result["state"] = state or "failed"
    result["seconds"] = round(time.monotonic() - began, 1)
    return result if result["state"] == "passed" else {**result, "last_lines": last}


def _end_group(process: subprocess.Popen[str]) -> None:
    """Processes of a run have groups of their own, and end with the supervisor, which is in this one."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _write(saved: Path, task: Task, results: Sequence[dict[str, Any]]) -> None:
    new = saved.with_suffix(".new")
    new.write_text(json.dumps({"task": asdict(task), "results": results}, indent=2))
    new.replace(saved)


def _line(result: dict[str, Any]) -> str:
    why = result["found"] or " | ".join(result.get("last_lines", [])[-2:])
    return f"{result['state']:>8}  {result['step']}: {result['shows']} ({result['seconds']:.1f} s)\n          {why}"


if __name__ == "__main__":
    main()
