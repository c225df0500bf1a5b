"""`camgraph watch` as a person calls it: real processes, the real model, a clip with people."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import av
import cv2
import numpy as np
import pytest
from camgraph_test_stages.waiting import until

from camgraph.pipeline.system.paths import runs_folder

RULES = """\
version: 1
rules:
  - {id: seen, when: age >= 0.4s, once: true}
"""
SECRET = "ge#heim"


@pytest.fixture(autouse=True)
def rules(tmp_path: Path) -> Path:
    """Somebody is there: it happens in every clip with people."""
    path = tmp_path / "rules.yaml"
    path.write_text(RULES)
    return path


@pytest.fixture
def light(two_people: Path) -> tuple[str, str]:
    """Options: a model that sees two people in every picture, and takes no time."""
    return "--model", str(two_people)


@pytest.fixture
def name() -> str:
    """A run's name that no other test uses at the same time."""
    return f"w{os.getpid()}"


def actions(text: str) -> list[tuple[str, str]]:
    events = [json.loads(line) for line in text.splitlines()]
    return [(event["data"]["camera"], event["data"]["action"]) for event in events]


def test_a_video_becomes_events_a_video_and_tracks(
    camgraph, short_clip: Path, pulled_model, tmp_path: Path, name
) -> None:
    wide = {"COLUMNS": "300"}  # no path is broken into two lines
    outputs = ("--video", "out/v", "--tracks", "out/tracks.txt", "--max-fps", 2.5)
    done = camgraph("watch", short_clip, "--rules", "rules.yaml", *outputs, "--name", name, **wide)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    events = actions((tmp_path / "events.jsonl").read_text())
    assert len(events) >= 3
    assert set(events) == {("square", "seen")}
    with av.open(str(tmp_path / "out" / "v" / "square.mp4")) as video:
        assert sum(1 for _ in video.decode(video=0)) == 13
    rows = [line.split(",") for line in (tmp_path / "out" / "tracks.txt").read_text().splitlines()]
    assert {int(row[0]) for row in rows} <= set(range(1, 26, 2))
    assert len(rows) > 13
    assert f"{tmp_path}/out/tracks.txt" in done.stderr
    assert f"{tmp_path}/events.jsonl" in done.stderr
    assert f"{name}: 13 frames in " in done.stderr
    assert "looking at how large people are" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_video_of_an_earlier_run_stays_until_told_otherwise(
    camgraph, short_clip: Path, light, tmp_path: Path, name
) -> None:
    def watched(*more: str) -> str:
        few = (*light, "--max-fps", 1, "--single-process")
        asked = ("watch", short_clip, *few, "--video", "v", "--name", name)
        done = camgraph(*asked, *more, COLUMNS="300")
        assert done.returncode == 0, done.stderr
        return done.stderr

    message = "v: a camera with a video there gets another one, with a number (--overwrite replaces it)\n"
    assert message not in watched()
    first = (tmp_path / "v" / "square.mp4").read_bytes()
    second = watched()
    assert message in second
    assert f"{tmp_path}/v/square.2.mp4" in second, "the summary says where it is"
    assert (tmp_path / "v" / "square.mp4").read_bytes() == first
    third = watched("--overwrite")
    assert message not in third
    assert f"{tmp_path}/v/square.mp4" in third
    assert sorted(path.name for path in (tmp_path / "v").iterdir()) == ["square.2.mp4", "square.mp4"]


def test_the_printed_graph_is_what_runs(camgraph, short_clip, light, tmp_path: Path, name) -> None:
    """Kept in another folder, and run in one process and in many: the same events, byte for byte."""
    asked = ("watch", short_clip, "--rules", "rules.yaml", *light, "--max-fps", "2.5", "--name", name)
    printed = camgraph(*asked, "--single-process", "--print-graph")
    assert printed.returncode == 0
    assert not (tmp_path / "events.jsonl").exists()
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "g.yaml").write_text(printed.stdout)
    assert camgraph("check", "kept/g.yaml").returncode == 0
    ran = camgraph("run", "kept/g.yaml")
    assert ran.returncode == 0, ran.stderr
    watched = camgraph(*asked, "--quiet")
    assert (watched.returncode, watched.stdout) == (0, "")
    events = (tmp_path / "events.jsonl").read_text()
    assert len(events.splitlines()) >= 2
    assert (tmp_path / "kept" / "events.jsonl").read_text() == events
    assert f"{name}: 13 frames" in ran.stderr


