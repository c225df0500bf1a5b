"""A camera as a row of pictures: which are made, what is drawn on them, and what is left when nobody looks any more."""

from __future__ import annotations

import asyncio
import gc
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import av
import cv2
import httpx
import numpy as np
import pytest
from av.video.stream import VideoStream
from camgraph_test_stages.waiting import until
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from structlog import get_logger
from structlog.testing import capture_logs

from camgraph.pipeline.errors import Unavailable, UserError
from camgraph.pipeline.system.local_socket import short_address
from camgraph.pipeline.system.side_link import MOST_BYTES, Link, follow, framed
from camgraph.stages.video.packets import Packet, PacketReader
from camgraph.stages.video.tap import PacketTap
from camgraph.tools.service.live.known_people import KnownPeople, Moment
from camgraph.tools.service.live.live_calls import live_calls
from camgraph.tools.service.live.live_pictures import PictureFilm, PictureViewer
from camgraph.tools.service.live.picture_link import PictureProcess
from camgraph.tools.service.live.picture_maker import LivePicture, PictureMaker
from camgraph.tools.service.live.picture_process import serve
from camgraph.tools.service.live.watching import Showing, WatchedCamera, Watching
from camgraph.tools.service.run.run_link import RunLink
from camgraph.tools.service.web.access import Access, Token
from camgraph.tools.service.web.app import build_app
from camgraph.tools.service.web.http_server import HttpServer, bound
from camgraph.tools.service.web.quotas import Quota, QuotaExceeded, Requester
from camgraph.tools.service.web.thread_pools import ThreadPool, ThreadPools

WITHIN_S = 60.0
ROOT = Path(__file__).parents[4]
SIZE, FPS = (320, 192), 25
THREADS = ThreadPool("the process that makes pictures", 2)
SHAPES = {"stage": "r", "size": SIZE, "zones": {}, "lines": {}, "bones": [], "floor": 0.3}


def line_of(at: float, *people: int) -> bytes:
    """A line of `rules`: these people stand in the middle."""
    found = [{"id": one, "box": [0.4, 0.1, 0.6, 0.9], "joints": [0.5, 0.5, 0.9] * 17} for one in people]
    return json.dumps({"stage": "r", "epoch": 0, "at": at, "people": found, "now": []}).encode()


def write_old(path: Path, codec: str = "mpeg4", seconds: int = 3) -> Path:
    """Grey pictures that get brighter, in a codec that no browser plays."""
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=FPS, options={"g": "10"})
        assert isinstance(stream, VideoStream)
        stream.width, stream.height, stream.pix_fmt = *SIZE, "yuv420p"
        for number in range(seconds * FPS):
            grey = np.full((*SIZE[::-1], 3), 40 + 2 * number, np.uint8)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(grey, format="rgb24")))
        container.mux(stream.encode())
    return path


class Camera:
    """Serves the packets of a file on a socket, again and again, a few hundred a second."""

    def __init__(self, path: Path, file: Path, *, paced: bool = True) -> None:
        self.path = path
        self._tap = PacketTap(path, get_logger(), patient=False, paced=paced)
        self._file = file
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._send)

    def _send(self) -> None:
        with av.open(str(self._file)) as container:
            packets = [packet for packet in container.demux(video=0) if packet.size]
            last = (packets[-1].pts or 0) + (packets[-1].duration or 0)
            turn = 0
            while not self._stop.is_set():
                for packet in packets:
                    again = av.Packet(bytes(packet))
                    again.stream, again.time_base = packet.stream, packet.time_base
                    again.pts = again.dts = (packet.pts or 0) + turn * last
                    again.is_keyframe = packet.is_keyframe
                    self._tap.offer(again, 0)
                    if self._stop.wait(0.005):
                        break
                turn += 1
        self._tap.close()

    def stop(self) -> None:
        self._stop.set()

    def __enter__(self) -> Camera:
        self._thread.start()
        until(self._listens, WITHIN_S)
        return self

    def _listens(self) -> bool:
        """The path is there shortly before."""
        with socket.socket(socket.AF_UNIX) as client, suppress(OSError), short_address(self.path) as address:
            client.connect(address)
            return True
        return False

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._thread.join()


