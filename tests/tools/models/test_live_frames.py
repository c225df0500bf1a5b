"""Live cameras as what models are tried on: nobody waits for ever, and nothing of their credentials is told or kept."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice
from pathlib import Path

import av
import numpy as np
import pytest
from camgraph_test_stages.commands import model_command
from click.testing import Result

from camgraph.pipeline.errors import EnvironmentProblem, UserError
from camgraph.tools.models import frames as model_frames
from camgraph.tools.models.frames import frames_of, source_name

pytestmark = pytest.mark.slow
SECRETS = ("geheim", "hinein", "marke")
QUERY = "user=hinein&password=geheim&token=marke"
Commands = Callable[[str], list[list[str]]]


@contextmanager
def answering(handler: type[BaseHTTPRequestHandler]) -> Iterator[int]:
    """The port of a web server."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


class _Quiet(BaseHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name that http.server gives it
        pass


@pytest.fixture
def film(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """30 pictures as a transport stream."""
    path = tmp_path_factory.mktemp("film") / "film.ts"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=10, options={"g": "5"})
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        for number in range(30):
            picture = np.full((48, 64, 3), 8 * number, np.uint8)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="bgr24")))
        container.mux(stream.encode())
    return path.read_bytes()


@pytest.fixture
def camera(film: bytes) -> Iterator[str]:
    """Sends it to everybody, again and again."""

    class Sends(_Quiet):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "video/mp2t")
            self.end_headers()
            self.wfile.write(film)

    with answering(Sends) as port:
        yield f"http://hinein:geheim@127.0.0.1:{port}/film.ts?{QUERY}"


@pytest.fixture
def refusing() -> Iterator[str]:
    """A camera that lets nobody in."""

    class Refuses(_Quiet):
        def do_GET(self) -> None:
            self.send_error(401)

    with answering(Refuses) as port:
        yield f"http://hinein:geheim@127.0.0.1:{port}/film.ts?{QUERY}"


@pytest.fixture
def commands(tiny_model: Path, two_people: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Commands:
    """All commands that take --frames, with all that they write; `compare` measures a short time, and blesses none."""
    monkeypatch.setattr("camgraph.tools.models.compare.comparison._ROUND_S", 0.02)
    monkeypatch.setattr("camgraph.tools.models.compare.comparison.peak_bytes", lambda model, **settings: None)

    def asked(source: str) -> list[list[str]]:
        frames = ["--frames", source, "--json", str(tmp_path / "found.json")]
        plot = ["--plot", str(tmp_path / "found.png")]
        rounds = ["--providers", "cpu", "--batch", "1", "--threads", "1", "--rounds", "1", "--seconds", "1"]
        return [
            ["bench", str(tiny_model), *frames, *plot, *rounds],
            ["profile", str(tiny_model), *frames, *plot, "--runs", "2", "--trace", str(tmp_path / "trace.json")],
            ["compare", str(two_people), str(two_people), *frames, "--count", "8", "--least-frames", "5"],
            ["quantize", str(tiny_model), str(tmp_path / "int8.onnx"), *frames[:2], "--count", "8"],
        ]

    return asked


def assert_no_secret(text: str) -> None:
    for secret in SECRETS:
        assert secret not in text


def assert_nothing_leaked(found: Result, printed: str, folder: Path) -> None:
    """Not in what was printed, by camgraph or by libraries beneath it, and in no file or name of one."""
    assert_no_secret(found.output + printed)
    for path in folder.rglob("*"):
        assert_no_secret(path.name)
        if path.is_file():
            assert_no_secret(path.read_bytes().decode("latin-1"))


@pytest.mark.parametrize("number", range(4), ids=["bench", "profile", "compare", "quantize"])
@pytest.mark.processes
def test_credentials_of_a_camera_are_told_and_kept_nowhere(
    number: int, commands: Commands, camera: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    pytest.importorskip("matplotlib", reason="no matplotlib (the extra `plots`)")
    monkeypatch.chdir(tmp_path)
    drawn: list[str] = []
    monkeypatch.setattr("matplotlib.figure.Figure.suptitle", lambda self, text, **more: drawn.append(text))
    before = {path.name for path in tmp_path.iterdir()}
    command = commands(camera)[number]
    found = model_command(*command)
    assert found.exit_code == (1 if command[0] == "compare" else 0), found.output
    assert_nothing_leaked(found, "".join([*capfd.readouterr(), *drawn]), tmp_path)
    if number < 2:
        assert re.search(r"\(http://\*\*\*@127\.0\.0\.1:\d+/film\.ts\?\*\*\*\)", found.output)
    wanted = {Path(argument).name for argument in command if argument.startswith(str(tmp_path))}
    assert {path.name for path in tmp_path.iterdir()} <= before | wanted, "a file that nobody asked for"


@pytest.mark.parametrize("number", range(4), ids=["bench", "profile", "compare", "quantize"])
def test_a_camera_that_sends_nothing_is_given_up(
    number: int, commands: Commands, refusing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(model_frames, "MOST_WAIT_S", 1.5)
    found = model_command(*commands(refusing)[number])
    assert found.exit_code == 3, found.output
    assert "no picture came within 1.5 s; the camera is unauthorised" in found.output
    assert "look at the address, user and password" in found.output
    assert_nothing_leaked(found, "".join(capfd.readouterr()), tmp_path)


def test_a_camera_that_falls_silent_is_given_up(monkeypatch: pytest.MonkeyPatch, film: bytes) -> None:
    monkeypatch.setattr(model_frames, "MOST_WAIT_S", 1.5)
    over = threading.Event()

    class FallsSilent(_Quiet):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(film)
            self.wfile.flush()
            over.wait(60)

    with answering(FallsSilent) as port:
        frames = frames_of([f"http://127.0.0.1:{port}/"], 1000)
        try:
            assert len(list(islice(frames, 10))) == 10
            with pytest.raises(EnvironmentProblem, match=r"no picture came within 1\.5 s; the camera is"):
                list(frames)
        finally:
            over.set()


@pytest.mark.parametrize(
    ("source", "words"),
    [("", "got nothing"), ("rstp://u:geheim@h/x", "unknown protocol `rstp`"), ("rtsp://u:ge#heim@h/x", "no host can")],
)
def test_what_can_be_no_camera_is_not_waited_for(source: str, words: str) -> None:
    with pytest.raises(UserError, match=re.escape(words)) as caught:
        next(frames_of([source], 1))
    assert_no_secret(str(caught.value))


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("clips/yard.mp4", "yard.mp4"),
        ("file:///clips/yard.mp4", "yard.mp4"),
        ("rtsp://u:geheim@h:554", "rtsp://***@h:554"),
        (f"rtsp://h/cam1?{QUERY}", "rtsp://h/cam1?***"),
        ("/dev/video0", "/dev/video0"),
    ],
)
def test_sources_are_called_by_what_may_be_shown(source: str, name: str) -> None:
    assert source_name(source) == name