def test_pictures_go_to_standard_output_and_nothing_else_does(
    camgraph, short_clip, light, tmp_path: Path, name
) -> None:
    (tmp_path / "yard").mkdir()
    with av.open(str(short_clip)) as video:
        for index, frame in zip(range(8), video.decode(video=0), strict=False):
            cv2.imwrite(str(tmp_path / "yard" / f"{index}.png"), frame.to_ndarray(format="bgr24"))
    rest = ("--rules", "rules.yaml", *light, "--events", "-", "--name", name)
    done = camgraph("watch", "yard", *rest)
    assert done.returncode == 0, done.stderr
    assert set(actions(done.stdout)) == {("yard", "seen")}
    assert list(tmp_path.glob("*.jsonl")) == []
    alone = camgraph("watch", "yard", *rest, "--single-process", "--overwrite")
    assert (alone.returncode, alone.stdout) == (0, done.stdout)


def test_photographs_are_judged_one_by_one(camgraph, short_clip, light, tmp_path: Path, name) -> None:
    (tmp_path / "photos").mkdir()
    with av.open(str(short_clip)) as video:
        for place, frame in zip(("door", "hall", "yard"), video.decode(video=0), strict=False):
            cv2.imwrite(str(tmp_path / "photos" / f"{place}.png"), frame.to_ndarray(format="bgr24"))
    rest = (*light, "--name", name)
    done = camgraph("watch", "photos", "--events", "-", *rest, COLUMNS="300")
    assert done.returncode == 0, done.stderr
    assert "photos: photographs, each judged by itself" in done.stderr
    assert "cannot be true" not in done.stderr
    data = [json.loads(line)["data"] for line in done.stdout.splitlines()]
    assert {one["frame"]["seq"] for one in data} == {0, 1, 2}, "there are people in each of them"
    assert {one["phase"] for one in data} == {"single"}
    assert all(one["evidence"] and one["people"] for one in data)
    (tmp_path / "slow.yaml").write_text("version: 1\nrules: [{id: slow, when: score > 0, for: 1s}]\n")
    printed = camgraph("watch", "photos", "--rules", "slow.yaml", "--print-graph", *rest)
    (tmp_path / "graph.yaml").write_text(printed.stdout)
    checked = camgraph("check", "graph.yaml")
    assert checked.returncode == 0, checked.stderr
    assert "photos: 3 photographs, each judged by itself" in checked.stdout
    assert "actions: the rule slow cannot be true of photos: it asks for `for: 1s`" in checked.stdout


def test_events_are_appended_unless_overwrite(camgraph, short_clip, light, tmp_path: Path, name) -> None:
    kept = '{"id": "kept"}\n'
    (tmp_path / "e.jsonl").write_text(kept)
    few = (*light, "--max-fps", 1, "--single-process")
    asked = ("watch", short_clip, *few, "--events", "e.jsonl", "--name", name)
    done = camgraph(*asked)
    assert done.returncode == 0, done.stderr
    assert "e.jsonl: new events are added to those in the file (--overwrite replaces it)\n" in done.stderr
    assert (tmp_path / "e.jsonl").read_text().startswith(kept)
    done = camgraph(*asked, "--overwrite")
    assert "come behind" not in done.stderr
    assert not (tmp_path / "e.jsonl").read_text().startswith(kept)


