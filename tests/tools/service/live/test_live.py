"""Live video and live people over HTTP, from cameras that are streamed over RTSP."""

from __future__ import annotations

import asyncio
import io
import itertools
import json
import re
import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import cv2
import httpx
import numpy as np
import pytest
from camgraph_test_stages.services import TOKENS, Served, serving_run, with_tokens, write_light
from camgraph_test_stages.waiting import until

from camgraph.pipeline.errors import GraphError
from camgraph.pipeline.graph import load_graph
from camgraph.tools.lab.blinking import write_clip
from camgraph.tools.lab.light_model import SIDE, write_model
from camgraph.tools.scenes.simulator import CameraSettings, ClipSettings, RtspSimulator
from camgraph.tools.service.live import live_video

WITHIN_S = 120.0
GRAPH = """
version: 1
name: live
cameras:
  hall: {{url: "HALL"}}
  yard: {{url: "YARD"}}
  film: {{url: cam.mp4, loop: true, max_fps: 0.1}}
stages:
  capture: {{use: capture}}
  prepare: {{use: preprocess, from: {{stage: capture, policy: drop_oldest}}, with: {{size: [SIDE, SIDE]}}}}
  infer: {{use: infer, from: prepare, with: {{model: light.onnx}}}}
  people: {{use: decode_yolo_pose, from: infer}}
  tracks: {{use: track, from: people, with: {{confirm_s: 0}}}}
  actions:
    use: rules
    from: tracks
    with:
      zones: {{all: [[0, 0], [1, 0], [1, 1], [0, 1]]}}
      rules: [{{id: seen, when: score > 0.3, hold: 0.2s}}]
  page: {{use: serve, from: events, with: {{address: "127.0.0.1:{port}"{more}}}}}
""".replace("SIDE", str(SIDE))


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("v")
    write_light(folder)
    clips = {
        "hall": ClipSettings(path=str(folder / "cam.mp4")),
        "yard": ClipSettings(path=str(folder / "cam.mp4"), codec="h265", width=320),
    }
    with RtspSimulator([CameraSettings(name=name, clip=clip) for name, clip in clips.items()]) as simulator:
        graph = GRAPH
        for name in clips:
            graph = graph.replace(name.upper(), simulator.camera(name).url)
        with serving_run(folder, graph, more=with_tokens()) as run:
            yield run


def film_of(served: Served, camera: str, stack: ExitStack, path: str = "live.mp4") -> httpx.Response:
    """The answer of its video, once it begins."""
    client = stack.enter_context(httpx.Client(timeout=WITHIN_S))
    headers = {"Authorization": f"Bearer {TOKENS['viewer']}"}
    url = f"http://127.0.0.1:{served.port}/api/cameras/{camera}/{path}"

    def tried() -> httpx.Response | None:
        answer = stack.enter_context(client.stream("GET", url, headers=headers))
        return answer if answer.status_code == 200 else None

    return until(tried, WITHIN_S, every_s=0.5)  # type: ignore[return-value]


def pictures(pieces: Iterator[bytes], enough: int) -> list[Fraction]:
    """The times of the first pictures, in seconds of the file. To drop `pieces` is to leave."""
    film = b""
    for piece in pieces:
        film += piece
        if film.count(b"moof") > enough:
            break
    with av.open(io.BytesIO(film[: film.rfind(b"moof") - 4])) as container:
        base = container.streams.video[0].time_base
        assert base is not None
        return [frame.pts * base for frame in container.decode(video=0) if frame.pts is not None]


@pytest.mark.parametrize(("camera", "codec"), [("hall", r"avc1\.[0-9a-f]{6}"), ("yard", r"hvc1\.1\.6\.L\d+\..*")])
def test_a_camera_is_watched_as_it_comes(served: Served, camera: str, codec: str) -> None:
    with ExitStack() as stack:
        answer = film_of(served, camera, stack)
        assert re.fullmatch(f'video/mp4; codecs="{codec}"', answer.headers["Content-Type"])
        times = pictures(answer.iter_bytes(), 25)
        assert len(times) >= 20
        assert times == sorted(times)


def test_a_second_viewer_begins_at_once_and_none_costs_when_gone(served: Served) -> None:
    with ExitStack() as stack:
        first = film_of(served, "hall", stack)
        pieces = first.iter_bytes()
        assert len(pictures(pieces, 8)) >= 5
        second = film_of(served, "hall", stack)
        assert len(pictures(second.iter_bytes(), 8)) >= 5
        assert second.headers["X-Camgraph-Start"] == first.headers["X-Camgraph-Start"]
        assert listeners(served, "hall.packets") > 0
    until(lambda: listeners(served, "hall.packets") == 0, WITHIN_S, every_s=0.3)


