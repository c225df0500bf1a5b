"""What it costs to read a run from Python: processor time of the whole run with and without a reader.

    python -m camgraph.tools.lab.benchmarks.python_reading

Each row is a program that runs the same clip (768x576) through a small model, once for a few of its frames and once
for many: the difference leaves out the cost of starting. The figure is the processor time of a frame, in the program
and all processes of its run, less that of a program that only reads events; its unit is the cost of decoding a frame.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from camgraph.tools.assets import asset_path
from camgraph.tools.lab.figure import Figure, figure_command

FEW, MANY = 100, 700
FPS = 10
EVENTS = "events alone"
READS = {
    EVENTS: "run.events()",
    "tracks()": "run.tracks()",
    "frames(annotated=False)": "run.frames(annotated=False)",
    "frames()": "run.frames()",
    "frames(max_width=384)": "run.frames(max_width=384)",
}
GRAPH = """
version: 1
cameras: {clip: {url: "asset:vtest.avi", duration_s: %d}}
stages:
  capture: {use: capture}
  prepare: {use: preprocess, from: capture, with: {size: native, max_side: 160}}
  infer: {use: infer, from: prepare, threads: 1, with: {model: "asset:movenet-multipose.onnx"}}
  people: {use: decode, from: infer}
  tracks: {use: track, from: people}
  actions: {use: rules, from: tracks, with: {file: rules.yaml}}
"""
RULES = "version: 1\nrules: [{id: somebody, when: age >= 0.5s}]\n"
PROGRAM = """
import resource
import camgraph
run = camgraph.run("reading.yaml", name="python-reading")
for _ in %s:
    pass
used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
print(*(one.ru_utime + one.ru_stime for one in used))
"""
DECODING = """
import sys, time
import av
with av.open(sys.argv[1]) as container:
    container.streams.video[0].thread_type = "NONE"
    frames, began = 0, time.process_time()
    for frame in container.decode(video=0):
        frames += 1
        if frames == int(sys.argv[2]):
            break
print((time.process_time() - began) / frames)
"""


@figure_command("benchmarks.python_reading")
def main(figure: Figure) -> None:
    """Measure what it costs to read a run from Python."""
    with tempfile.TemporaryDirectory(prefix="camgraph-reading-") as name:
        folder = Path(name)
        (folder / "rules.yaml").write_text(RULES)
        decoding_s = float(_output(DECODING, folder, str(asset_path("vtest.avi")), str(MANY)))
        costs = {read: _of_a_frame(call, folder) for read, call in READS.items()}
    base = costs.pop(EVENTS)
    lines = ["| read | added | of that in your program |", "|---|---|---|"]
    for read, (own, children) in costs.items():
        added = own + children - sum(base)
        lines.append(f"| `{read}` | {added / decoding_s:.1f} | {(own - base[0]) / decoding_s:.1f} |")
    figure.publish("\n".join([figure.head(), "", *lines]))


def _of_a_frame(call: str, folder: Path) -> tuple[float, float]:
    """Seconds of processor time that a frame takes: in the program, and in the processes of its run."""
    (few_own, few_children), (own, children) = (_run(call, folder, frames) for frames in (FEW, MANY))
    return (own - few_own) / (MANY - FEW), (children - few_children) / (MANY - FEW)


def _run(call: str, folder: Path, frames: int) -> tuple[float, float]:
    (folder / "reading.yaml").write_text(GRAPH % (frames // FPS))
    own, children = _output(PROGRAM % call, folder).split()
    return float(own), float(children)


def _output(program: str, folder: Path, *arguments: str) -> str:
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)  # noqa: S603 - our own
    return done.stdout


if __name__ == "__main__":
    main()
