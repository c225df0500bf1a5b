"""What camgraph says of files and folders that are closed to the user who names them; HOME may be one."""

from __future__ import annotations

from collections.abc import Callable

import av
import pytest
from camgraph_test_stages.strangers import Person

CLOSED = """
version: 1
cameras: {{door: {{url: {clip}}}}}
stages:
  capture: {{use: capture}}
  prepare: {{use: preprocess, from: capture}}
  infer: {{use: infer, from: prepare, with: {{model: "{model}"}}}}
  people: {{use: decode, from: infer}}
  video: {{use: sink_video, inputs: {{frames: capture, people: people}}, with: {{path: "out/{{camera}}.mp4"}}}}
"""


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (("check", "model.yaml"), 2),
        (("run", "model.yaml"), 2),
        (("graph", "model.yaml"), 2),
        (("check", "clip.yaml"), 2),
        (("watch", "asset:vtest.avi"), 2),
        (("watch", "clip.mp4", "--print-graph"), 2),
        (("model", "inspect", "asset:movenet-multipose.onnx"), 2),
        (("model", "bench", "asset:movenet-multipose.onnx"), 2),
        (("assets", "list"), 3),
        (("assets", "pull", "vtest.avi"), 3),
    ],
    ids=str,
)
def test_a_home_that_is_closed_to_this_user_is_told(
    person: Callable[[], Person], words: tuple[str, ...], status: int
) -> None:
    """As with `sudo -u` and HOME of before: what is looked for below it cannot even be missed."""
    owner, stranger = person(), person()
    owner.write("model.yaml", CLOSED.format(clip="clip.mp4", model="asset:movenet-multipose.onnx"))
    owner.write("clip.yaml", CLOSED.format(clip="asset:vtest.avi", model="model.onnx"))
    with av.open(str(owner.folder / "clip.mp4"), "w") as target:
        stream = target.add_stream("mpeg4", rate=5)
        stream.width = stream.height = 32
        target.mux(stream.encode(av.VideoFrame(32, 32, "yuv420p")))
        target.mux(stream.encode())
    done = owner.camgraph(*words, HOME=str(stranger.folder))
    assert "Traceback" not in done.stderr
    assert done.returncode == status, done.stderr
    assert (
        f"the folder follows from HOME ({stranger.folder}): set that, or CAMGRAPH_CACHE_DIR, to one that" in done.stderr
    )


@pytest.mark.parametrize(
    "words",
    [
        ("check", "{closed}/g.yaml"),
        ("watch", "{closed}/a.mp4"),
        ("watch", "asset:vtest.avi", "--video", "{closed}/videos"),
        ("watch", "asset:vtest.avi", "--rules", "{closed}/r.yaml"),
        ("watch", "asset:vtest.avi", "--events", "{closed}/e.jsonl"),
        ("farm", "{closed}/a.mp4"),
        ("demo", "--out", "{closed}/d"),
        ("model", "inspect", "{closed}/m.onnx"),
        ("model", "quantize", "{closed}/m.onnx", "{closed}/o.onnx", "--frames", "{closed}/a.mp4"),
        ("model", "bench", "{closed}/m.onnx", "--json", "{closed}/b.json"),
        ("run", "{closed}/g.yaml", "--env-file", "{closed}/e"),
    ],
    ids=" ".join,
)
def test_closed_folder_is_reported_without_a_crash(person: Callable[[], Person], words: tuple[str, ...]) -> None:
    owner, stranger = person(), person()
    done = owner.camgraph(*(word.format(closed=stranger.folder / "in") for word in words))
    assert "Traceback" not in done.stderr
    assert done.returncode in (2, 3), done.stderr
