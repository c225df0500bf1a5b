"""An outage of a broker: `python -m camgraph.tools.lab.proofs.outage [--sink webhook] [--events 180000]`.

An hour of 50 events a second of live cameras is made while the other side is away, as fast as the machine makes them
(the time is compressed, the number is not). Then the cameras pause and the other side comes. While it gets the events,
it is killed and started again, as are the process of the sink and that of the outbox. At last the whole run is killed,
and its next one goes on. It is proven that everything that was committed was received, each camera's events in their
order, and that repeated ones have the same id.

`tests/plugin` must be installed, and for `--sink redis` the program `redis-server`.
"""

from __future__ import annotations

import importlib
import json
import math
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Protocol

import click

from camgraph.pipeline.supervision.control_client import ask
from camgraph.tools.lab.broker_servers import free_port
from camgraph.tools.lab.figure import Figure, figure_command

_CAMERAS = ("front", "yard", "hall")
_LIMIT_S = 1200.0
_ENDLESS = 1 << 40
_PACE_MS = 1.0
_AWAY_S = 1.0
_EVENT_S = 1 / 230 + 1 / 310
"""About what committing and delivering an event take."""
_RESTART_S = 60.0
_VICTIMS = ("other side", "alert", "outbox")


class OtherSide(Protocol):
    """A receiver of events that can be killed; what it has confirmed outlives it."""

    def sink(self) -> Mapping[str, Any]: ...

    def start(self) -> None: ...

    def kill(self) -> bool:
        """Kill it; whether it was alive until now."""

    def received(self) -> list[tuple[str, int, str]]:
        """(camera, seq, id) in the order of arrival, with repetitions."""


