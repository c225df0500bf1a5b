"""Whatever goes wrong while a live camera is read, it is lost, tried again, and over for good for no reason but one:
what a person wrote wrong."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from structlog.testing import capture_logs
from tests.stages.conftest import player

from camgraph.stages.video import pixels
from camgraph.stages.video.live import no_picture_timeout, options
from camgraph.tools.scenes.simulator import CameraHandle, CameraSettings, ClipSettings, RtspSimulator
from camgraph.tools.scenes.simulator.clip import load_clip
from camgraph.tools.scenes.simulator.connection import session_description

Watch = Callable[..., Any]

VIDEO = "v=0\r\ns=x\r\nt=0 0\r\nm=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\na=control:a\r\n"
NO_DECODER = "v=0\r\ns=x\r\nt=0 0\r\nm=video 0 RTP/AVP 96\r\na=rtpmap:96 X-NONE/90000\r\na=control:a\r\n"


@pytest.fixture(scope="module")
def simulator() -> Iterator[RtspSimulator]:
    with RtspSimulator([CameraSettings(name="a", clip=ClipSettings(width=320, fps=20, seconds=1, gop=10))]) as made:
        yield made


@pytest.fixture
def camera(simulator: RtspSimulator) -> Iterator[CameraHandle]:
    yield simulator.camera("a")
    simulator.camera("a").heal()


def test_camera_without_keyframes_is_lost_and_retried(
    keyless_camera: Any, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one does that changed its codec between DESCRIBE and PLAY, or refreshes its pictures bit by bit."""
    monkeypatch.setattr(no_picture_timeout, "LONGEST_S", 0.5)
    monkeypatch.setattr(no_picture_timeout, "LONGEST_KEYLESS_S", 0.6)
    watching = watch(keyless_camera.url)
    watching.until_state("lost")
    assert "no picture came of it for 0.6 s" in watching.context.camera_states[-1][2]
    watching.until(lambda: keyless_camera.clients >= 2)
    assert watching.states == ["connecting", "lost"]


@pytest.mark.parametrize("are_sent_alone", [False, True])
def test_a_late_keyframe_is_waited_for_on_the_same_connection(
    scripted_camera: Callable[..., Any], watch: Watch, monkeypatch: pytest.MonkeyPatch, *, are_sent_alone: bool
) -> None:
    """A group of pictures may be longer than any other bound, and be joined in its middle.

    `are_sent_alone`: the parameters of the stream come with its keyframes, and not in the description.
    """
    monkeypatch.setattr(no_picture_timeout, "LONGEST_S", 0.5)
    monkeypatch.setattr(no_picture_timeout, "WAITING_S", 1.0)
    clip, keyframes = load_clip(ClipSettings(width=320, height=180, fps=25, gop=25, seconds=1)), threading.Event()
    play = player(clip, lambda frame: keyframes.is_set() or not frame.keyframe)
    camera = scripted_camera(VIDEO if are_sent_alone else session_description(clip, "late", 25.0), play=play)
    watching = watch(camera.url)
    watching.until_state("stalled")
    assert "no keyframe has come for 1 s: waiting up to" in watching.context.camera_states[-1][2]
    packets = len(watching.context.signs)
    watching.until(lambda: len(watching.context.signs) > packets + 50)
    keyframes.set()
    watching.until_state("live")
    watching.until_frames()
    assert watching.states == ["connecting", "stalled", "live"]
    assert camera.clients == 1


def test_undecodable_format_is_lost_with_reason(scripted_camera: Callable[..., Any], watch: Watch) -> None:
    camera = scripted_camera(NO_DECODER)
    watching = watch(camera.url, connect_s=1)
    watching.until_state("lost")
    assert (
        "the format X-NONE that the FFmpeg of this installation cannot decode" in watching.context.camera_states[-1][2]
    )
    watching.until(lambda: camera.clients >= 2)
    assert watching.stop() < 2
    assert watching.states == ["connecting", "lost"]


def refuses(method: str, status: str) -> dict[str, Callable[[], bytes]]:
    return {method: f"RTSP/1.0 {status}\r\n\r\n".encode}


