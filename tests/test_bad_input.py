"""Bad input through the real command: a clear message, the right exit status, no traceback, and no harm to others."""

from __future__ import annotations

import json
import os
import pty
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import av
import numpy as np
import onnx
import pytest
from camgraph_test_stages.waiting import until
from onnx import TensorProto, helper

GRAPH = """
version: 1
name: bad{pid}
cameras:
  good: {{url: good.mp4}}
  odd: {{url: {url}}}
stages:
  capture: {{use: capture}}
  prepare: {{use: preprocess, from: capture, with: {{size: [64, 64]}}}}
  infer: {{use: infer, from: prepare, with: {{model: {model}}}}}
  people: {{use: decode_yolo_pose, from: infer}}
  tracks: {{use: track, from: people}}
  actions: {{use: rules, from: tracks, with: {{rules: [{{id: seen, when: score > 0.1, update: 100ms}}]}}}}
  log: {{use: sink_jsonl, from: actions, with: {{path: {events}}}}}
processes: {processes}
"""
FRAMES = 30


def write_clip(path: Path, frames: int = FRAMES) -> Path:
    """Noise, so that packets are large enough to be damaged."""
    with av.open(str(path), "w", options={"movflags": "+faststart"}) as container:
        stream = container.add_stream("libx264", rate=10, options={"g": "10"})
        stream.width, stream.height, stream.pix_fmt = 96, 64, "yuv420p"
        for index in range(frames):
            noise = np.random.default_rng(index).integers(0, 255, (64, 96, 3), np.uint8)
            frame = av.VideoFrame.from_ndarray(noise, format="rgb24")
            frame.pts, frame.time_base = index, Fraction(1, 10)
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return path


