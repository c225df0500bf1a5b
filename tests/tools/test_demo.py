"""The whole demo with real processes, on a few seconds of each camera."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import av
import cv2
import pytest
import yaml

from pipeline.graph import load_graph
from tools.configs import config_path
from tools.demo import PORT, SECONDS, demo_graph

CAMERAS = ["north", "east", "south", "west"]


def test_the_graph_is_right(pulled_model: Path, short_clip: Path) -> None:
    graph = load_graph(config_path("demo.yaml"))
    assert list(graph.cameras) == CAMERAS
    assert {camera.settings.duration_s for camera in graph.cameras.values()} == {SECONDS}


def test_the_demo_changes_its_graph_in_two_places_only() -> None:
    text = config_path("demo.yaml").read_text()
    changed = demo_graph(text, "tcp://127.0.0.1:1234", 3)
    different = [(a, b) for a, b in zip(text.splitlines(), changed.splitlines(), strict=True) if a != b]
    assert [b for _, b in different] == [
        "camera_defaults: {duration_s: 3}",
        '  alarm: {use: sink_socket, from: actions, with: {address: "tcp://127.0.0.1:1234"}}',
    ]
    assert demo_graph(text, f"tcp://127.0.0.1:{PORT}", SECONDS) == text


def test_the_demo_leaves_what_it_says(pulled_model: Path, short_clip: Path, camgraph, tmp_path: Path) -> None:
    out = tmp_path / "d"
    (out / "videos").mkdir(parents=True)
    (out / "demo.yaml").touch()
    (out / "events.jsonl").write_text('{"id": "of an earlier demo"}\n')
    (out / "videos" / "mine.mp4").touch()
    # The port of the graph is taken by somebody else.
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            other.bind(("127.0.0.1", PORT))
            other.listen()
        except OSError:
            pass
        done = camgraph("demo", "--out", out, "--seconds", 3)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert "4 cameras" not in done.stderr
    for camera in CAMERAS:
        with av.open(str(out / "videos" / f"{camera}.mp4")) as video:
            assert sum(1 for _ in video.decode(video=0)) == 30
        assert f"\n{camera}" in done.stderr
    assert (out / "videos" / "mine.mp4").exists()
    events = (out / "events.jsonl").read_text().splitlines()
    received = (out / "socket.jsonl").read_text().splitlines()
    assert sorted(events) == sorted(received)
    assert len(events) >= 4, "people enter the junction and walk on the lawn in these seconds"
    assert {json.loads(line)["data"]["camera"] for line in events} <= set(CAMERAS)
    times = [json.loads(line)["time"] for line in events]
    assert times == sorted(times)
    sheet = cv2.imread(str(out / "contact-sheet.png"))
    assert sheet.shape[1] > 1500
    assert f"{len(events)} lines that another program received over TCP, the same as in events.jsonl" in done.stdout
    assert yaml.safe_load((out / "demo.yaml").read_text())["camera_defaults"] == {"duration_s": 3}
    assert camgraph("check", out / "demo.yaml").returncode == 0


def test_a_folder_that_cannot_be_written_is_said(camgraph, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = camgraph("demo", "--out", tmp_path / "file" / "d")
    assert done.returncode == 3
    assert done.stderr == f"{tmp_path}/file/d: cannot write there: Not a directory; name another with --out\n"
    assert done.stdout == ""


def test_a_folder_of_somebody_elses_is_left_alone(camgraph, tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_text("mine\n")
    done = camgraph("demo", "--out", tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith(f"{tmp_path}: is not empty, and not an earlier demo's folder")
    assert (tmp_path / "events.jsonl").read_text() == "mine\n"


@pytest.mark.parametrize("seconds", ["0", "21", "x"])
def test_only_so_many_seconds(camgraph, seconds: str) -> None:
    done = camgraph("demo", "--seconds", seconds)
    assert done.returncode == 2
    assert "--seconds" in done.stderr
