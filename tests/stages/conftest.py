"""Small videos, made on the spot, a small disk, and an RTSP server that says whatever a test wants."""

from __future__ import annotations

import os
import select
import shutil
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from fractions import Fraction
from itertools import cycle
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from camgraph.tools.scenes.simulator import ClipSettings
from camgraph.tools.scenes.simulator.clip import Clip, ClipFrame, load_clip
from camgraph.tools.scenes.simulator.connection import session_description
from camgraph.tools.scenes.simulator.rtp import CLOCK_HZ, interleaved, rtp_packets

MakeClip = Callable[..., Path]

ONE_TRACK = "v=0\r\ns=x\r\nt=0 0\r\nm=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\na=control:pictures\r\n"


def picture(index: int, width: int, height: int) -> np.ndarray:
    """RGB noise over a moving gradient: no two frames alike, and packets large enough to be damaged."""
    rng = np.random.default_rng(index)
    slope = np.linspace(0, 200, width, dtype=np.uint8)[None, :, None]
    noise = rng.integers(0, 50, (height, width, 3), dtype=np.uint8)
    return np.roll(slope, index * 3, 1) + noise


def write_clip(
    path: Path,
    *,
    frames: int = 30,
    size: tuple[int, int] = (96, 64),
    codec: str = "libx264",
    pix_fmt: str = "yuv420p",
    fps: int = 10,
    pts: Sequence[int] | None = None,
    rotation: int = 0,
    mirrored: bool = False,
    pixel_shape: Fraction | None = None,
    full_range: bool = False,
    options: Mapping[str, str] | None = None,
    metadata: Mapping[str, str] | None = None,
) -> None:
    flags = {"movflags": "+faststart"} if path.suffix == ".mp4" else {}
    with av.open(str(path), "w", options=flags) as container:
        container.metadata.update(metadata or {})
        stream = container.add_stream(codec, rate=fps, options=dict(options or {}))
        stream.width, stream.height, stream.pix_fmt = *size, pix_fmt
        stream.codec_context.time_base = Fraction(1, fps)
        if pixel_shape:
            stream.codec_context.sample_aspect_ratio = pixel_shape
        if full_range:
            stream.codec_context.color_range = 2
        if rotation or mirrored:
            stream.set_display_rotation(rotation, hflip=mirrored)
        for index in range(frames):
            frame = av.VideoFrame.from_ndarray(picture(index, *size), format="rgb24")
            frame.pts, frame.time_base = (pts[index] if pts else index), Fraction(1, fps)
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    if codec == "libsvtav1":  # run by root, it makes the thread that encodes the most urgent one of the machine
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


