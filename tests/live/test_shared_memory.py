"""A camera that sends pictures of all sizes takes no more shared memory than it may, and gives back what it needs no
longer; seen from outside, with what is unlinked and still mapped."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from functools import cache
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import cv2
import numpy as np
import pytest
from camgraph_test_stages.web_server import WebServer

from camgraph.tools.lab.proofs.trials.run import LiveRun
from camgraph.tools.lab.proofs.trials.subject import Subject, simulated_cameras, write_graph
from camgraph.tools.measuring.processes import left_over
from camgraph.tools.scenes.simulator import RtspSimulator

WITHIN_S = 60.0
MB = 1 << 20
MAY_MB = 64
OTHERS = 8 * MB
"""For the messages of all other stages, and for small pictures."""
OWN_SHM = ["unshare", "-rm", "sh", "-c", 'mount -t tmpfs -o size=160m tmpfs /dev/shm && exec "$@"', "sh"]

pytestmark = pytest.mark.skipif(
    subprocess.run([*OWN_SHM, "true"], capture_output=True, check=False).returncode != 0,
    reason="no /dev/shm of one's own can be mounted here",
)

SMALL, LARGE = (320, 240), (1600, 1200)


@cache
def coded(width: int, height: int) -> bytes:
    """A picture as JPEG; eight slots for one of 1600x1200 are 46 MB of shared memory."""
    ok, found = cv2.imencode(".jpg", np.zeros((height, width, 3), np.uint8))
    assert ok
    return found.tobytes()


Sizes = Callable[[int], tuple[int, int] | None]


class Pictures(WebServer):
    """A camera that sends pictures one after the other; `sizes(number)` of each connection's, None to hang up."""

    def __init__(self, sizes: Sizes) -> None:
        self.sizes = sizes
        super().__init__(self._serve)

    def _serve(self, request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Content-Type", "multipart/x-mixed-replace; boundary=frame")
        request.end_headers()
        number = 0
        while (size := self.sizes(number)) is not None and not self.closing.wait(0.05):
            picture = coded(*size)
            head = b"--frame\r\nContent-Type: image/jpeg\r\nContent-Length: %d\r\n\r\n" % len(picture)
            request.wfile.write(head + picture + b"\r\n")
            number += 1


@pytest.fixture
def pictures() -> Iterator[Callable[[Sizes], Pictures]]:
    made: list[Pictures] = []

    def begin(sizes: Sizes) -> Pictures:
        made.append(Pictures(sizes))
        return made[-1]

    yield begin
    for camera in made:
        camera.close()


class Watched:
    """How much of its own /dev/shm a run holds, at each look and at most."""

    def __init__(self, run: LiveRun) -> None:
        self._where = Path(f"/proc/{run.pid}/root/dev/shm")
        self.most = 0

    def held(self) -> int:
        found = os.statvfs(self._where)
        held = (found.f_blocks - found.f_bfree) * found.f_frsize
        self.most = max(self.most, held)
        return held


def subject_of(folder: Path, *cameras: str) -> Subject:
    return write_graph(folder, f"shm{os.getpid()}", cameras, hang_s=20.0)


def camera_line(camera: Pictures) -> str:
    return f'guest: {{url: "http://{camera.host}/a.mjpg", memory_mb: {MAY_MB}}}'


@pytest.mark.lab
@pytest.mark.parametrize("then", [SMALL, None], ids=["small", "away"])
def test_memory_of_large_pictures_is_returned(
    tmp_path: Path, pictures: Callable[[Sizes], Pictures], then: tuple[int, int] | None
) -> None:
    camera = pictures(lambda number: LARGE)
    subject = subject_of(tmp_path, camera_line(camera))
    with LiveRun(subject, wrapper=OWN_SHM) as run:
        run.until(lambda now: bool(now["totals"]["frames"]), WITHIN_S, "it is seen")
        shm = Watched(run)
        run.until(lambda now: shm.held() > 30 * MB, WITHIN_S, "it takes memory")
        assert run.status()["memory_mb"] > shm.held() / 1e6
        camera.sizes = lambda number: then
        run.until(lambda now: shm.held() < OTHERS, WITHIN_S, "it gives it back")
        assert shm.most < MAY_MB * MB
        before = run.status()["totals"]["frames"]
        camera.sizes = lambda number: LARGE
        run.until(lambda now: now["totals"]["frames"] > before + 20, WITHIN_S, "it is seen again")
        assert run.stop() == 0
    assert left_over(subject.name) == []


@pytest.mark.lab
def test_growing_pictures_harm_only_their_camera(tmp_path: Path, pictures: Callable[[Sizes], Pictures]) -> None:
    growing = pictures(lambda number: (256 + 64 * number, 256 + 64 * number))
    with RtspSimulator(simulated_cameras(1)) as simulator:
        subject = subject_of(tmp_path, camera_line(growing), f'honest: {{url: "{simulator.camera("c0").url}"}}')
        with LiveRun(subject, wrapper=OWN_SHM) as run:
            run.until(lambda now: now["cameras"]["honest"]["state"] == "live", WITHIN_S, "the other one is live")
            shm = Watched(run)
            run.until(lambda now: shm.held() > 0 and lost(run) >= 3, WITHIN_S, "it is lost, again and again")
            before = run.status()["cameras"]["honest"]
            run.until(
                lambda now: shm.held() > 0 and now["cameras"]["honest"]["frames"] > before["frames"] + 20,
                WITHIN_S,
                "the other one goes on",
            )
            growing.sizes = lambda number: SMALL
            run.until(lambda now: now["cameras"]["guest"]["state"] == "live", WITHIN_S, "it is back")
            run.until(lambda now: shm.held() < OTHERS, WITHIN_S, "its memory is given back")
            assert shm.most < 2 * MAY_MB * MB
            assert run.status()["cameras"]["honest"]["losses"] == 0
            assert run.stop() == 0
    assert left_over(subject.name) == []


def lost(run: LiveRun) -> int:
    """How often it was lost for its pictures."""
    logged = [line.get("why", "") for line in run.lines("camera_state") if line["state"] == "lost"]
    return sum("too much memory: a picture of" in why for why in logged)
