"""What systemd learns of real runs, which are started as it starts them."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from camgraph_test_stages.waiting import until

from camgraph.pipeline.monitoring.health import Health, Phase
from camgraph.pipeline.monitoring.run_status import RunStatus
from camgraph.pipeline.system.service_manager import ServiceManager
from camgraph.tools.display.service_notices import ServiceNotices

pytestmark = pytest.mark.cold  # /proc/PID/environ is looked at

ROOT = Path(__file__).parents[3]
LIMIT_S = 120.0
GRAPH = """
version: 1
name: served
processes: {processes}
cameras: {{a: {{frames: 1000000, pace_ms: 20, live: true}}}}
stages:
  src: {{use: count_source}}
  out: {{use: collect, from: src, with: {{path: out}}}}
"""


class Served:
    """A run under a service manager: all that it has said is in `received`."""

    def __init__(self, folder: Path, processes: str) -> None:
        self.folder = folder
        self.received: list[str] = []
        (folder / "g.yaml").write_text(GRAPH.format(processes=processes))
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(folder / "notify"))
        self._socket.setblocking(False)
        self.run: subprocess.Popen[bytes]

    @contextmanager
    def running(self) -> Iterator[None]:
        environ = {
            **os.environ,
            "PYTHONPATH": str(ROOT / "src"),
            "CAMGRAPH_RUN_DIR": str(self.folder / "runs"),
            "CAMGRAPH_STATE_DIR": str(self.folder / "state"),
            "NOTIFY_SOCKET": str(self.folder / "notify"),
            "WATCHDOG_USEC": "1000000",
        }
        command = [sys.executable, "-m", "camgraph", "run", "g.yaml", "--json-logs"]
        with (self.folder / "log").open("wb") as log, self._socket:
            self.run = subprocess.Popen(
                command, cwd=self.folder, env=environ, stdout=log, stderr=log, start_new_session=True
            )
            try:
                yield
            finally:
                self.run.kill()
                self.run.wait()

    def receive(self) -> list[str]:
        """All lines so far."""
        while True:
            try:
                self.received += self._socket.recv(65536).decode().splitlines()
            except BlockingIOError:
                return self.received

    def until(self, line: str, number: int = 1) -> None:
        until(lambda: self.receive().count(line) >= number, LIMIT_S, lambda: (self.received, self.log()))

    def log(self) -> str:
        return (self.folder / "log").read_text()

    def index(self, line: str) -> int:
        return self.received.index(line)


@pytest.fixture
def folder() -> Iterator[Path]:
    """With a short path, because sockets are in it."""
    with tempfile.TemporaryDirectory(prefix="cgn", dir="/tmp") as folder:
        yield Path(folder)


def test_a_run_reports_ready_alive_reloading_and_stopping(folder: Path) -> None:
    served = Served(folder, "separate")
    with served.running():
        served.until("READY=1")
        assert served.received[0].startswith(("EXTEND_TIMEOUT_USEC=", "STATUS="))
        before = served.received[: served.index("READY=1")]
        until(lambda: '"running"' in served.log(), LIMIT_S)
        assert any(line.startswith("STATUS=degraded: starting for ") for line in before)
        until(lambda: any(line.startswith("STATUS=healthy: 1 camera, ") for line in served.receive()), LIMIT_S)
        environments = environments_of_processes(served.run.pid)
        assert len(environments) == 2
        assert not any(b"NOTIFY_SOCKET" in environ or b"WATCHDOG" in environ for environ in environments)
        (folder / "g.yaml").write_text(
            (folder / "g.yaml").read_text().replace("cameras: {", "cameras: {b: {live: true}, ")
        )
        served.run.send_signal(signal.SIGHUP)
        served.until("READY=1", 2)
        assert served.index("READY=1") < served.index("RELOADING=1")
        assert served.received[served.index("RELOADING=1") + 1].startswith("MONOTONIC_USEC=")
        until(lambda: '"graph_reloaded"' in served.log(), LIMIT_S)  # another process writes it
        beats = served.received.count("WATCHDOG=1")
        served.until("WATCHDOG=1", beats + 4)
        served.run.send_signal(signal.SIGTERM)
        served.until("STOPPING=1")
        assert served.run.wait(LIMIT_S) == 0, served.log()
        assert served.receive().count("STOPPING=1") == 1
        assert served.received.count("READY=1") == 2


def environments_of_processes(pid: int) -> list[bytes]:
    """Of the processes of a run. Its other child, a fork that writes its log, executes nothing."""
    children = [Path(f"/proc/{child}") for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    workers = [child for child in children if b"camgraph.pipeline.worker.child" in (child / "cmdline").read_bytes()]
    return [(worker / "environ").read_bytes() for worker in workers]


def test_a_run_in_one_process_says_so_as_well(folder: Path) -> None:
    served = Served(folder, "one")
    with served.running():
        served.until("READY=1")
        served.until("WATCHDOG=1", 3)
        served.run.send_signal(signal.SIGTERM)
        served.until("STOPPING=1")
        assert served.run.wait(LIMIT_S) == 0, served.log()


class ToldRun:
    """A run whose phase the test sets."""

    phase: Phase = "starting"
    is_reloading = False

    def status(self) -> RunStatus:
        return RunStatus(health=Health("healthy", "rtsp://viewer:geheim@cam/1"), phase=self.phase)


class Recorder:
    """The notifications, with the moment of each, by a clock that the test moves."""

    def __init__(self, folder: Path) -> None:
        self.now = 100.0
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(folder / "notify"))
        self.socket.setblocking(False)
        self.manager = ServiceManager(str(folder / "notify"), watchdog_s=60.0)
        self.notices = ServiceNotices(self.manager, lambda: self.now)
        self.run = ToldRun()

    def after(self, seconds: float) -> set[str]:
        """What is said in a turn so much later."""
        self.now += seconds
        self.notices(self.run)
        return self.heard()

    def heard(self) -> set[str]:
        received = set()
        while True:
            try:
                received.add(self.socket.recv(65536).decode().partition("\n")[0])
            except BlockingIOError:
                return received

    def close(self) -> None:
        self.manager.close()
        self.socket.close()


@pytest.fixture
def recorder(tmp_path: Path) -> Iterator[Recorder]:
    one = Recorder(tmp_path)
    try:
        yield one
    finally:
        one.close()


def test_each_thing_is_said_in_time_and_not_too_often(recorder: Recorder) -> None:
    status = "STATUS=healthy: rtsp://***@cam/1"
    longer = "EXTEND_TIMEOUT_USEC=60000000"
    assert recorder.after(0) == {"WATCHDOG=1", status, longer}
    assert recorder.after(0.1) == set()
    assert recorder.after(20) == {"WATCHDOG=1", status, longer}
    recorder.run.phase = "running"
    assert recorder.after(0.1) == {"READY=1", status}
    assert recorder.after(20) == {"WATCHDOG=1", status}
    recorder.run.phase = "stopping"
    assert recorder.after(0.1) == {"STOPPING=1", longer}
    assert recorder.after(20) == {"WATCHDOG=1", status, longer}


def test_a_reload_ends_when_the_run_has_done_it_even_at_once(recorder: Recorder) -> None:
    recorder.run.phase = "running"
    recorder.after(0)
    recorder.run.is_reloading = True
    recorder.notices.reloading()
    assert recorder.after(0.1) == {"RELOADING=1"}
    assert recorder.after(0.1) == set()
    recorder.run.is_reloading = False
    assert recorder.after(0.1) == {"READY=1"}
    recorder.notices.reloading()
    assert recorder.after(0.1) == {"RELOADING=1", "READY=1"}


def test_what_finds_no_room_is_said_again(recorder: Recorder) -> None:
    while recorder.manager.alive():
        pass
    recorder.run.phase = "running"
    recorder.notices(recorder.run)
    assert "READY=1" not in recorder.heard()
    assert "READY=1" in recorder.after(0.1)