def test_what_is_damaged_of_a_video_is_said_also_when_quiet(
    camgraph, short_clip: Path, light, tmp_path: Path, name
) -> None:
    data = bytearray(short_clip.read_bytes())
    middle = len(data) // 2
    data[middle : middle + len(data) // 8] = b"\x5a" * (len(data) // 8)
    (tmp_path / "hurt.mp4").write_bytes(data)
    done = camgraph("watch", "hurt.mp4", *light, "--quiet", "--single-process", "--name", name)
    assert (done.returncode, done.stdout) == (0, "")
    [line] = done.stderr.splitlines()
    assert re.search(r"pictures_damaged +.*camera=hurt damaged=[1-9][0-9]* left_out=[0-9]+ of=25", line)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["foo://v:geheim@h/x"], "foo://***@h/x: unknown protocol `foo`"),
        (["CLIP", "rtsp:/v:geheim@h/x"], "SOURCE 2: no such file, and no address either: an address has two slashes"),
        (["no.mp4"], "no such file or folder: {}/no.mp4"),
        (["rules.yaml"], "{}/rules.yaml: cannot be read as a video"),
        (["."], "{}: this folder holds neither videos nor pictures"),
        (["*.mp4"], "nothing fits this pattern"),
        (["77"], "77: the camera /dev/video77 is meant, and there is no such device ("),
        (["CLIP", "rtsp://v:geheim@127.0.0.1/x"], "live cameras (rtsp://***@127.0.0.1/x) and files ("),
        (["CLIP", "--events", "."], "--events: {}: is a folder, expected a file"),
        (["CLIP", "--events", "/nowhere/e.jsonl"], "--events: /nowhere: no such folder"),
        (["CLIP", "--video", "rules.yaml"], "--video rules.yaml: is a file, expected a folder"),
        (["CLIP", "--rules", "no.yaml"], "there is no rules file {}/no.yaml"),
        (["CLIP", "--rules", "wrong.yaml"], "{}/wrong.yaml:4:20: "),
        *(
            (["CLIP", option, f"http://v:geheim@127.0.0.1/{file}"], f"http://***@127.0.0.1/{file}: is an address")
            for option, file in (("--rules", "r.yaml"), ("--events", "e.jsonl"), ("--tracks", "t.txt"))
        ),
        (["CLIP", "--video", "http://v:geheim@h/x"], "http://***@h/x/camera.mp4: is an address"),
        (["CLIP", "--env-file", "http://v:geheim@h/x"], "http://***@h/x: is an address, expected the path of a file"),
        (["CLIP", "--model", "no.onnx"], "--model no.onnx: neither an ONNX file nor the name of an asset"),
        (["CLIP", "--model", "rules.yaml"], "{}/rules.yaml: cannot be read as an ONNX model"),
        (["no.mp4", "--name", "a b"], "Invalid value for '--name': 'a b' cannot be the name of a run"),
        (["no.mp4", "--name", "a/b"], "Invalid value for '--name': 'a/b' cannot be the name of a run"),
        (["no.mp4", "--name", ""], "Invalid value for '--name'"),
        (["no.mp4", "--max-fps", "nan"], "Invalid value for '--max-fps': nan is no number of frames"),
        (["no.mp4", "--max-fps", "inf"], "Invalid value for '--max-fps'"),
        (["CLIP", "--max-fps", "0"], "Invalid value for '--max-fps'"),
        ([], "Missing argument 'SOURCE...'"),
    ],
)
def test_mistakes_are_told_before_anything_runs(
    camgraph_here, short_clip, pulled_model, tmp_path: Path, arguments: list[str], message: str
) -> None:
    (tmp_path / "wrong.yaml").write_text("version: 1\nrules:\n  - id: a\n    when: nose.y < nose.z\n")
    done = camgraph_here("watch", *(str(short_clip) if word == "CLIP" else word for word in arguments))
    assert (done.returncode, done.stdout) == (2, "")
    assert message.format(tmp_path) in done.stderr
    assert "Traceback" not in done.stderr
    assert "geheim" not in done.stderr
    assert not (tmp_path / "events.jsonl").exists()
    assert not (tmp_path / "http:").exists()


def test_quoted_pattern_is_expanded(camgraph, short_clip: Path, light, tmp_path: Path, name) -> None:
    (tmp_path / "clips").mkdir()
    for file in ("a.mp4", "b.mp4"):
        shutil.copy(short_clip, tmp_path / "clips" / file)
    asked = ("--rules", "rules.yaml", *light, "--max-fps", 1, "--name", name)
    done = camgraph("watch", "clips/*.mp4", *asked)
    assert done.returncode == 0, done.stderr
    assert set(actions((tmp_path / "events.jsonl").read_text())) == {("a", "seen"), ("b", "seen")}
    (tmp_path / "clips" / "notes.txt").write_text("dear diary")
    done = camgraph("watch", "clips", *asked, "--overwrite", "--single-process")
    assert done.returncode == 0, done.stderr
    assert "clips: 2 of its files are watched, a camera each; left out: notes.txt\n" in done.stderr
    assert set(actions((tmp_path / "events.jsonl").read_text())) == {("a", "seen"), ("b", "seen")}
    assert list((tmp_path / "state" / "camgraph").iterdir()) == []


def test_a_model_that_finds_no_keypoints_is_refused(camgraph, test_data: Path) -> None:
    clip, model = test_data / "videos" / "intel_asl_yes.mkv", test_data / "models" / "yolox_nano_bigisland.onnx"
    done = camgraph("watch", clip, "--model", model)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"{model}: it finds no keypoints (yolox: 3549 rows, one for each cell of 416 x 416")


