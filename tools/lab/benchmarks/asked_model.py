"""What cameras lose if somebody asks the model.

    python -m camgraph.tools.lab.benchmarks.asked_model --report docs/service.md

Cameras that a real model cannot keep up with (files in a loop, whose frames wait) take all cores. In one run, in turns,
nobody asks, and somebody sends one picture after another to `POST /api/infer`, without a pause. That run says how many
frames a second the model can see at most. Then the same with live cameras, simulated ones over RTSP, which film a part
of that, or more of it than the model can see: they drop frames, and must lose none more and get no older.
"""

from __future__ import annotations

import io
import multiprocessing
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from math import isfinite
from multiprocessing.synchronize import Event as Stop
from pathlib import Path
from statistics import mean
from typing import Any

import click
import httpx

from camgraph.tools.lab.benchmarks.service import Measured, Phase
from camgraph.tools.lab.figure import Figure, figure_command
from camgraph.tools.scenes.simulator import CameraSettings, ClipSettings, RtspSimulator

_MODEL = "asset:movenet-multipose.onnx"
_PICTURE = (1280, 720)
_FILES = 'loop: true, start_at: "2026-01-01T00:00:00Z"'
_LIVE_SIZE = (640, 360)
_GRAPH = """
version: 1
name: {name}
camera_defaults: {{DEFAULTS}}
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


def _pairs(phases: Sequence[Phase]) -> list[tuple[Phase, Phase]]:
    return list(zip(phases[::2], phases[1::2], strict=True))


def _rows(phases: Sequence[Phase]) -> list[str]:
    """A line of each pair of phases, and the mean."""
    shares = [asked.frames_per_s / alone.frames_per_s for alone, asked in _pairs(phases)]
    lines = [f"| {number} | {share:.3f} |" for number, share in enumerate(shares, 1)]
    return [*lines, f"| mean | {mean(shares):.3f} |"]


def age_ms(ages: Mapping[float, int], part: float) -> float:
    """The age that this part of the frames does not exceed, in ms: between two bounds, in proportion. Pure."""
    left, below = part * sum(ages.values()), 0.0
    for bound, count in sorted(ages.items()):
        if count >= left and count:
            highest = bound if isfinite(bound) else 10 * below
            return 1e3 * (below + (highest - below) * left / count)
        left, below = left - count, bound
    return 0.0


def _live_row(load: float, phases: Sequence[Phase]) -> str:
    """A line of the table: all pairs together."""
    alone, asked = ([pair[which] for pair in _pairs(phases)] for which in (0, 1))
    rates = [mean(phase.inferred_per_s for phase in side) for side in (alone, asked)]
    ages = [sum((Counter(phase.ages or {}) for phase in side), Counter[float]()) for side in (alone, asked)]
    found = [f"{age_ms(of, 0.5):.0f}, {age_ms(of, 0.99):.0f}" for of in ages]
    return f"| {load:.0%} | {rates[0]:.1f} | {rates[1] / rates[0]:.3f} | {found[0]} | {found[1]} |"


def _measured(
    folder: Path, text: str, urls: Sequence[str], seconds: float, rounds: int
) -> tuple[list[Phase], list[int]]:
    """The phases of one run, and what the askers were answered."""
    with multiprocessing.Manager() as manager:
        answers = manager.list()
        run = Measured(folder, urls, seconds, text)
        phases = run.phases(lambda run: _turns(run, rounds, answers))
        return phases, list(answers)


def _live(text: str, cameras: int, fps: float, seconds: float, rounds: int) -> tuple[list[Phase], list[int]]:
    width, height = _LIVE_SIZE
    clip = ClipSettings(fps=round(fps, 2), width=width, height=height)
    settings = [CameraSettings(name=f"cam{number}", clip=clip) for number in range(cameras)]
    with tempfile.TemporaryDirectory(prefix="cgasked") as folder, RtspSimulator(settings) as simulator:
        urls = [simulator.camera(one.name).url for one in settings]
        return _measured(Path(folder), text.replace("DEFAULTS", ""), urls, seconds, rounds)


@figure_command("benchmarks.asked_model")
@click.option("--cameras", default=2, show_default=True, type=click.IntRange(1), help="So many.")
@click.option("--seconds", default=30.0, show_default=True, type=click.FloatRange(2), help="Of each phase.")
@click.option("--rounds", default=5, show_default=True, type=click.IntRange(1), help="Pairs of phases.")
@click.option("--model", default=_MODEL, show_default=True, help="The model, as in a graph.")
@click.option("--load", "loads", multiple=True, type=float, default=(90, 150), help="Of live cameras: percent.")
def main(  # noqa: PLR0917 - click hands options over by name
    figure: Figure, cameras: int, seconds: float, rounds: int, model: str, loads: Sequence[float]
) -> None:
    """Measure how much of their frames the cameras lose."""
    text = _GRAPH.replace("MODEL", model)
    with tempfile.TemporaryDirectory(prefix="cgasked") as folder:
        phases, answered = _measured(
            Path(folder), text.replace("DEFAULTS", _FILES), ["cam.mp4"] * cameras, seconds, rounds
        )
    most = phases[0].frames_per_s
    rows = []
    for load in loads:
        live, more = _live(text, cameras, load / 100 * most / cameras, seconds, rounds)
        rows.append(_live_row(load / 100, live))
        answered += more
    parts = [
        f"{figure.head()} {most:.1f} frames a second while nobody asked. "
        f"{answered.count(200)} pictures of {_PICTURE[0]} x {_PICTURE[1]} were answered, "
        f"{len(answered) - answered.count(200)} were not.",
        "",
        "| pair | frames a second while somebody asks, of those while nobody does |",
        "|---|---|",
        *_rows(phases),
        "",
        f"Live cameras of {_LIVE_SIZE[0]} x {_LIVE_SIZE[1]} that film so much of what the model can see; ages are "
        "those of frames at the end of their way:",
        "",
        "| they film | frames a second that the model sees while nobody asks | while somebody asks, of that | "
        "age p50, p99 (ms) while nobody asks | while somebody asks |",
        "|---|---|---|---|---|",
        *rows,
        "",
    ]
    figure.publish("\n".join(parts))


if __name__ == "__main__":
    main()