async def nothing() -> AsyncIterator[bytes]:
    for line in ():
        yield line


def parts(data: bytes) -> Iterator[tuple[float, np.ndarray[Any, Any]]]:
    """The times and pictures of an answer."""
    for part in data.split(b"\r\n--picture")[:-1]:
        head, _, body = part.partition(b"\r\n\r\n")
        at = next(line for line in head.split(b"\r\n") if line.startswith(b"X-Camgraph-At"))
        picture = cv2.imdecode(np.frombuffer(body, np.uint8), cv2.IMREAD_COLOR)
        assert picture is not None
        yield float(at.split(b": ")[1]), picture


async def watched(film: PictureFilm, enough: int, viewer: PictureViewer | None = None) -> bytes:
    """So many parts, as one who then leaves gets them."""
    showing = Showing(film, viewer or PictureViewer(drawn=True))
    try:
        (await showing.begin()).begin_check()
        data, count = b"", 0
        async for piece in showing.pieces():
            data, count = data + piece, count + 1
            if count > enough:
                break
    finally:
        showing.leave()
    return data


def with_camera(tmp_path: Path, file: Path, use: Callable[[Path], Awaitable[Any]], **more: Any) -> Any:
    async def using() -> Any:
        return await use(camera.path)

    with Camera(tmp_path / "c.packets", file, **more) as camera:
        return asyncio.run(using())


@pytest.fixture
def pictures(monkeypatch: pytest.MonkeyPatch) -> Iterator[PictureProcess]:
    """It gets the time alone that nobody else wants: with other tests beside it, its first picture may come late."""
    monkeypatch.setattr("camgraph.tools.service.live.watching._FIRST_S", WITHIN_S)
    made = PictureProcess()
    yield made
    made.close()


def decoders(pictures: PictureProcess) -> list[str]:
    """The cameras that the process has a thread for."""
    if pictures.pid is None:
        return []
    return [path.name for path in Path(f"/proc/{pictures.pid}/task").iterdir()][1:]


@pytest.mark.parametrize("codec", ["mpeg4", "mpeg2video"])
def test_pictures_of_any_codec_come_and_leave_nothing_behind(
    tmp_path: Path, codec: str, pictures: PictureProcess
) -> None:
    over: list[bool] = []

    async def use(path: Path) -> bytes:
        return await watched(PictureFilm(path, lambda: over.append(True), nothing(), pictures, THREADS), 4)

    found = list(parts(with_camera(tmp_path, write_old(tmp_path / "old.mkv", codec), use)))
    times = [at for at, _ in found]
    assert len(times) >= 4
    assert all(later - earlier > 0.19 for earlier, later in itertools.pairwise(times))
    assert all(picture.shape == (*SIZE[::-1], 3) for _, picture in found)
    # A busy machine leaves pictures out, and may show again one that is as bright as the one before.
    assert len({picture.tobytes() for _, picture in found}) > 1
    assert over == [True]
    until(lambda: not decoders(pictures), WITHIN_S)


def test_a_file_that_is_read_as_fast_as_possible_is_refused(tmp_path: Path, pictures: PictureProcess) -> None:
    async def use(path: Path) -> bytes:
        return await watched(PictureFilm(path, lambda: None, nothing(), pictures, THREADS), 1)

    with pytest.raises(UserError, match="realtime: true"):
        with_camera(tmp_path, write_old(tmp_path / "old.mkv"), use, paced=False)
    until(lambda: not decoders(pictures), WITHIN_S)