@pytest.mark.parametrize(
    ("method", "status", "words"),
    [
        ("SETUP", "461 No", "it does not send over tcp (461 Unsupported Transport): write `transport: udp`"),
        ("SETUP", "453 No", "it answers SETUP with 453 Not Enough Bandwidth: end other viewers of the camera"),
        ("PLAY", "454 No", "it answers PLAY with 454 Session Not Found"),
        ("DESCRIBE", "500 No", "it answers DESCRIBE with 500 Internal Server Error"),
        ("DESCRIBE", "499 Too\x1bmany eyes", "it answers DESCRIBE with 499 Too many eyes"),
        ("OPTIONS", "405 No", "it answers OPTIONS with 405 Method Not Allowed"),
        (
            "DESCRIBE",
            '401 No\r\nWWW-Authenticate: Digest realm="r", nonce="n", algorithm=SHA-1',
            "a kind of login that camgraph does not know: Digest by SHA-1",
        ),
    ],
)
def test_a_refusal_is_told_by_its_name(
    scripted_camera: Callable[..., Any], watch: Watch, method: str, status: str, words: str
) -> None:
    camera = scripted_camera(VIDEO, answers=refuses(method, status))
    watching = watch(camera.url)
    watching.until_state("lost", "unauthorised")
    assert words in watching.context.camera_states[-1][2]
    assert watching.states[-1] == ("unauthorised" if "login" in words else "lost")


def test_refused_udp_names_tcp(scripted_camera: Callable[..., Any], watch: Watch) -> None:
    camera = scripted_camera(VIDEO, answers=refuses("SETUP", "461 No"))
    watching = watch(camera.url, transport="udp")
    watching.until_state("lost")
    assert "it does not send over udp (461 Unsupported Transport): write `transport: tcp`" in watching.reported


@pytest.mark.parametrize("description", ["", "no description", "v=0\r\n"])
def test_a_description_of_nothing_is_told(scripted_camera: Callable[..., Any], watch: Watch, description: str) -> None:
    watching = watch(scripted_camera(description).url)
    watching.until_state("lost")
    assert "Invalid data" not in watching.reported
    assert watching.context.camera_states[-1][2].partition(": ")[2].startswith(("it sends no video", "what it sends"))


def test_pictures_over_max_pixels_are_refused(
    camera: CameraHandle, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(options.DECODER_OPTIONS, "max_pixels", str(320 * 192))
    watching = watch(camera.url)
    watching.until_frames()
    camera.resize(640, 360)
    watching.until_state("lost")
    assert "can no longer be decoded" in watching.context.camera_states[-1][2]
    assert set(watching.sizes) == {(320, 180)}
    camera.heal()
    watching.until_state("live")


def test_a_bug_of_ours_costs_a_while_and_not_the_camera(
    camera: CameraHandle, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    convert, failures = pixels.planes_of, iter(range(2))

    def fail_twice(*args: Any) -> Any:
        if next(failures, None) is not None:
            raise TypeError("a bug")
        return convert(*args)

    monkeypatch.setattr(pixels, "planes_of", fail_twice)
    with capture_logs() as logged:
        watching = watch(camera.url)
        watching.until_frames()
    assert watching.states == ["connecting", "lost", "live"]
    assert "camgraph itself failed (TypeError)" in watching.context.camera_states[1][2]
    assert [(line["event"], str(line["exc_info"])) for line in logged] == [("source_failed", "a bug")]
    assert [(stamp.epoch, stamp.seq) for stamp in watching.stamps[:2]] == [(0, 0), (0, 1)]


def test_a_lack_of_memory_costs_a_while_and_not_the_camera(
    camera: CameraHandle, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    with capture_logs() as logged:
        watching = watch(camera.url)
        watching.until_frames()
        watching.context.outputs_leave = True  # only then does a frame need memory of its own
        new_arrays = watching.context.new_arrays
        short = iter(range(3))

        def lack(specs: Any) -> Any:
            if next(short, None) is not None:
                raise MemoryError
            return new_arrays(specs)

        monkeypatch.setattr(watching.context, "new_arrays", lack)
        watching.until_state("lost")
        watching.until_state("live")
        watching.until_frames()
    assert watching.states == ["connecting", "live", "lost", "live"]
    assert "raise the limit (ulimit -v, or that of the container)" in watching.context.camera_states[2][2]
    assert logged == []
    assert {stamp.epoch for stamp in watching.stamps} == {0, 1}


def test_backs_off_from_camera_that_hangs_up(camera: CameraHandle, watch: Watch) -> None:
    camera.cut("fin", after_frames=5)
    watching = watch(camera.url)
    watching.until(lambda: len(watching.states) >= 9)
    lives = [stamp.captured_ns / 1e9 for stamp in watching.stamps if stamp.seq == 0]
    assert watching.states[:9] == ["connecting", *["live", "lost"] * 4]
    assert lives[3] - lives[2] > 1.4
    camera.heal()
    watching.until_state("live")
