"""The whole demo with real processes, on a few seconds of each camera."""

from __future__ import annotations

import json
import os
import re
import socket
import tempfile
from pathlib import Path

import av
import cv2
import pytest
import yaml

from camgraph.pipeline.graph import load_graph
from camgraph.pipeline.system.disk import try_lock
from camgraph.pipeline.system.run_folder import RunFolder
from camgraph.tools.commands.configs import config_path
from camgraph.tools.commands.demo import CAMERAS as CAMERA_COUNT
from camgraph.tools.commands.demo import FPS, PORT, SECONDS, _free_name, _how_long, gpu_graph, kept_graph, sending_graph

CAMERAS = ["north", "east", "south", "west"]


def test_the_graph_is_right(pulled_model: Path, short_clip: Path) -> None:
    graph = load_graph(config_path("demo.yaml"))
    assert list(graph.cameras) == CAMERAS
    assert {camera.settings.duration_s for camera in graph.cameras.values()} == {SECONDS}


def test_the_demo_says_what_it_will_do_and_how_long_that_takes() -> None:
    assert _how_long(20, 2) == "watching 4 cameras for 20 s each, 800 frames: about 2 min on 2 quiet cores"
    assert _how_long(3, 8) == "watching 4 cameras for 3 s each, 120 frames: about 13 s on 8 quiet cores"
    assert (len(CAMERAS), 10) == (CAMERA_COUNT, FPS)


def test_the_demo_changes_its_graph_in_two_places_only() -> None:
    text = config_path("demo.yaml").read_text()
    changed = kept_graph(text, "tcp://127.0.0.1:1234", 3)
    different = [(a, b) for a, b in zip(text.splitlines(), changed.splitlines(), strict=True) if a != b]
    assert [b for _, b in different] == [
        "camera_defaults: {duration_s: 3}",
        '  alarm: {use: sink_socket, from: actions, with: {address: "tcp://127.0.0.1:1234", listen: true}}',
    ]
    ran = sending_graph(changed)
    assert [b for a, b in zip(changed.splitlines(), ran.splitlines(), strict=True) if a != b] == [
        '  alarm: {use: sink_socket, from: actions, with: {address: "tcp://127.0.0.1:1234"}}',
    ]
    assert kept_graph(text, f"tcp://127.0.0.1:{PORT}", SECONDS) == text
    on_gpu = gpu_graph(text)
    assert [b for a, b in zip(text.splitlines(), on_gpu.splitlines(), strict=True) if a != b] == [
        '    with: {model: "asset:movenet-multipose.onnx", providers: [cuda, cpu]}',
    ]


@pytest.mark.lab
@pytest.mark.timeout(900)
def test_demo_leaves_its_files_and_a_rerunnable_graph(
    pulled_model: Path, short_clip: Path, camgraph, tmp_path: Path
) -> None:
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
        done = camgraph("demo", "--out", out, "--seconds", 2)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout.splitlines()[0].startswith("watching 4 cameras for 2 s each, 80 frames: about ")
    assert re.search(r" \d+ %", done.stderr), "how far it is"
    for camera in CAMERAS:
        with av.open(str(out / "videos" / f"{camera}.mp4")) as video:
            assert sum(1 for _ in video.decode(video=0)) == 20
        assert f"\n{camera}" in done.stderr
    assert (out / "videos" / "mine.mp4").exists()
    events = (out / "events.jsonl").read_text().splitlines()
    received = (out / "socket.jsonl").read_text().splitlines()
    assert sorted(events) == sorted(received)
    assert len(events) >= 2, "people enter the junction and walk on the lawn in these seconds"
    assert {json.loads(line)["data"]["camera"] for line in events} <= set(CAMERAS)
    times = [json.loads(line)["time"] for line in events]
    assert times == sorted(times)
    sheet = cv2.imread(str(out / "contact-sheet.png"))
    assert sheet.shape[1] > 1500
    assert f"{len(events)} lines that another program received over TCP, the same as in events.jsonl" in done.stdout
    assert yaml.safe_load((out / "demo.yaml").read_text())["camera_defaults"] == {"duration_s": 2}
    # Nobody receives what the graph sends when somebody runs it later.
    assert f" run {out}/demo.yaml\n" in done.stdout
    again = camgraph("run", out / "demo.yaml")
    assert again.returncode == 0, again.stderr
    assert (out / "events.jsonl").read_text().splitlines() == events


def test_a_demo_beside_a_run_called_demo_takes_another_name(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:  # paths of sockets are short
        monkeypatch.setenv("CAMGRAPH_RUN_DIR", f"{folder}/runs")
        assert _free_name() == "demo"
        first = RunFolder("demo")
        assert _free_name() == "demo-2"
        second = RunFolder("demo-2")
        assert _free_name() == "demo-3"
        assert capsys.readouterr().err.splitlines()[-1] == "a run called demo is going on: this one is called demo-3"
        first.close()
        second.close()
        assert _free_name() == "demo"


def test_two_demos_do_not_write_into_one_folder(camgraph, tmp_path: Path) -> None:
    out = tmp_path / "d"
    out.mkdir()
    (out / "demo.yaml").touch()
    (out / "events.jsonl").write_text("of the other\n")
    other = os.open(out, os.O_RDONLY)
    assert try_lock(other)
    done = camgraph("demo", "--out", out)
    os.close(other)
    assert done.returncode == 2
    assert done.stderr == f"{out}: another demo is writing into this folder; wait for it, or name another with --out\n"
    assert (out / "events.jsonl").read_text() == "of the other\n"


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
