"""Real brokers on loopback, for measurements and tests: started in a folder, killed and started again on the same port.

A program that this machine does not have is a LookupError.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

_READY_S = 60.0
_SYSTEM = "/usr/sbin:/usr/local/sbin"
"""Where servers lie that are not on everybody's PATH."""


def program(name: str) -> str:
    """Its path. Raises LookupError."""
    path = shutil.which(name) or shutil.which(name, path=_SYSTEM)
    if not path:
        raise LookupError(f"{name} is not installed")
    return path


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class BrokerServer:
    """A server process in a group of its own, with its log in `folder`. Ready once its port answers `greeting`."""

    def __init__(
        self,
        command: Sequence[str],
        port: int,
        folder: Path,
        *,
        environment: Mapping[str, str] | None = None,
        greeting: bytes = b"",
        ip: str = "127.0.0.1",
    ) -> None:
        """`greeting`: sent to see whether it answers; without one, a connection to `ip` is enough."""
        self._command, self.port, self._folder = list(command), port, folder
        self._environment, self._greeting = dict(environment or os.environ), greeting
        self._ip = ip
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Returns once it is ready. Raises RuntimeError with the end of its log if it is not."""
        with (self._folder / "server.log").open("ab") as log:
            self.process = subprocess.Popen(  # noqa: S603 - the servers below
                self._command, cwd=self._folder, stdout=log, stderr=log, env=self._environment, start_new_session=True
            )
        late_s = time.monotonic() + _READY_S
        while not self._answers():
            if self.process.poll() is not None or time.monotonic() > late_s:
                raise RuntimeError((self._folder / "server.log").read_text(errors="replace")[-2000:])
            time.sleep(0.02)

    def kill(self) -> None:
        """Kill the server with its children, as a power cut would."""
        if self.process:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(_READY_S)
            self.process = None

    def stop(self) -> None:
        """In order: it tidies up, as a service that is stopped does."""
        if self.process:
            self.process.terminate()
            self.process.wait(_READY_S)
            self.process = None

    def _answers(self) -> bool:
        try:
            with socket.create_connection((self._ip, self.port), timeout=5) as connection:
                connection.sendall(self._greeting)
                return not self._greeting or connection.recv(1) != b""
        except OSError:
            return False


@contextmanager
def serving(server: BrokerServer) -> Iterator[BrokerServer]:
    try:
        server.start()
        yield server
    finally:
        server.kill()


def mosquitto(folder: Path, *more: str) -> BrokerServer:
    """A broker that keeps nothing: after a restart it knows only new messages. `more`: lines of its configuration."""
    port = free_port()
    lines = [f"listener {port} 127.0.0.1", *(more or ["allow_anonymous true"]), "user root"]
    (folder / "mosquitto.conf").write_text("\n".join(lines) + "\n")
    return BrokerServer([program("mosquitto"), "-c", "mosquitto.conf"], port, folder)


def redis_server(folder: Path, *more: str) -> BrokerServer:
    """A Redis that writes each entry to its file before it answers."""
    port = free_port()
    kept = ["--appendonly", "yes", "--save", "", "--dir", str(folder), "--bind", "127.0.0.1"]
    return BrokerServer([program("redis-server"), "--port", str(port), *kept, *more], port, folder)


def nats_server(folder: Path, more: str = "", *, streams: bool = True) -> BrokerServer:
    """With JetStream in files, unless `streams` is false."""
    port = free_port()
    kept = f'jetstream {{ store_dir: "{folder}/kept" }}' if streams else ""
    (folder / "nats.conf").write_text(f'listen: "127.0.0.1:{port}"\n{kept}\n{more}')
    return BrokerServer([program("nats-server"), "-c", "nats.conf"], port, folder)


def rabbitmq(folder: Path, *more: str) -> BrokerServer:
    """A node with all its files in the folder. `more`: lines of its configuration."""
    port = free_port()
    scripts = sorted(Path("/usr/lib/rabbitmq").glob("lib/*/sbin/rabbitmq-server"))
    if not scripts:
        raise LookupError("rabbitmq-server is not installed")
    (folder / "rabbitmq.conf").write_text("\n".join([f"listeners.tcp.1 = 127.0.0.1:{port}", *more, ""]))
    (folder / "plugins").write_text("[].")
    environment = {
        **os.environ,
        "HOME": str(folder),
        "RABBITMQ_NODENAME": f"camgraph{port}@localhost",
        "RABBITMQ_BASE": str(folder),
        "RABBITMQ_MNESIA_BASE": str(folder / "mnesia"),
        "RABBITMQ_LOG_BASE": str(folder),
        "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq.conf"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
        "RABBITMQ_DIST_PORT": str(free_port()),
        "ERL_EPMD_ADDRESS": "127.0.0.1",
        "ERL_EPMD_PORT": str(free_port()),
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-setcookie test +S 1:1",
    }
    # A name service of its own in the foreground: otherwise the node starts one that outlives it.
    command = ["/bin/sh", "-c", f"epmd -address 127.0.0.1 & exec {scripts[-1]}"]
    return BrokerServer(command, port, folder, environment=environment, greeting=b"AMQP\0\0\x09\x01")