def test_viewers_of_a_camera_that_ends_or_is_silent_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pictures: PictureProcess
) -> None:
    monkeypatch.setattr("camgraph.tools.service.live.live_pictures._SILENT_S", 0.5)
    file = write_old(tmp_path / "old.mkv")

    async def until_it_ends(path: Path, stop: Callable[[], None]) -> int:
        showing = Showing(PictureFilm(path, lambda: None, nothing(), pictures, THREADS), PictureViewer(drawn=True))
        (await showing.begin()).begin_check()
        count = 0
        async for _ in showing.pieces():
            count += 1
            stop()
        showing.leave()
        return count

    with Camera(tmp_path / "c.packets", file) as camera:
        assert asyncio.run(until_it_ends(camera.path, camera.stop)) >= 2
    with socket.socket(socket.AF_UNIX) as silent, short_address(tmp_path / "s") as address:
        silent.bind(address)
        silent.listen()
        with pytest.raises(Unavailable, match="no picture now"):
            asyncio.run(until_it_ends(tmp_path / "s", silent.close))
    until(lambda: not decoders(pictures), WITHIN_S)


def test_only_so_many_cameras_are_decoded(tmp_path: Path, pictures: PictureProcess) -> None:
    async def use(path: Path) -> None:
        quota = Quota("videos", 3, of_client=2, of_name=9)
        cameras = Watching[PictureFilm](quota, most=1)

        def show(place: Path, client: str = "a") -> Showing[PictureFilm]:
            def make(ended: Callable[[], object]) -> PictureFilm:
                return PictureFilm(place, ended, nothing(), pictures, THREADS)

            return cameras.show(place, make, PictureViewer(drawn=True), Requester("ward", client))

        one, other = show(path), show(path)
        assert one.camera is other.camera
        with pytest.raises(Unavailable, match="1 other cameras"):
            show(tmp_path / "other", "b")
        with pytest.raises(QuotaExceeded, match="2 videos are open from your address"):
            show(path)
        neighbour = show(path, "b")
        with pytest.raises(Unavailable, match="3 videos are open already"):
            show(path, "c")
        neighbour.leave()
        one.leave()
        assert not other.camera.is_over
        other.leave()
        other.leave()
        assert other.camera.is_over
        assert quota.in_use == 0

    with_camera(tmp_path, write_old(tmp_path / "old.mkv"), use)
    until(lambda: not decoders(pictures), WITHIN_S)


# ---- the process that makes them


def test_it_runs_only_if_nobody_else_would(tmp_path: Path, pictures: PictureProcess) -> None:
    async def use(path: Path) -> None:
        await watched(PictureFilm(path, lambda: None, nothing(), pictures, THREADS), 1)

    with_camera(tmp_path, write_old(tmp_path / "old.mkv"), use)
    assert pictures.pid is not None
    assert os.sched_getscheduler(pictures.pid) == os.SCHED_IDLE
    assert os.getpriority(os.PRIO_PROCESS, pictures.pid) == 19


def test_cameras_share_it_and_bad_videos_are_named(tmp_path: Path, pictures: PictureProcess) -> None:
    good, bad = write_old(tmp_path / "old.mkv"), write_old(tmp_path / "bad.mkv", seconds=1)

    class Broken(PictureFilm):
        def take(self, packet: Packet) -> None:
            super().take(replace(packet, stream=replace(packet.stream, sample=b"none")))

    async def use(path: Path) -> bytes:
        refused = Broken(tmp_path / "b.packets", lambda: None, nothing(), pictures, THREADS)
        one, other = await asyncio.gather(
            watched(PictureFilm(path, lambda: None, nothing(), pictures, THREADS), 3),
            watched(refused, 1),
            return_exceptions=True,
        )
        assert isinstance(other, UserError)
        assert "cannot be decoded" in str(other)
        assert isinstance(one, bytes)
        return one

    with Camera(tmp_path / "b.packets", bad):
        assert len(list(parts(with_camera(tmp_path, good, use)))) >= 3