_HTTP = """
import json, sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
log = open(sys.argv[2], "ab", buffering=0)
class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    def do_POST(self):
        log.write(self.rfile.read(int(self.headers["Content-Length"])).replace(b"\\n", b"") + b"\\n")
        self.send_response(204); self.send_header("Content-Length", "0"); self.end_headers()
    def log_message(self, *_): pass
ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


@dataclass
class Webhook:
    """A web server that answers once the event is in its file."""

    folder: Path
    port: int
    _process: subprocess.Popen[bytes] | None = None

    def sink(self) -> Mapping[str, Any]:
        url = f"http://127.0.0.1:{self.port}/events"
        return {"use": "sink_webhook", "with": {"url": url, "allow_private": True}}

    def start(self) -> None:
        command = [sys.executable, "-c", _HTTP, str(self.port), str(self.folder / "received.jsonl")]
        self._process = subprocess.Popen(command)  # noqa: S603

    def kill(self) -> bool:
        process, self._process = self._process, None
        return process is not None and _killed(process)

    def received(self) -> list[tuple[str, int, str]]:
        path = self.folder / "received.jsonl"
        lines = path.read_bytes().splitlines() if path.exists() else []
        return [_facts(json.loads(line)) for line in lines if line.endswith(b"}")]


@dataclass
class Redis:
    """A Redis that has written an event to its file when it answers."""

    folder: Path
    port: int
    _process: subprocess.Popen[bytes] | None = None

    def sink(self) -> Mapping[str, Any]:
        return {
            "use": "sink_redis",
            "batch": {"max": 100},
            "with": {"address": f"redis://127.0.0.1:{self.port}", "stream": "events", "max_length": 0},
        }

    def start(self) -> None:
        options = ["--port", str(self.port), "--bind", "127.0.0.1", "--appendonly", "yes", "--save", ""]
        program = shutil.which("redis-server") or ""
        if not program:
            raise click.ClickException("there is no program redis-server: install it, or take --sink webhook")
        with (self.folder / "redis.log").open("ab") as log:
            command = [program, *options, "--dir", str(self.folder)]
            self._process = subprocess.Popen(command, stdout=log)  # noqa: S603

    kill = Webhook.kill

    def received(self) -> list[tuple[str, int, str]]:
        redis: Any = importlib.import_module("redis")  # an extra
        client = redis.Redis(port=self.port)
        found, last = list[tuple[str, int, str]](), "-"
        while page := client.xrange("events", last, "+", count=10_000):
            found += [_facts(json.loads(fields[b"event"])) for _, fields in page]
            last = "(" + page[-1][0].decode()
        return found


_SIDES: Mapping[str, Callable[[Path, int], OtherSide]] = {"webhook": Webhook, "redis": Redis}


def _facts(event: Mapping[str, Any]) -> tuple[str, int, str]:
    data = event.get("data", event)
    return str(data["camera"]), int(data["seq"]), str(data["id"])


@dataclass
class Outcome:
    """The results of an outage."""

    committed: frozenset[str] = frozenset()
    commit_s: float = 0.0
    drain_s: float = 0.0
    file_mb: float = 0.0
    outbox_mb: float = 0.0
    kills: dict[str, int] = field(default_factory=dict)
    missed: list[str] = field(default_factory=list)
    """The kills that hit nothing: the process was dead already or not found, or all events were delivered before."""
    received: list[tuple[str, int, str]] = field(default_factory=list)

    @property
    def events(self) -> int:
        return len(self.committed)

    @property
    def unique(self) -> int:
        return len({event_id for _, _, event_id in self.received})

    @property
    def out_of_order(self) -> int:
        """Events that came for the first time after a later one of their camera."""
        last: dict[str, int] = {}
        known, late = set[str](), 0
        for camera, seq, event_id in self.received:
            if event_id not in known:
                late += seq < last.get(camera, -1)
                last[camera] = max(seq, last.get(camera, -1))
                known.add(event_id)
        return late

    @property
    def repeated(self) -> int:
        return len(self.received) - self.unique

    @property
    def commit_rate(self) -> float:
        """Committed events a second."""
        return self.events / self.commit_s

    @property
    def rate(self) -> float:
        """Delivered events a second."""
        return self.events / self.drain_s

    @property
    def lost(self) -> int:
        return len(self.committed - {event_id for _, _, event_id in self.received})

    @property
    def unknown(self) -> int:
        """Events that nobody has committed under this id, such as a repeated one with another id."""
        return len({event_id for _, _, event_id in self.received} - self.committed)

    @property
    def is_exact(self) -> bool:
        """Whether exactly what was committed was received, and in order."""
        return self.events > 0 and not (self.lost or self.unknown or self.out_of_order)

    @property
    def good(self) -> bool:
        """Whether it is exact, and each death that was wanted has happened meanwhile."""
        return self.is_exact and bool(self.kills) and not self.missed


class _Run:
    """A run of the graph, in a process that can be killed."""

    name: ClassVar[str] = "outage"

    def __init__(self, folder: Path, sink: Mapping[str, Any]) -> None:
        self._folder = folder
        self._sink = sink
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, *, live: bool) -> None:
        """Begin; cameras that are not `live` end at once."""
        (self._folder / "outage.json").write_text(json.dumps(_graph(self._sink, live=live)))
        environment = {**os.environ, "CAMGRAPH_STATE_DIR": str(self._folder / "state")}
        command = [
            sys.executable,
            "-m",
            "camgraph.tools.cli",
            "run",
            str(self._folder / "outage.json"),
            "--name",
            self.name,
        ]
        with (self._folder / "run.log").open("ab") as log:
            self._process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)  # noqa: S603

    def status(self) -> dict[str, Any]:
        """The status of the run; {} while it does not answer."""
        with suppress(Exception):
            return ask(self.name, "status", within_s=2.0)
        return {}

    def pid_of(self, stage: str) -> int:
        """The pid of the process that has this stage; 0 if there is none now."""
        processes = self.status().get("processes", {})
        return next((int(one["pid"] or 0) for name, one in processes.items() if name.split(".")[0] == stage), 0)

    @property
    def is_over(self) -> bool:
        return self._process is None or self._process.poll() is not None

    def kill(self) -> bool:
        """The supervisor dies; its children notice and end. Whether it was alive until now."""
        was_alive = self._process is not None and _killed(self._process)
        _until(lambda: not self.status(), 30)
        return was_alive

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            for _ in range(2):
                self._process.send_signal(signal.SIGINT)
                with suppress(subprocess.TimeoutExpired):
                    self._process.wait(20)
                    return
            self._process.kill()
            self._process.wait()


def _graph(sink: Mapping[str, Any], *, live: bool) -> dict[str, Any]:
    camera = {"live": True, "frames": _ENDLESS, "pace_ms": _PACE_MS} if live else {"frames": 0}
    return {
        "version": 1,
        "cameras": dict.fromkeys(_CAMERAS, camera),
        "stages": {
            "count": {"use": "count_source"},
            "emit": {"use": "emit", "from": "count"},
            "alert": {**sink, "from": "emit"},
        },
    }


def _until(condition: Callable[[], Any], limit_s: float) -> Any:
    until_s = time.monotonic() + limit_s
    while not (value := condition()):
        if time.monotonic() > until_s:
            raise click.ClickException(f"not within {limit_s:g} s: {getattr(condition, '__name__', condition)}")
        time.sleep(0.05)
    return value


def prove(folder: Path, side: OtherSide, events: int, kills: int) -> Outcome:
    """Commit all without the other side, then deliver under kills."""
    outcome, run = Outcome(), _Run(folder, side.sink())
    try:
        run.start(live=True)
        began_s = time.monotonic()
        _until(lambda: run.is_over or _waiting(folder) >= events, _LIMIT_S)
        if run.is_over:
            raise click.ClickException(f"the run ended: {(folder / 'run.log').read_text()[-1000:]}")
        outcome.commit_s = time.monotonic() - began_s
        _pause(run)
        outcome.committed = _until_still(folder)
        outcome.file_mb = sum(path.stat().st_size for path in _files(folder)) / 1e6
        outcome.outbox_mb = _memory_mb(run.pid_of("outbox"))
        _deliver(folder, run, side, outcome, kills)
        outcome.received = side.received()
    finally:
        run.stop()
        side.kill()
    return outcome


def _pause(run: _Run) -> None:
    for camera in _CAMERAS:
        ask(run.name, "pause", camera=camera)


def _deliver(folder: Path, run: _Run, side: OtherSide, outcome: Outcome, kills: int) -> None:
    """Kill one after the other, the whole run last; that one's successor ends by itself when all is delivered.

    The kills are spread over the events, not over the time: so each of them hits a run that still delivers.
    """
    began_s = time.monotonic()
    side.start()
    for number in range(kills):
        victim = _VICTIMS[number % len(_VICTIMS)] if number < kills - 1 else "run"
        left = outcome.events * (kills - number) // (kills + 1)
        _until(partial(_has_come_to, left, folder, run), _LIMIT_S)
        if _waiting(folder) and _kill(victim, run, side):
            outcome.kills[victim] = outcome.kills.get(victim, 0) + 1
        else:
            outcome.missed.append(victim)
    _until(lambda: run.is_over or not _waiting(folder), _LIMIT_S)
    outcome.drain_s = time.monotonic() - began_s


def _has_come_to(left: int, folder: Path, run: _Run) -> bool:
    return run.is_over or 0 <= _waiting(folder) <= left


def _kill(victim: str, run: _Run, side: OtherSide) -> bool:
    """Kill one of them; whether it was alive and died of this."""
    if victim == "other side":
        was_alive = side.kill()
        time.sleep(_AWAY_S)
        side.start()
        return was_alive
    if victim == "run":
        was_alive = run.kill()
        run.start(live=False)
        return was_alive
    _until(lambda: run.is_over or run.pid_of(victim), _RESTART_S)  # it may still begin anew after the last kill
    return _killed_by_pid(run.pid_of(victim))


def _killed(process: subprocess.Popen[bytes]) -> bool:
    process.kill()
    return process.wait() == -signal.SIGKILL


def _killed_by_pid(pid: int) -> bool:
    """Kill a process that is not our child, and wait until it is gone. False for pid 0, and if there is none."""
    if not pid:
        return False
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    _until(lambda: not Path(f"/proc/{pid}/stat").exists() or _is_zombie(pid), 30)
    return True


def _is_zombie(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    return True


def _files(folder: Path) -> list[Path]:
    return list(folder.glob("state/*/outbox.sqlite*"))


def _waiting(folder: Path) -> int:
    """How many events are committed and not recorded as delivered; -1 if the file cannot be read now."""
    with suppress(sqlite3.Error), closing(_opened(folder)) as db:
        return int(db.execute("SELECT count(*) FROM pending").fetchone()[0])
    return -1 if _files(folder) else 0


def _until_still(folder: Path) -> frozenset[str]:
    """The ids of all that waits, once nothing is added."""
    before, now = -1, _waiting(folder)
    while before != now or now < 0:
        time.sleep(1.0)
        before, now = now, _waiting(folder)
    with closing(_opened(folder)) as db:
        ids = db.execute("SELECT id FROM events JOIN pending ON pending.row = events.row")
        return frozenset(event_id.rpartition(" ")[2] for (event_id,) in ids)


def _opened(folder: Path) -> sqlite3.Connection:
    """Raises sqlite3.Error."""
    return sqlite3.connect(f"file:{folder}/state/{_Run.name}/outbox.sqlite?mode=ro", uri=True)


def _memory_mb(pid: int) -> float:
    with suppress(OSError, ValueError, IndexError):
        status = Path(f"/proc/{pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) / 1e3
    return math.nan


@contextmanager
def _side(kind: str, folder: Path) -> Iterator[OtherSide]:
    side = _SIDES[kind](folder, free_port())
    try:
        yield side
    finally:
        side.kill()


@figure_command("proofs.outage")
@click.option("--sink", type=click.Choice(list(_SIDES)), default="webhook", show_default=True)
@click.option("--events", default=180_000, show_default=True, help="How many are made while the other side is away.")
@click.option("--kills", default=8, show_default=True, help="How many processes are killed while it gets them.")
def main(figure: Figure, sink: str, events: int, kills: int) -> None:
    """Commit events while a broker is away, and deliver them under kills."""
    figure.takes(events * _EVENT_S, f"{events:,} events and {kills} kills")
    with tempfile.TemporaryDirectory(prefix="camgraph-outage-") as name, _side(sink, Path(name)) as side:
        outcome = prove(Path(name), side, events, kills)
    figure.publish(f"{figure.head()}\n\n{_report(outcome)}", [] if outcome.good else ["not proven"])


def _report(outcome: Outcome) -> str:
    killed = ", ".join(f"{name} {n}" for name, n in outcome.kills.items()) or "nobody"
    killed += f"; not hit: {', '.join(outcome.missed)}" if outcome.missed else ""
    verdict = "Proven" if outcome.good else "NOT PROVEN"
    return f"""\
{verdict}: {outcome.events:,} committed, {outcome.unique:,} different ones received, {outcome.lost:,} lost,
{outcome.unknown:,} under ids that nobody had committed, {outcome.out_of_order:,} out of their camera's order,
{outcome.repeated:,} received more than once, with the same id.

| | |
|---|---|
| committed while the other side was away | {outcome.commit_s:.0f} s, {outcome.commit_rate:,.0f} a second |
| the file of the outbox then | {outcome.file_mb:.0f} MB |
| memory of the outbox's process then | {outcome.outbox_mb:.0f} MB |
| delivered afterwards, under kills | {outcome.drain_s:.0f} s, {outcome.rate:,.0f} a second |
| killed meanwhile | {killed} |
"""


if __name__ == "__main__":
    main()
