"""A server that is not ours: what FFmpeg and capture see of it, and that it shows what the simulator shows."""

from __future__ import annotations

import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import av
import pytest

from camgraph.pipeline.errors import EnvironmentProblem
from camgraph.pipeline.stage import Settings
from camgraph.pipeline.testing import HandContext
from camgraph.stages.video.capture import Camera, Capture
from camgraph.tools.lab.gstreamer import GStreamerServer, missing_packages, server
from camgraph.tools.scenes.simulator import RtspSimulator

pytestmark = pytest.mark.timeout(120)

ROUND = 25
ACCOUNT = ("me", "a/b#c:d@e")


@pytest.fixture(scope="module")
def serve(simulator: RtspSimulator) -> Iterator[Callable[..., GStreamerServer]]:
    """A server with the clip of a camera of the simulator: `serve("h265", "digest")`, the same for all tests."""
    missing = missing_packages()
    if missing:
        pytest.skip(missing)
    made: dict[tuple[str, str], GStreamerServer] = {}
    with ExitStack() as stack:

        def serve(name: str, auth: Any = "none") -> GStreamerServer:
            if (name, auth) not in made:
                clip = simulator.camera(name).settings.clip
                made[name, auth] = stack.enter_context(GStreamerServer(clip, auth=auth, account=ACCOUNT))
            return made[name, auth]

        yield serve


def seen_of(viewing: Any) -> list[tuple[bool, list[Any]]]:
    """Of two rounds: which packets are keyframes, and the pictures, as numbers, sizes and sums of their pixels."""
    seen = []
    for packet in islice(viewing.packets(), 2 * ROUND):
        pictures = viewing._decoded(packet)
        seen.append((packet.is_keyframe, [(one.number, one.width, one.height, one.checksum) for one in pictures]))
    return seen


def facts_of(viewing: Any) -> tuple[Any, ...]:
    context = viewing.stream.codec_context
    return context.name, context.width, context.height, viewing.stream.average_rate, viewing.stream.time_base


@pytest.mark.parametrize(
    ("name", "auth", "transport"),
    [("h264", "none", "tcp"), ("h264-b", "basic", "udp"), ("h265", "digest", "tcp"), ("h265-b", "digest", "udp")],
)
def test_both_servers_show_the_same(
    serve: Callable[..., GStreamerServer],
    simulator: RtspSimulator,
    view: Callable[..., Any],
    name: str,
    auth: str,
    transport: str,
) -> None:
    theirs, ours = view(serve(name, auth).url, transport), view(simulator.camera(name).url, transport)
    assert facts_of(theirs) == facts_of(ours)
    seen = seen_of(theirs)
    assert seen == seen_of(ours)
    assert sum(keyframe for keyframe, _ in seen) == 2
    assert {number for _, pictures in seen for number, *_ in pictures} == set(range(ROUND))


@pytest.mark.parametrize("auth", ["basic", "digest"])
def test_a_wrong_account_is_refused(serve: Callable[..., GStreamerServer], view: Callable[..., Any], auth: str) -> None:
    port = serve("h264", auth).port
    for account in ("", "me:wrong@"):
        with pytest.raises(av.HTTPUnauthorizedError):
            view(f"rtsp://{account}127.0.0.1:{port}/stream")


def test_the_password_is_no_argument(serve: Callable[..., GStreamerServer]) -> None:
    arguments = Path(f"/proc/{serve('h264', 'digest').pid}/cmdline").read_bytes()
    assert b"program.py" in arguments
    assert ACCOUNT[1].encode() not in arguments


@pytest.mark.parametrize("transport", ["tcp", "udp"])
def test_its_reports_give_the_clock(
    serve: Callable[..., GStreamerServer], view: Callable[..., Any], transport: str
) -> None:
    packets = view(serve("h264").url, transport).packets()
    reported = next(packet for packet in islice(packets, 250) if packet.has_sidedata("prft"))
    [wall_us] = struct.unpack_from("<q", bytes(reported.get_sidedata("prft")))
    assert abs(wall_us / 1e6 - time.time()) < 1


def test_capture_reads_it_and_comes_back_after_a_restart(
    serve: Callable[..., GStreamerServer], simulator: RtspSimulator, tmp_path: Path
) -> None:
    stop = threading.Event()
    with GStreamerServer(simulator.camera("h264").settings.clip, auth="digest", account=ACCOUNT) as camera:
        url = camera.url
        source = Capture(Settings(), "front", Camera(url=url), HandContext(tmp_path, tmp_path))
        frames = source.frames(stop, None)
        first = [frame.stamp for frame in islice(frames, 2 * ROUND)]
        camera.close()
        camera.start()
        assert camera.url == url
        later = next(frame for frame in frames if frame.stamp.epoch > first[0].epoch)
        stop.set()
        assert list(frames) == []
    assert len({stamp.epoch for stamp in first}) == 1
    assert all(two.seq > one.seq and two.time_ns >= one.time_ns for one, two in pairwise(first))
    assert later.stamp.time_ns > first[-1].time_ns
    assert (later.width, later.height) == (640, 360)


def test_it_ends_in_order(serve: Callable[..., GStreamerServer], simulator: RtspSimulator) -> None:
    one = GStreamerServer(simulator.camera("h264").settings.clip)
    one.start()
    process = one._process
    one.close()
    one.close()
    assert process is not None
    assert process.returncode == 0


def test_a_taken_port_is_said(serve: Callable[..., GStreamerServer], simulator: RtspSimulator) -> None:
    other = GStreamerServer(simulator.camera("h264").settings.clip)
    other._port = serve("h264").port
    with pytest.raises(EnvironmentProblem, match=rf"expected it to listen on port {other.port} of 127.0.0.1"):
        other.start()


def test_what_to_install_is_said(simulator: RtspSimulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_PYTHON", str(tmp_path / "python3"))
    with pytest.raises(EnvironmentProblem, match=r"apt-get install .* gir1.2-gst-rtsp-server-1.0 python3-gi"):
        GStreamerServer(simulator.camera("h264").settings.clip).start()
