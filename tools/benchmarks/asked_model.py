"""What cameras lose if somebody asks the model: `python -m tools.benchmarks.asked_model --report docs/service.md`.

Cameras that a real model cannot keep up with (files in a loop, whose frames wait) take all cores. In one run, in turns,
nobody asks, and somebody sends one picture after another to `POST /api/infer`, without a pause.
"""

from __future__ import annotations

import io
import multiprocessing
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.synchronize import Event as Stop
from pathlib import Path
from statistics import mean
from typing import Any

import click
import httpx

from tools.benchmarks.service import Measured, Phase
from tools.measuring.report_page import machine_line, publish, report_option, written_by

TOOL = "benchmarks.asked_model"
_MODEL = "asset:movenet-multipose.onnx"
_PICTURE = (1280, 720)
_GRAPH = """
version: 1
name: {name}
camera_defaults: {{url: cam.mp4, loop: true, start_at: "2026-01-01T00:00:00Z"}}
cameras: {{{cameras}}}
stages:
  capture: {{use: capture, cameras_per_process: 8}}
  prepare: {{use: preprocess, from: capture}}
  infer: {{use: infer, from: prepare, with: {{model: "MODEL"}}}}
  people: {{use: decode, from: infer}}
  tracks: {{use: track, from: people}}
  actions: {{use: rules, from: tracks, with: {{rules: [{{id: seen, when: score > 0.3, hold: 0.2s}}]}}}}
  page: {{use: serve, from: events, with: {{address: "127.0.0.1:{port}"}}}}
"""


def asking(port: int, answers: Any, stop: Stop) -> None:
    """One picture after the other, each as soon as the last is answered."""
    from PIL import Image  # noqa: PLC0415

    file = io.BytesIO()
    Image.effect_noise(_PICTURE, 40).convert("RGB").save(file, "JPEG")
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=90) as client:
        while not stop.is_set():
            with suppress(httpx.HTTPError):
                answers.append(client.post("/api/infer", content=file.getvalue()).status_code)


def _turns(run: Measured, rounds: int, answers: Any) -> list[Phase]:
    return [
        phase
        for _ in range(rounds)
        for phase in (run.phase("nobody asks"), run.phase("somebody asks", None, (asking, answers)))
    ]


def _rows(phases: Sequence[Phase]) -> list[str]:
    """A line of each pair of phases, and the mean."""
    shares = [asked.frames_per_s / alone.frames_per_s for alone, asked in zip(phases[::2], phases[1::2], strict=True)]
    lines = [f"| {number} | {share:.3f} |" for number, share in enumerate(shares, 1)]
    return [*lines, f"| mean | {mean(shares):.3f} |"]


@click.command()
@report_option(TOOL)
@click.option("--cameras", default=2, show_default=True, type=click.IntRange(1), help="So many.")
@click.option("--seconds", default=30.0, show_default=True, type=click.FloatRange(2), help="Of each phase.")
@click.option("--rounds", default=5, show_default=True, type=click.IntRange(1), help="Pairs of phases.")
@click.option("--model", default=_MODEL, show_default=True, help="The model, as in a graph.")
def main(target: Path | None, cameras: int, seconds: float, rounds: int, model: str) -> None:
    """Measure how much of their frames the cameras lose."""
    with tempfile.TemporaryDirectory(prefix="cgasked") as folder, multiprocessing.Manager() as manager:
        answers = manager.list()
        run = Measured(Path(folder), cameras, seconds, _GRAPH.replace("MODEL", model))
        phases = run.phases(lambda run: _turns(run, rounds, answers))
        answered = list(answers)
    options = {"cameras": cameras, "seconds": seconds, "rounds": rounds, "model": model}
    parts = [
        f"{written_by(TOOL, options)} {machine_line()}. {phases[0].frames_per_s:.1f} frames a second while nobody "
        f"asked. {answered.count(200)} pictures of {_PICTURE[0]} x {_PICTURE[1]} were answered, "
        f"{len(answered) - answered.count(200)} were not.",
        "",
        "| pair | frames a second while somebody asks, of those while nobody does |",
        "|---|---|",
        *_rows(phases),
        "",
    ]
    publish("\n".join(parts), target, TOOL)


if __name__ == "__main__":
    main()