def test_another_pose_model_and_the_rules_that_camgraph_brings(camgraph, test_data: Path, tmp_path: Path, name) -> None:
    clip, model = test_data / "videos" / "intel_asl_yes.mkv", test_data / "models" / "yolo11n-pose_640.onnx"
    done = camgraph("watch", clip, "--model", model, "--max-fps", 5, "--name", name)
    assert done.returncode == 0, done.stderr
    assert ("intel_asl_yes", "person_appears") in actions((tmp_path / "events.jsonl").read_text())


def test_a_script_is_not_kept_waiting_for_a_model(camgraph, short_clip: Path, tmp_path: Path) -> None:
    cache = str(tmp_path / "cache")
    done = camgraph("watch", short_clip, XDG_CACHE_HOME=cache)
    assert done.returncode == 2
    assert done.stderr == (
        "the model movenet-multipose.onnx is not on this machine; "
        "get it with: camgraph assets pull movenet-multipose.onnx\n"
    )
    printed = camgraph("watch", short_clip, "--print-graph", XDG_CACHE_HOME=cache)
    assert printed.returncode == 0
    assert "movenet-multipose.onnx" in printed.stdout


def children_of(process: subprocess.Popen[str]) -> list[str]:
    return Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()


def wait_while_it_runs(process: subprocess.Popen[Any], condition: Callable[[], object], log_file: Path) -> None:
    """Wait until the condition is true; fails with the text of the process if that ends before."""

    def is_so() -> object:
        assert process.poll() is None, log_file.read_text()
        return condition()

    until(is_so, 120, log_file.read_text, every_s=0.02)


def test_an_interrupt_while_it_starts_is_no_error(short_clip: Path, light, tmp_path: Path, name) -> None:
    """As Ctrl-C on a terminal does it: to the whole group, also to children that have just been started."""
    command = [
        sys.executable,
        "-m",
        "camgraph.tools.cli",
        "watch",
        short_clip,
        *light,
        "--events",
        "-",
        "--name",
        name,
    ]
    child = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, start_new_session=True)
    until(lambda: len(children_of(child)) >= 4)
    os.killpg(child.pid, signal.SIGINT)
    _, output = child.communicate(timeout=60)
    assert child.returncode == 130, output
    assert "Traceback" not in output


@pytest.mark.parametrize("source", ["a file", "http://127.0.0.1:1/x"])
def test_what_a_killed_one_has_left_is_removed_by_the_next(
    camgraph, short_clip: Path, light, tmp_path: Path, name, source: str
) -> None:
    """Which has another events file, and so nothing in common with it."""
    watched = str(short_clip) if source == "a file" else source
    command = [
        sys.executable,
        "-m",
        "camgraph.tools.cli",
        "watch",
        watched,
        *light,
        "--events",
        "killed.jsonl",
    ]
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")}
    state = tmp_path / "state" / "camgraph"
    with (tmp_path / "said").open("w") as output:
        child = subprocess.Popen(
            [*command, "--name", name], cwd=tmp_path, env=environment, stderr=output, stdout=output
        )
        try:
            wait_while_it_runs(child, lambda: list(state.glob("*/outbox.sqlite")), tmp_path / "said")
            processes = children_of(child)
        finally:
            child.kill()
            child.wait()
    until(lambda: not any(Path(f"/proc/{process}").exists() for process in processes), 120)
    assert [path.name for path in state.glob("*/lock")] == ["lock"]
    done = camgraph("watch", short_clip, *light, "--max-fps", 1, "--events", "-", "--name", f"{name}-2")
    assert done.returncode == 0, done.stderr
    assert list(state.iterdir()) == []


class Live(BaseHTTPRequestHandler):
    """A camera that sends pictures of noise, ten a second, to who knows the password."""

    def do_GET(self) -> None:
        if self.headers.get("Authorization") is None:
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="camera"')
            self.end_headers()
            return
        self.send_response(200)
        self.send_header("Content-Type", "multipart/x-mixed-replace; boundary=frame")
        self.end_headers()
        noise = np.random.default_rng(0).integers(0, 256, (120, 160, 3), dtype=np.uint8)
        jpeg = cv2.imencode(".jpg", noise)[1].tobytes()
        head = f"--frame\r\nContent-Type: image/jpeg\r\nContent-Length: {len(jpeg)}\r\n\r\n".encode()
        with contextlib.suppress(OSError):
            while not self.server.over.wait(0.1):  # type: ignore[attr-defined]
                self.wfile.write(head + jpeg + b"\r\n")

    def log_message(self, *_: Any) -> None:
        """Says nothing."""