def test_without_time_it_goes_on_at_a_keyframe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pictures: PictureProcess
) -> None:
    """A machine whose cores are all busy may leave it none: here it is stopped."""
    monkeypatch.setattr("camgraph.tools.service.live.live_pictures._MOST_WAITING_S", 0.5)
    monkeypatch.setattr("camgraph.tools.service.live.picture_link._ANSWER_S", WITHIN_S)

    async def use(path: Path) -> None:
        film = PictureFilm(path, lambda: None, nothing(), pictures, THREADS)
        showing = Showing(film, PictureViewer(drawn=True))
        (await showing.begin()).begin_check()
        assert pictures.pid is not None
        os.kill(pictures.pid, signal.SIGSTOP)
        dropped = 0
        async with asyncio.timeout(WITHIN_S):
            waiting = 0
            while dropped < 3:  # packets come on, and do not pile up
                dropped += len(film._waiting) < waiting
                waiting = len(film._waiting)
                assert waiting < 300
                await asyncio.sleep(0)
        assert not film.is_over
        os.kill(pictures.pid, signal.SIGCONT)
        before, count = film._newest, 0
        async with asyncio.timeout(WITHIN_S):
            async for _ in showing.pieces():
                count += film._newest is not before
                if count > 5:
                    break
        showing.leave()

    with_camera(tmp_path, write_old(tmp_path / "old.mkv"), use)


def test_who_gets_no_picture_for_want_of_time_is_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pictures: PictureProcess
) -> None:
    monkeypatch.setattr("camgraph.tools.service.live.watching._FIRST_S", 1.0)
    pictures.connect().socket.close()
    assert pictures.pid is not None
    os.kill(pictures.pid, signal.SIGSTOP)

    async def use(path: Path) -> None:
        await watched(PictureFilm(path, lambda: None, nothing(), pictures, THREADS), 1)

    with pytest.raises(Unavailable, match="no time to make a picture: the cameras come first"):
        with_camera(tmp_path, write_old(tmp_path / "old.mkv"), use)


def test_its_death_ends_pictures_and_starts_are_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pictures: PictureProcess
) -> None:
    file = write_old(tmp_path / "old.mkv")

    async def use(path: Path) -> None:
        film = PictureFilm(path, lambda: None, nothing(), pictures, THREADS)
        showing = Showing(film, PictureViewer(drawn=True))
        (await showing.begin()).begin_check()
        assert pictures.pid is not None
        os.kill(pictures.pid, signal.SIGKILL)
        async with asyncio.timeout(WITHIN_S):
            async for _ in showing.pieces():
                pass
        showing.leave()

    async def look(path: Path) -> bytes:
        return await watched(PictureFilm(path, lambda: None, nothing(), pictures, THREADS), 1)

    with_camera(tmp_path, file, use)
    until(lambda: pictures.pid is None, WITHIN_S)
    monkeypatch.setattr("camgraph.tools.service.live.picture_link._AGAIN_S", 1e6)
    with pytest.raises(Unavailable, match="cannot be made now"):
        with_camera(tmp_path, file, look)
    monkeypatch.setattr("camgraph.tools.service.live.picture_link._AGAIN_S", 0.0)
    assert len(list(parts(with_camera(tmp_path, file, look)))) >= 1


def is_asking(film: PictureFilm) -> bool:
    return film._link._asking is not None and not film._link._asking.done()


async def stopped(film: PictureFilm, pictures: PictureProcess, patched: pytest.MonkeyPatch) -> int:
    """Stop the process between two requests: the next one has half a second. Returns its id."""
    while is_asking(film):
        await asyncio.sleep(0)
    patched.setattr("camgraph.tools.service.live.picture_link._ANSWER_S", 0.5)
    assert pictures.pid is not None
    os.kill(pictures.pid, signal.SIGSTOP)
    return pictures.pid