@pytest.fixture(scope="session")
def written_clips(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Each different clip, encoded once."""
    folder = tmp_path_factory.mktemp("clips")
    written: dict[str, Path] = {}

    def clip(suffix: str, **settings: Any) -> Path:
        key = f"{suffix} {sorted(settings.items())}"
        if key not in written:
            path = folder / f"{len(written)}{suffix}"
            write_clip(path, **settings)
            written[key] = path
        return written[key]

    return clip


@pytest.fixture
def make_clip(tmp_path: Path, written_clips: Callable[..., Path]) -> MakeClip:
    """Writes a video: `make_clip("a.mp4", frames=30, ...)`, with the settings of `write_clip`, gives its path."""

    def make(name: str, **settings: Any) -> Path:
        return Path(shutil.copyfile(written_clips(Path(name).suffix, **settings), tmp_path / name))

    return make


class ScriptedCamera:
    """An RTSP server with this description. Each client has a thread, which calls `play` with its socket after PLAY.

    `answers`: method -> a whole answer in place of the usual one, without CSeq.
    """

    def __init__(
        self,
        description: str = ONE_TRACK,
        *,
        play: Callable[[socket.socket], None] | None = None,
        answers: Mapping[str, Callable[[], bytes]] | None = None,
    ) -> None:
        self.description = description
        self.asked: list[str] = []
        """The first line of each request."""
        self.lines: list[str] = []
        """All lines of all requests."""
        self.clients = 0
        self._play = play
        self._answers = dict(answers or {})
        self._server = socket.create_server(("127.0.0.1", 0), backlog=8)
        self._threads = [threading.Thread(target=self._accept)]
        self._open: list[socket.socket] = []
        self._threads[0].start()

    @property
    def port(self) -> int:
        return int(self._server.getsockname()[1])

    @property
    def url(self) -> str:
        return f"rtsp://viewer:geheim@127.0.0.1:{self.port}/x"

    def close(self) -> None:
        self._server.shutdown(socket.SHUT_RDWR)
        self._threads[0].join()
        for one in self._open:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(20)
            assert not thread.is_alive()
        for one in [*self._open, self._server]:
            one.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._server.accept()
                self.clients += 1
                self._open.append(client)
                thread = threading.Thread(target=self._serve, args=(client,))
                self._threads.append(thread)
                thread.start()

    def _serve(self, client: socket.socket) -> None:
        with suppress(OSError), client.makefile("rb") as lines:
            request: list[str] = []
            for line in lines:
                request.append(line.decode().strip())
                if not request[-1]:
                    self._answer(client, request)
                    request = []

    def _answer(self, client: socket.socket, request: list[str]) -> None:
        self.asked.append(request[0])
        self.lines += request
        method = request[0].partition(" ")[0]
        sequence = next(line for line in request if line.lower().startswith("cseq"))
        if method in self._answers:
            client.sendall(self._answers[method]())
            return
        body = self.description if method == "DESCRIBE" else ""
        extra = {
            "DESCRIBE": f"Content-Type: application/sdp\r\nContent-Length: {len(body)}\r\n",
            "SETUP": "Session: 1\r\nTransport: RTP/AVP/TCP;unicast;interleaved=0-1\r\n",
        }.get(method, "Session: 1\r\n")
        client.sendall(f"RTSP/1.0 200 OK\r\n{sequence}\r\n{extra}\r\n{body}".encode())
        if method == "PLAY" and self._play:
            self._play(client)


def player(clip: Clip, chosen: Callable[[ClipFrame], bool]) -> Callable[[socket.socket], None]:
    """For `play`: sends the chosen pictures of the clip as a camera does, again and again, until nobody listens.

    Each picture is chosen when its turn comes.
    """

    def play(client: socket.socket) -> None:
        hung_up, sequence = select.poll(), 0
        hung_up.register(client, select.POLLRDHUP)
        for number, frame in enumerate(filter(chosen, cycle(clip.frames))):
            packets = rtp_packets(frame.payloads, sequence, number * ticks(clip), 1)
            client.sendall(interleaved(packets, 0))
            sequence += len(packets)
            if hung_up.poll(1000 / float(clip.fps)):
                return

    return play


def ticks(clip: Clip) -> int:
    """Of the clock of RTP, from one picture to the next."""
    return int(CLOCK_HZ / clip.fps)


@pytest.fixture
def keyless_camera(scripted_camera: Callable[..., ScriptedCamera]) -> ScriptedCamera:
    """One that describes H.264 as it should, and never sends a keyframe."""
    clip = load_clip(ClipSettings(width=320, height=180, fps=25, gop=25, seconds=1))
    play = player(clip, lambda frame: not frame.keyframe)
    return scripted_camera(session_description(clip, "keyless", 25.0), play=play)


@pytest.fixture
def scripted_camera() -> Iterator[Callable[..., ScriptedCamera]]:
    """Makes RTSP servers: `scripted_camera(description, play=...)`."""
    with ExitStack() as stack:

        def make(*args: str, **settings: Any) -> ScriptedCamera:
            camera = ScriptedCamera(*args, **settings)
            stack.callback(camera.close)
            return camera

        yield make


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 kB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(folder)], capture_output=True, text=True, check=False
    )
    if made.returncode:
        pytest.skip(f"no right to mount a small disk: {made.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)