@pytest.fixture
def live() -> Iterator[str]:
    """Host and port of a camera."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Live) as server:
        server.over = threading.Event()  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield f"127.0.0.1:{server.server_port}"
        server.over.set()  # type: ignore[attr-defined]
        server.shutdown()
        thread.join()


def test_live_camera_until_interrupt_hides_password(camgraph, live: str, light, tmp_path: Path, name) -> None:
    address = f"http://viewer:ge%23heim@{live}/"
    printed = camgraph("watch", address, *light, "--print-graph", "--name", name)
    assert printed.returncode == 0, printed.stderr
    assert f"http://viewer:${{CAMERA_1_PASSWORD}}@{live}/" in printed.stdout
    assert "heim" not in printed.stdout + printed.stderr
    (tmp_path / "g.yaml").write_text(printed.stdout)
    assert camgraph("check", "g.yaml", CAMERA_1_PASSWORD=SECRET).returncode == 0
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")}
    command = [sys.executable, "-m", "camgraph.tools.cli", "watch", address, *light, "--name", name, "--max-fps", "5"]
    with (tmp_path / "said").open("w") as log_file:
        child = subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=log_file, stdout=log_file)
        try:
            status = wait_for_frames(camgraph, name, 5)
            child.send_signal(signal.SIGINT)
            assert child.wait(timeout=60) == 130
        finally:
            child.kill()
            child.wait()
    output = (tmp_path / "said").read_text()
    assert re.search(rf"^{name}: \d+ frames", output, re.MULTILINE)
    assert "heim" not in output + json.dumps(status)
    assert not (runs_folder() / name).exists()


def test_passwords_may_come_from_a_file(camgraph, light, tmp_path: Path, name) -> None:
    (tmp_path / "door.env").write_text(f"DOOR={SECRET}\n")
    (tmp_path / "door.env").chmod(0o644)
    asked = ("watch", "http://viewer:${DOOR}@127.0.0.1:1/x", *light, "--print-graph", "--name", name)
    refused = camgraph(*asked)
    assert (refused.returncode, "the environment variable DOOR is not set" in refused.stderr) == (2, True)
    printed = camgraph(*asked, "--env-file", "door.env")
    assert printed.returncode == 0, printed.stderr
    assert "http://viewer:${DOOR}@127.0.0.1:1/x" in printed.stdout
    assert SECRET not in printed.stdout + printed.stderr
    assert "door.env contains secrets, and has mode 0644" in printed.stderr
    (tmp_path / "g.yaml").write_text(printed.stdout)
    assert camgraph("check", "g.yaml", "--env-file", "door.env").returncode == 0


@pytest.mark.parametrize("processes", [(), ("--single-process",)])
def test_unreachable_camera_is_an_event(light, tmp_path: Path, name, processes: tuple[str, ...]) -> None:
    command = [
        sys.executable,
        "-m",
        "camgraph.tools.cli",
        "watch",
        "http://127.0.0.1:1/x",
        *light,
        "--events",
        "w.jsonl",
        *processes,
    ]
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")}
    written = tmp_path / "w.jsonl"
    with (tmp_path / "said").open("w") as output:
        child = subprocess.Popen(
            [*command, "--name", name], cwd=tmp_path, env=environment, stderr=output, stdout=output
        )
        try:
            wait_while_it_runs(child, lambda: written.exists() and written.read_text(), tmp_path / "said")
            child.send_signal(signal.SIGINT)
            assert child.wait(timeout=60) == 130
        finally:
            child.kill()
            child.wait()
    types = [json.loads(line)["type"] for line in written.read_text().splitlines()]
    assert types == ["camgraph.camera.lost", "camgraph.camera.ended"]
    assert "in no sink" not in (tmp_path / "said").read_text()


def wait_for_frames(camgraph: Any, run: str, count: int) -> dict[str, Any]:
    """The run's status, once its camera has given so many frames."""

    def found() -> dict[str, Any] | None:
        answer = camgraph("status", "--name", run, "--json")
        status: dict[str, Any] = json.loads(answer.stdout) if answer.returncode == 0 else {"cameras": {}}
        return status if sum(camera["frames"] for camera in status["cameras"].values()) >= count else None

    status = until(found)
    assert status
    return status