def write_model(path: Path, rows: int) -> Path:
    """A model that says the same of every picture: `rows` x 4 candidates, of which the first is a sure person."""
    reported = np.zeros((1, rows, 4), np.float32)
    reported[0, :5, 0] = (32, 32, 20, 40, 0.9)
    nodes = [
        helper.make_node("ReduceMean", ["images"], ["mean"], keepdims=0),
        helper.make_node("Mul", ["mean", "zero"], ["nothing"]),
        helper.make_node("Add", ["said", "nothing"], ["output0"]),
    ]
    graph = helper.make_graph(
        nodes,
        "says",
        [helper.make_tensor_value_info("images", TensorProto.FLOAT, [1, 3, 64, 64])],
        [helper.make_tensor_value_info("output0", TensorProto.FLOAT, [1, rows, 4])],
        [
            helper.make_tensor("said", TensorProto.FLOAT, reported.shape, reported.ravel()),
            helper.make_tensor("zero", TensorProto.FLOAT, [], [0.0]),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, str(path))
    return path


@dataclass(frozen=True)
class Place:
    """A folder with a good clip and a good model, and the command in it."""

    folder: Path
    environment: dict[str, str]

    def write(self, **changes: str) -> None:
        usual = {"url": "good.mp4", "model": "pose.onnx", "events": "events.jsonl", "processes": "compact"}
        (self.folder / "graph.yaml").write_text(GRAPH.format(**{"pid": os.getpid(), **usual, **changes}))

    def camgraph(
        self, *arguments: str, prefix: Sequence[str] = (), before: Callable[[], None] | None = None
    ) -> tuple[int, str]:
        """The exit status, and all that was said."""
        ran = subprocess.run(
            [*prefix, sys.executable, "-m", "camgraph.tools.cli", *arguments],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=200,
            preexec_fn=before,
            check=False,
        )
        output = ran.stdout + ran.stderr
        assert "Traceback" not in output
        return ran.returncode, output

    def events(self, name: str = "events.jsonl") -> dict[str, int]:
        """How many frames of each camera are told of; every line is whole."""
        lines = (self.folder / name).read_text().splitlines() if (self.folder / name).exists() else []
        counts: dict[str, int] = {}
        for line in lines:
            camera = json.loads(line)["data"]["camera"]
            counts[camera] = counts.get(camera, 0) + 1
        return counts


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the good clip and the good model."""
    folder = tmp_path_factory.mktemp("good")
    write_clip(folder / "good.mp4")
    write_model(folder / "pose.onnx", 56)
    return folder


@contextmanager
def set_up(folder: Path, good: Path) -> Iterator[Place]:
    root = Path(__file__).resolve().parent.parent
    with tempfile.TemporaryDirectory(prefix="cgb", dir="/tmp") as sockets:
        own = {"XDG_STATE_HOME": str(folder / "state"), "CAMGRAPH_RUN_DIR": f"{sockets}/runs", "COLUMNS": "300"}
        # As users have it: some machines that test say that nothing is to be buffered.
        usual = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
        place = Place(folder / "work", {**usual, **own, "PYTHONPATH": str(root / "src")})
        shutil.copytree(good, place.folder)
        yield place
        assert not list(Path("/dev/shm").glob(f"camgraph-{os.getuid()}-bad{os.getpid()}-*"))


@pytest.fixture
def place(tmp_path: Path, good: Path) -> Iterator[Place]:
    with set_up(tmp_path, good) as place:
        yield place


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, good: Path) -> int:
    """How many events the good clip makes."""
    with set_up(tmp_path_factory.mktemp("whole"), good) as place:
        place.write()
        status, output = place.camgraph("run", "graph.yaml")
        counts = place.events()
    assert status == 0, output
    assert counts["good"] == counts["odd"] >= FRAMES - 5
    return counts["good"]


def not_a_video(path: Path) -> None:
    path.write_text("this is a shopping list\n" * 50)


def empty(path: Path) -> None:
    path.touch()


def only_a_header(path: Path) -> None:
    path.write_bytes(write_clip(path.with_suffix(".mp4")).read_bytes()[:600])


def no_keyframe(path: Path) -> None:
    """A raw stream without its first picture: nothing in it can be decoded."""
    source = write_clip(path.with_suffix(".mp4"), 8)
    with av.open(str(source)) as container, path.open("wb") as out:
        stream = container.streams.video[0]
        for packet in container.demux(stream):
            if packet.size and not packet.is_keyframe:
                out.write(bytes(packet))


@pytest.mark.parametrize("make", [not_a_video, empty, only_a_header, no_keyframe])
def test_file_that_is_no_video_is_named_others_go_on(place: Place, whole: int, make: Callable[[Path], None]) -> None:
    make(place.folder / "odd.bin")
    place.write(url="odd.bin")
    status, output = place.camgraph("run", "graph.yaml")
    assert status in (1, 2)
    assert "odd" in output
    if status == 1:
        assert place.events() == {"good": whole}


@pytest.mark.parametrize("make", [not_a_video, empty, only_a_header])
def test_a_camera_that_is_no_video_is_a_mistake_beside_others(place: Place, make: Callable[[Path], None]) -> None:
    make(place.folder / "odd.bin")
    place.write(url="odd.bin")
    graph = place.folder / "graph.yaml"
    graph.write_text(graph.read_text() + "max_fps: 3\n")
    status, output = place.camgraph("check", "graph.yaml")
    assert status == 2
    assert re.search(
        r"graph\.yaml:\d+:\d+: cameras\.odd\.url: \S+/odd\.bin: (cannot be read|the file is empty)", output
    )
    assert "max_fps" in output


def test_a_truncated_file_gives_what_it_has_and_says_so(place: Place, whole: int) -> None:
    data = (place.folder / "good.mp4").read_bytes()
    (place.folder / "cut.mp4").write_bytes(data[: len(data) * 2 // 3])
    place.write(url="cut.mp4")
    status, output = place.camgraph("run", "graph.yaml")
    assert status == 1
    assert "camera odd" in output
    assert "truncated" in output
    counts = place.events()
    assert counts["good"] == whole
    assert 5 < counts["odd"] < whole


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"url": "none.mp4"}, "graph.yaml:6:14: cameras.odd.url: no such file or folder"),
        ({"model": "none.onnx"}, "none.onnx"),
        ({"model": "good.mp4"}, "ONNX"),
        ({"model": '"asset:no-such-model.onnx"'}, "camgraph assets pull"),
    ],
)
def test_what_is_missing_is_found_before_anything_starts(place: Place, change: dict[str, str], expected: str) -> None:
    place.write(**change)
    for command in ("check", "run"):
        status, output = place.camgraph(command, "graph.yaml")
        assert status == 2, output
        assert expected in output
    assert place.events() == {}


@pytest.mark.parametrize("what", ["url", "model", "rules"])
@pytest.mark.parametrize(("kind", "words"), [("pipe", "pipe"), ("socket", "socket"), ("/dev/zero", "device")])
def test_what_could_block_or_never_end_is_refused_unopened(place: Place, what: str, kind: str, words: str) -> None:
    place.write(**({} if what == "rules" else {what: kind}))
    graph = place.folder / "graph.yaml"
    if what == "rules":
        graph.write_text(graph.read_text().replace("{rules: [", f"{{file: {kind}}}}} # ["))
    os.mkfifo(place.folder / "pipe")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(place.folder / "socket"))
        status, output = place.camgraph("check", "graph.yaml")
    assert status == 2, output
    assert kind in output
    assert f"is a {words}" in output or "neither a file nor a folder" in output


def test_a_text_is_no_video(place: Place) -> None:
    (place.folder / "notes.txt").write_text("dear diary\n" * 50)
    place.write(url="notes.txt")
    status, output = place.camgraph("check", "graph.yaml")
    assert status == 2
    assert "graph.yaml:6:14: cameras.odd.url" in output
    assert "is a text, expected a video" in output


def test_a_pipe_among_pictures_is_none_of_them(place: Place) -> None:
    pictures = place.folder / "pictures"
    pictures.mkdir()
    os.mkfifo(pictures / "0.png")
    (pictures / "1.png").symlink_to("/dev/zero")
    place.write(url="pictures")
    status, output = place.camgraph("check", "graph.yaml")
    assert status == 2
    assert "no pictures in this folder" in output


def test_model_without_keypoints_is_refused(place: Place) -> None:
    write_model(place.folder / "detector.onnx", 84)
    place.write(model="detector.onnx")
    status, output = place.camgraph("run", "graph.yaml")
    assert status == 2
    assert "84" in output
    assert "keypoints" in output or "pose" in output


def test_twelve_mistakes_are_told_at_once_with_their_places(place: Place) -> None:
    (place.folder / "graph.yaml").write_text(
        "version: 2\n"
        "nmae: x\n"
        "cameras:\n"
        "  a: {url: none.mp4, max_fsp: 3}\n"
        '  b: {url: "rtsp://me:${NO_SUCH_PASSWORD}@host/x"}\n'
        "  a: {url: good.mp4}\n"
        "stages:\n"
        "  capture: {use: captrue}\n"
        "  prepare: {use: preprocess, from: captur, with: {size: big}}\n"
        "  infer: {use: infer, from: prepare, batch: {max: 0}}\n"
        "  people: {use: decode_yolo_pose, from: infer, with: {min_score: 7}}\n"
        "  loop: {use: track, from: loop}\n"
        "  log: {use: sink_jsonl, from: people, with: {path: x, order: alphabetical}}\n"
        "  on: {use: sink_null, from: people}\n"
    )
    status, output = place.camgraph("run", "graph.yaml")
    assert status == 2
    lines = [line for line in output.splitlines() if line.startswith("graph.yaml:")]
    assert len(lines) >= 12, output
    assert [int(line.split(":")[1]) for line in lines] == sorted(int(line.split(":")[1]) for line in lines)


def test_impossible_names_and_numbers_are_mistakes(place: Place) -> None:
    place.write(url="a" * 5000, model='"b\\0.onnx"')
    graph = place.folder / "graph.yaml"
    graph.write_text(
        graph.read_text()
        .replace("good.mp4", '"${NUL}.mp4"')
        .replace("update: 100ms", f"for: {'9' * 400}s, when: score > {'9' * 400}")
        .replace("  log:", f'  more: {{use: rules, from: tracks, with: {{file: "{"c/" * 3000}"}}}}\n  log:')
    )
    place.environment["NUL"] = "d" * 300
    status, output = place.camgraph("check", "graph.yaml")
    assert status == 2, output
    for words in (
        ":5:15: cameras.good.url: no such file or folder",
        ":6:14: cameras.odd.url: no such file or folder",
        "b\\x00.onnx': holds a NUL character",
        "stages.more.with.file: no such file or folder",
        "expected a time of at most 366 days, got '999",
    ):
        assert words in output, output


def test_a_file_of_rules_is_checked_alone(place: Place) -> None:
    rules = place.folder / "rules.yaml"
    rules.write_text("zones:\n  door: [[0, 0], [1, 0]]\nrules:\n  - {id: a, when: in dor, for: 2}\n  - id: b\n")
    status, output = place.camgraph("check", "rules.yaml")
    assert status == 2
    places = [line.split(": ")[0] for line in output.splitlines() if not line.startswith(" ")]
    assert places == [f"rules.yaml:{at}" for at in ("2:9", "4:22", "4:32", "5:5")], output
    rules.write_text("rules:\n  - {id: a, when: score > 0.5}\n")
    assert place.camgraph("check", "rules.yaml") == (
        0,
        "rules.yaml: 1 rule: no mistakes; its cameras are known where a graph names it\n",
    )


def test_unwritable_output_is_refused_at_start(place: Place) -> None:
    place.write(events="/no/such/folder/events.jsonl")
    status, output = place.camgraph("run", "graph.yaml")
    assert status in (2, 3)
    assert "/no/such/folder" in output


@pytest.mark.skipif(os.getuid() != 0, reason="mounting a small disk and being somebody else need root")
class TestAsRoot:
    def test_a_full_disk_keeps_what_was_committed(self, place: Place, whole: int) -> None:
        disk = place.folder / "disk"
        disk.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "none", str(disk)], check=True)
        try:
            place.write(events="disk/events.jsonl")
            status, output = place.camgraph("run", "graph.yaml")
            assert status == 3, output
            assert "disk/events.jsonl" in output
            kept = place.events("disk/events.jsonl")
        finally:
            subprocess.run(["umount", str(disk)], check=True)
        place.write(events="later.jsonl")
        status, output = place.camgraph("run", "graph.yaml")
        assert status == 0, output
        later = place.events("later.jsonl")
        # The next run delivers what the disk did not take, and its own.
        assert sum(kept.values()) + sum(later.values()) == 4 * whole

    def test_a_video_that_may_not_be_read_is_said(self, place: Place) -> None:
        place.write(url="secret.mp4")
        shutil.copy(place.folder / "good.mp4", place.folder / "secret.mp4")
        (place.folder / "secret.mp4").chmod(0)
        # Root without the right to pass over permissions.
        obeys = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-all"]
        status, output = place.camgraph("check", "graph.yaml", prefix=obeys)
        assert status == 2
        assert "no permission to read" in output


def test_too_few_descriptors_are_said(place: Place) -> None:
    place.write()
    few = (12, 12)
    status, output = place.camgraph("run", "graph.yaml", before=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, few))
    assert status == 3, output


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_a_signal_lets_what_is_on_the_way_arrive(place: Place, number: int, status: int) -> None:
    place.write()
    graph = place.folder / "graph.yaml"
    graph.write_text(graph.read_text().replace("{url: good.mp4}", "{url: good.mp4, loop: true, realtime: true}"))
    command = [sys.executable, "-m", "camgraph.tools.cli", "run", "graph.yaml", "--quiet"]
    process = subprocess.Popen(
        command,
        cwd=place.folder,
        env=place.environment,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        until(lambda: sum(place.events().values()) >= 10, 100, every_s=0.05)
        process.send_signal(number)
        _, output = process.communicate(timeout=100)
    finally:
        process.kill()
    assert (process.returncode, output) == (status, "")
    assert sum(place.events().values()) >= 10


@pytest.mark.parametrize("terminal", [True, False])
def test_run_survives_a_closed_display(place: Place, *, terminal: bool) -> None:
    place.write()
    graph = place.folder / "graph.yaml"
    graph.write_text(graph.read_text().replace("{url: good.mp4}", "{url: good.mp4, loop: true, realtime: true}"))
    command = [sys.executable, "-m", "camgraph.tools.cli", "run", "graph.yaml"]
    ours, theirs = pty.openpty() if terminal else os.pipe()
    process = subprocess.Popen(command, cwd=place.folder, env=place.environment | {"TERM": "xterm"}, stderr=theirs)
    os.close(theirs)
    assert os.read(ours, 1)
    os.close(ours)
    until(lambda: sum(place.events().values()) >= 10, 100, every_s=0.05)
    before = sum(place.events().values())
    until(lambda: sum(place.events().values()) >= before + 20, 100, every_s=0.05)
    process.send_signal(signal.SIGTERM)
    assert process.wait(100) == 0
    assert sum(place.events().values()) >= before + 20


SELF = "#EXTM3U\n" + "#EXT-X-STREAM-INF:BANDWIDTH=1\nodd.m3u8\n" * 2


@pytest.mark.parametrize(
    ("name", "text"),
    [("odd.m3u8", SELF), ("odd.mp4", SELF), ("odd.mp4", "ffconcat version 1.0\nfile good.mp4\n")],
)
@pytest.mark.parametrize("processes", ["separate", "one"])
def test_a_file_that_makes_ffmpeg_read_others_is_refused_unread(
    place: Place, name: str, text: str, processes: str
) -> None:
    (place.folder / name).write_text(text)
    place.write(url=name, processes=processes)
    for command in ("check", "run"):
        status, output = place.camgraph(command, "graph.yaml")
        assert status == 2, output
        assert "graph.yaml:6:14: cameras.odd.url" in output
        assert "write `playlist: true`" in output
    assert place.events() == {}


def test_self_naming_playlist_is_always_refused(place: Place) -> None:
    (place.folder / "odd.m3u8").write_text(SELF)
    place.write(url="odd.m3u8, playlist: true")
    for command in ("check", "run"):
        status, output = place.camgraph(command, "graph.yaml")
        assert status == 2, output
        assert "which is a playlist itself" in output


def test_a_playlist_that_was_asked_for_is_read(place: Place, whole: int) -> None:
    with av.open(str(place.folder / "good.mp4")) as source, av.open(str(place.folder / "1.ts"), "w") as target:
        stream = target.add_stream_from_template(source.streams.video[0])
        for packet in source.demux(video=0):
            if packet.size:
                packet.stream = stream
                target.mux(packet)
    (place.folder / "odd.m3u8").write_text("#EXTM3U\n#EXT-X-TARGETDURATION:3\n#EXTINF:3,\n1.ts\n#EXT-X-ENDLIST\n")
    place.write(url="odd.m3u8, playlist: true")
    status, output = place.camgraph("run", "graph.yaml")
    assert status == 0, output
    assert place.events() == {"good": whole, "odd": whole}


class SelfNaming(BaseHTTPRequestHandler):
    """A playlist that names itself fifty times, whatever is asked for."""

    def do_GET(self) -> None:
        body = b"#EXTM3U\n" + b"#EXT-X-STREAM-INF:BANDWIDTH=1\na.m3u8\n" * 50
        self.send_response(200)
        self.send_header("Content-Type", "application/vnd.apple.mpegurl")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Says nothing."""


LIVE_GRAPH = """
version: 1
name: bad{pid}
processes: {processes}
cameras:
  odd: {{url: "{url}"}}
stages:
  capture: {{use: capture}}
  prepare: {{use: preprocess, from: capture, with: {{size: [64, 64]}}}}
  infer: {{use: infer, from: prepare, with: {{model: pose.onnx}}}}
  people: {{use: decode_yolo_pose, from: infer}}
  tracks: {{use: track, from: people}}
  actions: {{use: rules, from: tracks, with: {{rules: [{{id: seen, when: score > 0.1}}]}}}}
  log: {{use: sink_jsonl, from: events, with: {{path: events.jsonl}}}}
"""


@pytest.mark.parametrize("processes", ["separate", "one"])
def test_self_naming_live_playlist_is_lost(place: Place, processes: str) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), SelfNaming) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}/a.m3u8"
        text = LIVE_GRAPH.format(pid=os.getpid(), processes=processes, url=url)
        (place.folder / "graph.yaml").write_text(text)
        command = [sys.executable, "-m", "camgraph.tools.cli", "run", "graph.yaml", "--quiet"]
        process = subprocess.Popen(command, cwd=place.folder, env=place.environment, stderr=subprocess.PIPE, text=True)
        try:
            events = place.folder / "events.jsonl"
            until(lambda: events.exists() and "camgraph.camera.lost" in events.read_text(), 100, every_s=0.05)
            process.send_signal(signal.SIGTERM)
            _, output = process.communicate(timeout=100)
        finally:
            process.kill()
            server.shutdown()
            thread.join()
    assert "camgraph.camera.lost" in events.read_text()
    assert "names playlists that name playlists again" in events.read_text()
    # A process that had to be killed gives status 1.
    assert process.returncode == 0, output