def test_a_decoder_that_hangs_is_ended_and_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pictures: PictureProcess
) -> None:
    """Here it hangs because it is stopped."""
    monkeypatch.setattr("camgraph.tools.service.live.picture_link._AGAIN_S", 0.0)

    async def use(path: Path) -> tuple[str, bytes]:
        film = PictureFilm(path, lambda: None, nothing(), pictures, THREADS)
        showing = Showing(film, PictureViewer(drawn=True))
        (await showing.begin()).begin_check()
        with monkeypatch.context() as patched:
            hung = await stopped(film, pictures, patched)
            async with asyncio.timeout(WITHIN_S):
                async for _ in showing.pieces():
                    pass
        showing.leave()
        again = await watched(PictureFilm(path, lambda: None, nothing(), pictures, THREADS), 1)
        assert pictures.pid not in (None, hung)
        return film._why, again

    why, again = with_camera(tmp_path, write_old(tmp_path / "old.mkv"), use)
    assert "decodes them hangs" in why
    assert len(list(parts(again))) >= 1


def test_a_decoder_that_hangs_is_ended_if_nobody_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pictures: PictureProcess
) -> None:
    async def use(path: Path) -> None:
        film = PictureFilm(path, lambda: None, nothing(), pictures, THREADS)
        showing = Showing(film, PictureViewer(drawn=True))
        (await showing.begin()).begin_check()
        await stopped(film, pictures, monkeypatch)
        async with asyncio.timeout(WITHIN_S):
            while not is_asking(film):
                await asyncio.sleep(0.001)
            showing.leave()
            while pictures.pid is not None:
                await asyncio.sleep(0.001)

    with_camera(tmp_path, write_old(tmp_path / "old.mkv"), use)


def test_one_that_has_just_ended_is_replaced_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pictures: PictureProcess
) -> None:
    """As at the end of a minute without viewers: it takes no more cameras, and is not gone yet."""
    monkeypatch.setattr("camgraph.tools.service.live.picture_link._AGAIN_S", 0.0)
    pictures.connect().socket.close()
    ending = pictures.pid
    assert pictures._control is not None
    ours, its = socket.socketpair()
    its.close()
    pictures._control.close()
    pictures._control = ours

    async def use(path: Path) -> bytes:
        return await watched(PictureFilm(path, lambda: None, nothing(), pictures, THREADS), 1)

    assert len(list(parts(with_camera(tmp_path, write_old(tmp_path / "old.mkv"), use)))) >= 1
    assert pictures.pid not in (None, ending)


IDLE = """
import select, sys
from camgraph.tools.service.live import picture_process
# A camera comes at the very moment at which it ends for want of one.
picture_process.select.select = lambda *_: ([], [], [])
picture_process.give_way = lambda: None
picture_process.main()
"""


def test_who_comes_as_it_ends_is_served_and_the_next_refused(tmp_path: Path) -> None:
    control, its = socket.socketpair()
    one, end = socket.socketpair()
    socket.send_fds(control, [b"c"], [end.fileno()])
    end.close()
    with its:
        process = subprocess.Popen([sys.executable, "-c", IDLE, str(its.fileno())], pass_fds=[its.fileno()], cwd=ROOT)
    with control, one:
        one.settimeout(WITHIN_S)
        link = Link(one)
        for _ in range(2):
            link.send([[], json.dumps({"scenes": [], "past": [], "shapes": []}), []])
            assert list(link.receive()) == [[]]
        other, end = socket.socketpair()
        with other, end, pytest.raises(BrokenPipeError):
            socket.send_fds(control, [b"c"], [end.fileno()])
    assert process.wait(WITHIN_S) == 0


@pytest.mark.parametrize(
    "request_", [b"\0", framed(7)[:-1], (MOST_BYTES + 1).to_bytes(4, "big")], ids=["head", "body", "too long"]
)
def test_a_message_that_is_no_message_ends_its_camera(request_: bytes, capfd: pytest.CaptureFixture[str]) -> None:
    ours, its = socket.socketpair()
    served = threading.Thread(target=serve, args=(its,))
    served.start()
    with ours:
        ours.settimeout(WITHIN_S)
        ours.sendall(request_)
        if int.from_bytes(request_, "big") <= MOST_BYTES:
            ours.shutdown(socket.SHUT_WR)
        assert ours.recv(1) == b""
    served.join(WITHIN_S)
    assert not served.is_alive()
    assert capfd.readouterr().err == ""


