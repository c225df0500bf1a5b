"""How soon monitors hear of a stuck model.

    python -m camgraph.tools.lab.proofs.stuck_model [--rounds 3] --report docs/proof.md

A run with two live cameras serves, and `/healthz` is asked ten times a second. The model is harmed in two ways. While a
call of it does not return, the answer must be 503 within so many seconds, and 200 again once the harm is over. If its
process is frozen, it must be red within that time as well, or another process must have taken its place. A camera whose
process is frozen must change nothing: it is a trouble of its own.

Needs `tests/plugin` installed.
"""

from __future__ import annotations

import importlib
import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
import httpx

from camgraph.tools.lab.blinking import write_clip
from camgraph.tools.lab.figure import Figure, figure_command
from camgraph.tools.lab.light_model import SIDE, write_model
from camgraph.tools.lab.report_page import median_and_worst
from camgraph.tools.scenes.simulator import CameraSettings, ClipSettings, RtspSimulator

RED_S = 10.0
_WITHIN_S = 120.0
_LOOK_S = 0.1
_ALONE_S = 12.0
_STUCK = "stuck"
_GRAPH = """
version: 1
name: stuck
cameras:
  hall: {{url: "HALL"}}
  yard: {{url: "YARD"}}
stages:
  capture: {{use: capture}}
  prepare: {{use: preprocess, from: capture, with: {{size: [SIDE, SIDE]}}}}
  infer: {{use: stuck_infer, from: prepare, with: {{model: light.onnx, while_file: STUCK}}}}
  people: {{use: decode_yolo_pose, from: infer}}
  tracks: {{use: track, from: people, with: {{confirm_s: 0}}}}
  actions: {{use: rules, from: tracks, with: {{rules: [{{id: seen, when: score > 0.3, hold: 0.2s}}]}}}}
  page: {{use: serve, from: events, with: {{address: "127.0.0.1:{port}"}}}}
""".replace("SIDE", str(SIDE)).replace("STUCK", _STUCK)


@dataclass
class Found:
    """Seconds until it was noticed, and green again, for each way of harm."""

    red_s: dict[str, list[float]] = field(default_factory=dict)
    green_s: dict[str, list[float]] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    def note(self, way: str, red_s: float, green_s: float) -> None:
        """One round."""
        self.red_s.setdefault(way, []).append(red_s)
        self.green_s.setdefault(way, []).append(green_s)
        if red_s > RED_S:
            self.wrong.append(f"{way}: noticed after {red_s:.1f} s")

    def rows(self) -> Iterator[str]:
        """Of the table."""
        for way, red_s in self.red_s.items():
            yield f"| {way} | {median_and_worst(red_s)} | {median_and_worst(self.green_s[way])} |"


def _seconds_until(run: Any, is_so: Callable[[], bool]) -> float:
    """Raises ClickException if it never is."""
    begun_s = time.monotonic()
    while (took_s := time.monotonic() - begun_s) < _WITHIN_S:
        if is_so():
            return took_s
        time.sleep(_LOOK_S)
    raise click.ClickException(f"nothing within {_WITHIN_S:g} s: {run.get('/api/status').json()['health']}")


def _is_green(run: Any) -> bool:
    return bool(run.get("/healthz").status_code == httpx.codes.OK)


def _restarts(run: Any) -> int:
    return int(run.get("/api/status").json()["processes"]["infer.0"]["restarts"])


@contextmanager
def _call_that_does_not_return(run: Any) -> Iterator[None]:
    (run.folder / _STUCK).touch()
    try:
        yield
    finally:
        (run.folder / _STUCK).unlink()


@contextmanager
def _frozen(run: Any, process: str) -> Iterator[None]:
    """It may be killed meanwhile, as one that hangs."""
    pid = run.get("/api/status").json()["processes"][process]["pid"]
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def _prove(rounds: int) -> Found:
    services, found = importlib.import_module("camgraph_test_stages.services"), Found()
    ways: dict[str, Callable[[Any], Any]] = {
        "a call of the model does not return": _call_that_does_not_return,
        "its process is frozen": lambda run: _frozen(run, "infer.0"),
    }
    with tempfile.TemporaryDirectory(prefix="cgstuck") as name:
        folder = Path(name)
        write_clip(folder / "cam.mp4")
        write_model(folder / "light.onnx", bright=110.0)
        clip = ClipSettings(path=str(folder / "cam.mp4"))
        with RtspSimulator([CameraSettings(name=name, clip=clip) for name in ("hall", "yard")]) as simulator:
            graph = _GRAPH.replace("HALL", simulator.camera("hall").url).replace("YARD", simulator.camera("yard").url)
            with services.serving_run(folder, graph) as run:
                for number in range(rounds):
                    for way, harm in ways.items():
                        _harm(run, way, harm, found)
                        click.echo(f"{number + 1}/{rounds} {way}: noticed after {found.red_s[way][-1]:.1f} s")
                _leave_one_camera(run, found)
    return found


def _harm(run: Any, way: str, harm: Callable[[Any], Any], found: Found) -> None:
    _seconds_until(run, lambda: _is_green(run))
    before = _restarts(run)
    with harm(run):
        noticed_s = _seconds_until(run, lambda: not _is_green(run) or _restarts(run) > before)
    found.note(way, noticed_s, _seconds_until(run, lambda: _is_green(run)))


def _leave_one_camera(run: Any, found: Found) -> None:
    """Freeze the process of one camera: the run is not down for that, but says so."""
    with _frozen(run, "capture.hall"):
        until_s, reasons = time.monotonic() + _ALONE_S, set()
        while time.monotonic() < until_s:
            if not _is_green(run):
                found.wrong.append("one camera that is frozen makes the run red")
                return
            reasons.add(run.get("/api/status").json()["health"]["level"])
            time.sleep(_LOOK_S)
    if "degraded" not in reasons:
        found.wrong.append("nothing tells that a camera is frozen")


@figure_command("proofs.stuck_model")
@click.option("--rounds", default=3, show_default=True, type=click.IntRange(1), help="Of each way of harm.")
def main(figure: Figure, rounds: int) -> None:
    """Harm the model, and wait until health is red; status 1 if that takes too long."""
    figure.takes(60.0 + 2 * rounds * RED_S, f"{rounds} rounds of two ways of harm")
    found = _prove(rounds)
    verdict = [f"- {one}" for one in found.wrong] or [
        f"**Noticed within {RED_S:g} s each time, green afterwards. A frozen camera makes nothing red, and is told.**"
    ]
    parts = [
        figure.head(),
        "",
        *verdict,
        "",
        "| | red, or another process begun, after | green again, once it was over, after |",
        "|---|---|---|",
        *found.rows(),
        "",
    ]
    figure.publish("\n".join(parts), found.wrong)


if __name__ == "__main__":
    main()
