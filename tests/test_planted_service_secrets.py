"""Secrets of the service, of traces and of cameras are looked for in all that a run says, over HTTP and elsewhere.

The cameras with passwords refuse them, and repeat what they were told.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from camgraph_test_stages.brokers import free_port
from camgraph_test_stages.collector import Collector
from camgraph_test_stages.planted import Planted, as_camera, decoded, parrot, told_by_the_system, word
from camgraph_test_stages.waiting import json_lines, until

from camgraph.tools.lab.blinking import write_clip
from camgraph.tools.lab.light_model import SIDE, write_model
from camgraph.tools.scenes.simulator import CameraSettings, ClipSettings, RtspSimulator

pytestmark = pytest.mark.cold  # /proc/PID/environ is looked at

ROLES = ("viewer", "operator", "admin")
ENDLESS = ("/live.mp4", "/mjpeg", "/people", "/stream")
LIMIT_S = 120.0
OK = 200
HTTP_ERROR = 400


def graph_of(planted: Planted, name: str, hall: str, camera_port: int, collector_port: int, page_port: int) -> Any:
    tokens = [{"name": role, "role": role, "token": planted.plant(role, "/@+%")} for role in ROLES]
    gate = f"rtsp://viewer:{planted.plant('gate')}@127.0.0.1:{camera_port}/main?token={planted.plant('query')}"
    return {
        "version": 1,
        "name": name,
        "tracing": {
            "endpoint": f"http://127.0.0.1:{collector_port}",
            "headers": {"Authorization": f"Bearer {planted.plant('collector', '+/')}"},
        },
        "cameras": {"hall": {"url": hall}, "gate": {"url": gate}},
        "stages": {
            "capture": {"use": "capture"},
            "prepare": {"use": "preprocess", "from": "capture", "with": {"size": [SIDE, SIDE]}},
            "infer": {"use": "infer", "from": "prepare", "with": {"model": "light.onnx"}},
            "people": {"use": "decode_yolo_pose", "from": "infer"},
            "tracks": {"use": "track", "from": "people", "with": {"confirm_s": 0}},
            "actions": {"use": "rules", "from": "tracks", "with": {"file": "rules.yaml"}},
            "footage": {"use": "sink_footage", "from": "actions", "with": {"path": "footage", "before_s": 1}},
            "log": {"use": "sink_jsonl", "from": "events", "with": {"path": "events.jsonl"}},
            "page": {"use": "serve", "from": "events", "with": {"address": f"127.0.0.1:{page_port}", "tokens": tokens}},
        },
    }


RULES = """version: 1
zones: {bed: [[0, 0], [0.5, 0], [0.5, 1], [0, 1]]}
rules: [{id: somebody, when: score > 0.3, hold: 0.2s}]
"""


@dataclass
class Service:
    """A run that serves, and one who asks it. Each answer is kept by what was asked."""

    planted: Planted
    folder: Path
    port: int
    pid: int
    answers: dict[str, bytes]

    def ask(self, method: str, path: str, role: str = "admin", **more: Any) -> httpx.Response:
        headers = {"Authorization": f"Bearer {self.planted.values[role]}"} if role else {}
        url = f"http://127.0.0.1:{self.port}{path}"
        answer = httpx.request(method, url, headers=headers, timeout=LIMIT_S, **more)
        self._keep(f"{method} {path} as {role}", answer, answer.content)
        return answer

    def begin(self, path: str) -> None:
        """Read the first piece of an answer without an end."""
        headers = {"Authorization": f"Bearer {self.planted.values['admin']}"}
        url = f"http://127.0.0.1:{self.port}{path}"
        with httpx.stream("GET", url, headers=headers, timeout=LIMIT_S) as answer:
            self._keep(f"the stream {path}", answer, next(answer.iter_raw(), b""))

    def _keep(self, asked: str, answer: httpx.Response, body: bytes) -> None:
        head = "".join(f"{name}: {value}\n" for name, value in answer.headers.items() if name != "set-cookie")
        self.answers[f"{len(self.answers)} {asked}: {answer.status_code}"] = head.encode() + body

    @property
    def log(self) -> bytes:
        return (self.folder / "log").read_bytes()

    def camera(self, name: str) -> dict[str, Any]:
        return next((one for one in self.ask("GET", "/api/cameras").json()["cameras"] if one["name"] == name), {})


@contextmanager
def service_running(
    planted: Planted, folder: Path, hall: str, camera_port: int, collector_port: int
) -> Iterator[Service]:
    port, runs = free_port(), tempfile.mkdtemp(prefix="cg")
    kept, place = folder / "kept", folder / "run"
    for one in (kept, place):
        one.mkdir()
    write_model(place / "light.onnx", bright=110.0)
    (place / "rules.yaml").write_text(RULES)
    name = f"told{os.getpid()}"
    graph = graph_of(planted, name, hall, camera_port, collector_port, port)
    (place / "graph.json").write_text(json.dumps(graph))
    for secret, value in planted.values.items():
        (kept / secret).write_text(value)
        (kept / secret).chmod(0o600)
    environ = {"CREDENTIALS_DIRECTORY": str(kept), "CAMGRAPH_STATE_DIR": str(place / "state"), "CAMGRAPH_RUN_DIR": runs}
    command = [sys.executable, "-m", "camgraph.tools.cli", "serve", "graph.json", "--json-logs"]
    repository = str(Path(__file__).parents[1] / "src")
    with (place / "log").open("wb") as log:
        run = subprocess.Popen(
            command, cwd=place, env={**os.environ, **environ, "PYTHONPATH": repository}, stdout=log, stderr=log
        )
    service = Service(planted, place, port, run.pid, {})

    def is_ready() -> bool:
        with suppress(httpx.TransportError):
            return service.ask("GET", "/readyz").status_code == OK
        return run.poll() is not None

    try:
        until(is_ready, LIMIT_S, lambda: service.log, every_s=0.1)
        assert run.poll() is None, service.log
        yield service
        run.send_signal(signal.SIGINT)
        assert run.wait(LIMIT_S) == 130, service.log
    finally:
        run.kill()
        run.wait()
        shutil.rmtree(runs, ignore_errors=True)


@contextmanager
def camera_with_password(folder: Path, planted: Planted) -> Iterator[str]:
    """A camera that works: its address, with the name of its password."""
    write_clip(folder / "cam.mp4")
    named = planted.plant("hall")
    clip = ClipSettings(path=str(folder / "cam.mp4"))
    settings = CameraSettings(name="main", clip=clip, auth="basic", user="viewer", password=planted.values["hall"])
    with RtspSimulator([settings]) as simulator:
        [camera] = simulator.cameras
        yield f"rtsp://viewer:{named}@127.0.0.1:{camera.port}/main"


def add_cameras(service: Service, port: int) -> None:
    """One that is taken in with its password, and some that are refused with theirs."""
    passwords = {}
    for name in ("yard", "wrong key", "wrong scheme", "wrong name"):
        service.planted.plant(name)
        passwords[name] = quote(service.planted.values[name], safe="")
    url = f"rtsp://viewer:{{}}@127.0.0.1:{port}/main"

    def add(name: str, url: str, **more: Any) -> int:
        body = {"name": name, "settings": {"url": url, **more}}
        return service.ask("POST", "/api/cameras", json=body).status_code

    assert add("yard", url.format(passwords["yard"])) < HTTP_ERROR
    assert add("a", url.format(passwords["wrong key"]), nope=1) == HTTP_ERROR
    assert add("b", url.format(passwords["wrong scheme"]).replace("rtsp", "rstp")) == HTTP_ERROR
    assert add("/", url.format(passwords["wrong name"])) == HTTP_ERROR


def ask_all(service: Service) -> int:
    """Every GET of the document, with names that there are; how many answered well."""
    document = service.ask("GET", "/openapi.json").json()
    [incident, *_] = service.ask("GET", "/api/incidents").json()["incidents"]
    names = {"{incident}": incident["incident"], "{file}": (incident["crops"] or ["x"])[0].rpartition("/")[2]}
    good = 0
    for path in (path for path, methods in document["paths"].items() if "get" in methods):
        for camera in ("hall", "gate", "yard") if "{name}" in path else ("",):
            filled = path.replace("{name}", camera)
            for name, value in names.items():
                filled = filled.replace(name, value)
            if path.endswith(ENDLESS) and (camera != "gate" or not path.endswith(("/live.mp4", "/mjpeg"))):
                after = "?after=0" if path.endswith("/events/stream") else ""
                service.begin(filled + after)
            elif not path.endswith(ENDLESS):
                good += service.ask("GET", filled).status_code < HTTP_ERROR
    return good


def log_in(service: Service) -> None:
    """By a right token, whose cookie is a secret from then on, and by a wrong one."""
    answer = service.ask("POST", "/login", role="", json={"token": service.planted.values["operator"]})
    service.planted.look_for("the cookie", next(iter(answer.cookies.values())))
    wrong = word()
    service.planted.look_for("a wrong token", wrong)
    assert service.ask("POST", "/login", role="", json={"token": wrong}).status_code == 401
    assert service.ask("POST", "/login", role="", json={"tokne": wrong}).status_code == HTTP_ERROR


def test_the_service_and_the_traces_disclose_no_planted_secret(tmp_path: Path) -> None:
    collector, planted = Collector(), Planted()
    with (
        parrot(as_camera) as (camera_port, told),
        camera_with_password(tmp_path, planted) as hall,
        service_running(planted, tmp_path, hall, camera_port, collector.port) as service,
    ):
        add_cameras(service, camera_port)
        for name in ("gate", "yard"):  # in words of the camera, which has repeated its password
            until(lambda name=name: service.camera(name).get("why"), LIMIT_S, lambda: service.log, every_s=0.2)
        until(lambda: service.ask("GET", "/api/incidents").json()["incidents"], LIMIT_S, every_s=0.2)
        until(lambda: collector.spans, LIMIT_S, lambda: service.log, every_s=0.2)
        collector.status = 400
        until(lambda: b"traces_do_not_arrive" in service.log, LIMIT_S, lambda: service.log, every_s=0.2)
        log_in(service)
        assert ask_all(service) > 15
        looked_at = {**service.answers, **dict(told_by_the_system(service.pid))}
    for file in (file for file in sorted(service.folder.rglob("*")) if file.is_file()):
        looked_at[str(file)] = file.read_bytes()
    looked_at["the spans"] = b"".join(span.SerializeToString() for span in collector.spans)
    collector.end()
    disclosed = {place: found for place, data in looked_at.items() if (found := planted.found_in(data))}
    assert disclosed == {}
    repeated = planted.found_in(b"".join([*told, *decoded(b" ".join(told))]))
    assert repeated >= {"gate", "query", "yard"}
    assert all(planted.values["collector"] in headers["Authorization"] for headers in collector.headers)
    reasons = {line["camera"]: line["why"] for line in json_lines(service.log) if line.get("state") == "unauthorised"}
    assert reasons.keys() == {"gate", "yard"}