def listeners(served: Served, name: str) -> int:
    """How many are connected to a socket of the run.

    A row of /proc/net/unix has no more of the address than its end, which other runs on this machine have as well: so
    only the ends that a process of this run has count.
    """
    rows = [row.split() for row in Path("/proc/net/unix").read_text().splitlines()[1:]]
    connected = {f"socket:[{row[6]}]" for row in rows if row[-1].endswith(f"/{name}") and row[5] == "03"}
    processes = served.get("/api/status", "viewer").json()["processes"].values()
    return sum(len(connected & sockets_of(process["pid"])) for process in processes)


def sockets_of(pid: int) -> set[str]:
    found = set()
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            found.add(str(descriptor.readlink()))
    return found


def test_who_begins_with_many_pictures_is_not_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pictures since the last keyframe of a large camera are more than may wait for a viewer."""
    monkeypatch.setattr(live_video, "_MOST_WAITING", 10)
    viewer = live_video.FilmViewer()
    viewer.begin_with([b"beginning", b"keyframe", b"fragment"])
    viewer.hand(b"newest")

    async def taken() -> list[bytes]:
        pieces = viewer.pieces()
        return [await anext(pieces) for _ in range(4)]

    assert asyncio.run(taken()) == [b"beginning", b"keyframe", b"fragment", b"newest"]
    viewer.begin_with([b"much"])
    viewer.hand(b"more than may wait")
    assert asyncio.run(rest_of(viewer)) == []


async def rest_of(viewer: live_video.FilmViewer) -> list[bytes]:
    return [piece async for piece in viewer.pieces()]


def test_the_people_of_a_picture_have_its_time(served: Served) -> None:
    with ExitStack() as stack:
        film = film_of(served, "hall", stack)
        begin = float(film.headers["X-Camgraph-Start"])
        seen: list[dict[str, Any]] = []
        people = stack.enter_context(httpx.Client(timeout=WITHIN_S))
        url = f"http://127.0.0.1:{served.port}/api/cameras/hall/people"
        headers = {"Authorization": f"Bearer {TOKENS['viewer']}"}
        answer = stack.enter_context(people.stream("GET", url, headers=headers))
        for line in answer.iter_lines():
            if line.startswith("data:"):
                seen.append(json.loads(line.removeprefix("data: ")))
            if len(seen) > 40:
                break
        times = pictures(film.iter_bytes(), 50)
    shapes, *frames = [one for one in seen if one.get("people") is not None or "zones" in one]
    assert shapes["zones"] == {"all": [[0, 0], [1, 0], [1, 1], [0, 1]]}
    epoch = int(film.headers["X-Camgraph-Epoch"])
    filmed = {round(float(at) + begin, 3) for at in times}
    told = {round(one["at"], 3) for one in frames if one["epoch"] == epoch}
    both = {at for at in told if min(filmed) <= at <= max(filmed)}
    assert len(both) > 5, (sorted(filmed)[:5], sorted(told)[:5])
    assert both <= filmed
    fired = [one for one in frames if one["now"]]
    assert fired
    assert any(one["people"] and one["now"][0]["ids"] == [one["people"][0]["id"]] for one in fired)


def test_a_camera_is_seen_as_pictures_with_people_drawn_on_them(served: Served) -> None:
    """H.265 over RTSP. Somebody is in the bright pictures, and nobody in the dark ones."""
    found: list[tuple[float, int, bool]] = []
    with ExitStack() as stack:
        answer = film_of(served, "yard", stack, "mjpeg")
        assert answer.headers["Content-Type"] == "multipart/x-mixed-replace; boundary=picture"
        data = b""
        for piece in answer.iter_raw():
            *whole, data = (data + piece).split(b"\r\n--picture\r\n")
            found += map(seen_in, whole)
            if any(drawn for _, _, drawn in found) and any(level < 90 for _, level, _ in found) and len(found) > 5:
                break
    times = [at for at, _, _ in found]
    assert all(later - earlier > 0.19 for earlier, later in itertools.pairwise(times))
    assert all(level > 90 for _, level, drawn in found if drawn)
    until(lambda: listeners(served, "yard.packets") == 0, WITHIN_S, every_s=0.3)
    refused = served.get("/api/cameras/yard/mjpeg?draw=perhaps", "viewer")
    assert (refused.status_code, refused.json()["error"]) == (400, "draw: expected yes or no")
    assert served.call("HEAD", "/api/cameras/yard/mjpeg", "viewer").status_code == 200
    assert served.get("/api/cameras/nobody/mjpeg", "viewer").status_code == 404


def seen_in(part: bytes) -> tuple[float, int, bool]:
    """Of a part: its time, how bright it is, and whether a skeleton is drawn on its middle; it is grey itself."""
    head, _, body = part.partition(b"\r\n\r\n")
    at = re.search(rb"X-Camgraph-At: ([0-9.]+)", head)
    picture = cv2.imdecode(np.frombuffer(body, np.uint8), cv2.IMREAD_COLOR)
    assert at is not None
    assert picture is not None
    middle = picture[40:-40, 150:170].astype(int)
    return float(at[1]), int(np.median(picture)), int((middle.max(axis=2) - middle.min(axis=2)).max()) > 100


def test_what_cannot_be_watched_says_why(served: Served) -> None:
    answer = until(lambda: _of_film(served), WITHIN_S, every_s=0.5)
    assert answer == (400, "a file that is read as fast as possible cannot be watched: give it `realtime: true`")
    answer = served.get("/api/cameras/nobody/live.mp4", "viewer")
    assert (answer.status_code, answer.json()["error"]) == (404, "the run has no camera nobody")
    assert served.call("HEAD", "/api/cameras/hall/live.mp4", "viewer").status_code == 200


def _of_film(served: Served) -> tuple[int, str] | None:
    answer = served.get("/api/cameras/film/live.mp4", "viewer")
    return None if answer.status_code in (404, 503) else (answer.status_code, answer.json()["error"])


def test_one_full_share_takes_nothing_from_others(served: Served) -> None:
    with ExitStack() as stack:
        for _ in range(8):
            film_of(served, "hall", stack)
        answer = served.get("/api/cameras/yard/live.mp4", "viewer")
        why = "8 live videos and pictures are open from your address: close one of them"
        assert (answer.status_code, answer.json()) == (429, {"error": why, "id": "too-many-readers"})
        assert served.get("/api/cameras/yard/mjpeg", "viewer").status_code == 429
        other = stack.enter_context(
            httpx.Client(transport=httpx.HTTPTransport(local_address="127.0.0.2"), timeout=WITHIN_S)
        )
        headers = {"Authorization": f"Bearer {TOKENS['operator']}"}
        url = f"http://127.0.0.1:{served.port}/api/cameras/yard/live.mp4"
        film = stack.enter_context(other.stream("GET", url, headers=headers))
        assert len(pictures(film.iter_bytes(), 5)) >= 3
    with ExitStack() as stack:
        assert len(pictures(film_of(served, "yard", stack).iter_bytes(), 5)) >= 3


def test_who_watches_and_reads_nothing_slows_nobody(served: Served) -> None:
    request = f"GET /api/cameras/hall/live.mp4 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKENS['viewer']}\r\n\r\n"
    with ExitStack() as stack:
        for _ in range(5):
            silent = stack.enter_context(socket.create_connection(("127.0.0.1", served.port)))
            silent.sendall(request.encode())
        assert len(pictures(film_of(served, "hall", stack).iter_bytes(), 30)) >= 25


@pytest.mark.parametrize(
    ("look", "video", "why"),
    [
        ("skeleton_only", "", ""),
        ("blurred_faces", "", ""),
        ("annotated", "", "yes"),
        ("blurred_faces", ", video: true", "yes"),
        ("skeleton_only", ", video: true", "stages.page: it would show frames: with `look: skeleton_only` no picture"),
    ],
)
def test_nothing_that_others_hide_is_shown(tmp_path: Path, look: str, video: str, why: str) -> None:
    write_clip(tmp_path / "cam.mp4")
    write_model(tmp_path / "light.onnx", bright=110.0)
    footage = f"  footage: {{use: sink_footage, from: actions, with: {{path: footage, look: {look}}}}}\n"
    text = GRAPH.replace("HALL", "cam.mp4").replace("YARD", "cam.mp4").format(port=8351, more=video) + footage
    (tmp_path / "g.yaml").write_text(text)
    if len(why) > len("yes"):
        with pytest.raises(GraphError, match=re.escape(why)):
            load_graph(tmp_path / "g.yaml")
        return
    nodes = load_graph(tmp_path / "g.yaml").completed.nodes
    settings = next(node.settings for node in nodes if node.name == "page")
    assert settings is not None
    assert settings.video is bool(why)