def test_a_process_that_was_ended_leaves_nothing_to_do_at_exit() -> None:
    pictures = PictureProcess()
    pictures.connect().socket.close()
    kept = weakref.ref(pictures)
    pictures.close()
    del pictures
    until(lambda: gc.collect() >= 0 and kept() is None, WITHIN_S)


def test_it_ends_with_the_service(tmp_path: Path) -> None:
    program = """
from camgraph.tools.service.live.picture_link import PictureProcess
process = PictureProcess()
process.connect()
print(process.pid, flush=True)
input()
"""
    service = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    assert service.stdout is not None
    pid = int(service.stdout.readline())
    service.kill()
    service.communicate(timeout=WITHIN_S)
    until(lambda: not Path(f"/proc/{pid}").exists() or "Z" in Path(f"/proc/{pid}/stat").read_text(), WITHIN_S)


# ---- people


def packets_of(tmp_path: Path, count: int) -> list[Packet]:
    """The first packets of a camera, from a keyframe on."""
    found: list[Packet] = []
    with Camera(tmp_path / "p.packets", write_old(tmp_path / "p.mkv")) as camera:
        with closing(follow(camera.path)) as link:
            link.connection.settimeout(WITHIN_S)
            reader = PacketReader()
            while len(found) < count:
                found += reader.packets(link.receive())
    return found[:count]


