"""The first graph of docs/graph.md, as somebody copies it: on an ordinary small clip it finds people."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import av
import numpy as np
import pytest

PAGE = Path(__file__).parents[2] / "docs" / "graph.md"


@pytest.fixture
def first_graph(tmp_path: Path, pulled_model: Path) -> Path:
    """`shop.yaml` and `rules.yaml` in `tmp_path`."""
    blocks = re.findall(r"```yaml\n# (\w+\.yaml)\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    for name, text in blocks:
        (tmp_path / name).write_text(text, "utf-8")
    return tmp_path / "shop.yaml"


def test_it_finds_people_on_small_clips(camgraph, first_graph: Path, test_data: Path) -> None:
    folder = first_graph.parent
    shutil.copy(test_data / "videos" / "intel_asl_yes.mkv", folder / "door.mp4")
    shutil.copy(test_data / "videos" / "intel_asl_no.mkv", folder / "till.mp4")
    done = camgraph("run", "shop.yaml", "--name", "first-graph")
    assert done.returncode == 0, done.stderr
    events = [json.loads(line)["data"] for line in (folder / "events.jsonl").read_text().splitlines()]
    assert {(event["camera"], event["action"]) for event in events} >= {("door", "somebody"), ("till", "somebody")}
    assert "looking at how large people are in these pictures" in done.stderr
    assert "no events" not in done.stderr


def test_a_run_that_saw_nobody_says_so(camgraph, first_graph: Path) -> None:
    for name in ("door", "till"):
        _grey_clip(first_graph.parent / f"{name}.mp4", frames=6)
    text = first_graph.read_text()
    first_graph.write_text(
        text.replace("use: preprocess, from: capture", "use: preprocess, from: capture, with: {size: native}")
    )
    done = camgraph("run", "shop.yaml", "--name", "first-graph")
    assert done.returncode == 0, done.stderr
    assert "no events: nobody was found in 12 frames: `prepare` made pictures of `size: native`" in done.stderr
    assert "camgraph help no_events" in done.stderr
    result = camgraph("run", "shop.yaml", "--name", "first-graph", "--json-logs")
    [line] = [line for line in map(json.loads, result.stderr.splitlines()) if line["event"] == "no_events"]
    assert line["why"].startswith("nobody was found in 12 frames")
    assert camgraph("run", "shop.yaml", "--name", "first-graph", "--quiet").stderr == ""


def _grey_clip(path: Path, frames: int) -> None:
    with av.open(str(path), "w") as target:
        stream = target.add_stream("mpeg4", rate=10)
        stream.width, stream.height, stream.pix_fmt = 96, 64, "yuv420p"
        for _ in range(frames):
            target.mux(stream.encode(av.VideoFrame.from_ndarray(np.full((64, 96, 3), 90, np.uint8), format="bgr24")))
        target.mux(stream.encode())