def is_drawn_on(data: bytes) -> bool:
    """Whether somebody stands in the middle; the picture itself is grey."""
    picture = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
    assert picture is not None
    middle = picture[:, SIZE[0] // 3 : -SIZE[0] // 3].astype(int)
    return int((middle.max(axis=2) - middle.min(axis=2)).max()) > 60


def test_people_are_drawn_into_the_picture_of_their_moment_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rules tell of every eighth picture, and then of none any more."""
    monkeypatch.setattr("camgraph.tools.service.live.known_people._SILENT_S", 1e6)
    packets = packets_of(tmp_path, 70)
    times = [float(packet.pts * packet.stream.time_base) for packet in packets]
    known = KnownPeople()
    known.take(json.dumps(SHAPES).encode(), time.monotonic())
    for at in times[4:40:8]:
        known.take(line_of(at, 7), time.monotonic())
    maker = PictureMaker(known)
    made = [maker.make([packet], {True, False}) for packet in packets]
    maker.close()
    found = [one for one in made if one is not None]
    drawn = [one.moment.at for one in found if is_drawn_on(one.jpegs[True])]
    assert drawn == pytest.approx([at for at in times[4:40:8] if at > found[0].moment.at + 0.19])
    assert not any(is_drawn_on(one.jpegs[False]) for one in found)
    between = [one.moment.at for one in found if drawn[0] < one.moment.at < drawn[-1]]
    assert between == drawn[1:-1], "a picture of which nothing is reported waits for one of which something is"
    after = [one.moment.at for one in found if one.moment.at >= drawn[-1]]
    assert np.diff(after) == pytest.approx([0.2] * (len(after) - 1), abs=0.001)
    assert len(after) >= 4


def test_of_several_packets_the_newest_picture_is_made(tmp_path: Path) -> None:
    packets = packets_of(tmp_path, 30)
    maker = PictureMaker(KnownPeople())
    made = maker.make(packets, {False})
    maker.close()
    assert made is not None
    assert made.moment.at > float(packets[20].pts * packets[20].stream.time_base)
    assert made.jpegs.keys() == {False}


def test_several_stages_of_rules_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    known = KnownPeople()
    assert known.is_past(Moment(0, 1.0), 0.0) is None
    known.take(line_of(2.0, 1), 0.0)
    known.take(line_of(1.0, 1).replace(b'"stage": "r"', b'"stage": "other"'), 2.0)
    assert known.is_past(Moment(0, 1.0), 2.0) is True
    assert known.is_past(Moment(0, 1.5), 2.0) is False
    known.take(line_of(3.0, 1), 5.5)
    assert known.is_past(Moment(0, 2.5), 5.5) is True, "the other one tells of nothing any more"
    assert known.is_past(Moment(1, 0.0), 5.5) is False, "another life of the camera"
    scene = known.scene(Moment(0, 2.0005))
    assert scene is not None
    assert [one["at"] for one in scene.frames] == [2.0]
    assert known.scene(Moment(1, 2.0)) is None
    known.take(b"", 6.0)


# ---- over HTTP


def test_who_reads_slowly_gets_the_newest_picture_and_none_waits(tmp_path: Path) -> None:
    """Real HTTP: of 200 pictures, those that the sockets hold are old, and the next one is the newest."""
    viewer = PictureViewer(drawn=True)
    loops: list[asyncio.AbstractEventLoop] = []

    async def rows(request: Request) -> Response:
        loops.append(asyncio.get_running_loop())
        return StreamingResponse(viewer.pieces())

    listener = bound("127.0.0.1", 0)
    server = HttpServer(Starlette(routes=[Route("/", rows)]), listener, get_logger())
    server.start()
    try:
        with socket.socket() as slow:
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            slow.settimeout(WITHIN_S)
            slow.connect(listener.getsockname()[:2])
            slow.sendall(b"GET / HTTP/1.0\r\nHost: a\r\n\r\n")
            until(lambda: loops, WITHIN_S)
            for number in range(200):
                picture = LivePicture(Moment(0, float(number)), {True: bytes(200_000)})
                asyncio.run_coroutine_threadsafe(_handed(viewer, picture), loops[0]).result(WITHIN_S)
            loops[0].call_soon_threadsafe(lambda: None)
            data = b""
            while b"X-Camgraph-At: 199" not in data:
                data += slow.recv(1 << 16)
            taken = data.count(b"X-Camgraph-At")
            asyncio.run_coroutine_threadsafe(_ended(viewer), loops[0]).result(WITHIN_S)
            while slow.recv(1 << 16):
                pass
    finally:
        server.stop()
    assert taken < 10


async def _handed(viewer: PictureViewer, picture: LivePicture) -> None:
    viewer.hand(picture)
    await asyncio.sleep(0)


async def _ended(viewer: PictureViewer) -> None:
    viewer.end()


@pytest.mark.parametrize("path", ["mjpeg", "live.mp4"])
def test_pictures_that_may_not_leave_do_not(path: str) -> None:
    access = Access([Token("ward", "w" * 20, "viewer")])
    app = build_app(live_calls(RunLink("nobody"), ThreadPools(), PictureProcess(), video=False), access, get_logger())

    async def asking(**more: Any) -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://a") as client:
            return await client.get(f"/api/cameras/hall/{path}", **more)

    assert asyncio.run(asking()).status_code == 401
    answer = asyncio.run(asking(headers={"Authorization": f"Bearer {'w' * 20}"}))
    assert (answer.status_code, answer.json()["error"][:17]) == (400, "live video is off")
    assert answer.json()["id"] == "video-off"


class Broken(WatchedCamera[PictureViewer]):
    """A camera whose pictures meet a bug."""

    def take(self, packet: Packet) -> None:
        raise ValueError(f"a bug at {packet.pts}")

    def admit(self, viewer: PictureViewer) -> None:
        """Nothing."""


@pytest.mark.processes
def test_a_bug_of_who_shows_a_camera_is_logged(tmp_path: Path) -> None:
    async def broken(path: Path) -> None:
        film = Broken(path, lambda: None)
        await asyncio.wait_for(film.begun.wait(), WITHIN_S)

    with Camera(tmp_path / "cam.packets", write_old(tmp_path / "old.avi")) as camera, capture_logs() as logged:
        asyncio.run(broken(camera.path))
    assert [line["event"] for line in logged] == ["live_view_failed"]
