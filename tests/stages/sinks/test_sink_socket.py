from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from camgraph_test_stages.brokers import free_port
from camgraph_test_stages.delivering import hand_in
from camgraph_test_stages.waiting import until
from structlog.testing import capture_logs

from camgraph.pipeline import testing
from camgraph.pipeline.errors import CamgraphError, EnvironmentProblem, Unavailable, UserError
from camgraph.pipeline.messages import Event
from camgraph.pipeline.testing import opened
from camgraph.stages.sinks.sink_socket import SinkSocket, SinkSocketSettings
from camgraph.stages.sinks.sockets.listener import MOST_CLIENTS, Listener


def event(number: int, size: int = 0) -> Event:
    return testing.event(number, text="x" * size)


def events(*numbers: int) -> list[Event]:
    return [event(number) for number in numbers]


class Receiver:
    """A server that reads lines from each client, until it is closed."""

    def __init__(self, family: socket.AddressFamily, where: object) -> None:
        self.lines: list[str] = []
        self._server = socket.socket(family, socket.SOCK_STREAM)
        self._server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._server.bind(where)
        self._server.listen()
        self._connection = self._server
        self._closing = False
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    @property
    def ids(self) -> list[str]:
        return [json.loads(line)["id"] for line in self.lines]

    def hang_up(self) -> None:
        """Close the server and its connection, and wait for the thread."""
        self._closing = True
        for one in (self._server, self._connection):
            with contextlib.suppress(OSError):  # it may have closed by itself
                one.shutdown(socket.SHUT_RDWR)
        self._thread.join(10)
        self._server.close()

    def _serve(self) -> None:
        while not self._closing:
            try:
                self._connection = self._server.accept()[0]
            except OSError:
                return
            with self._connection, self._connection.makefile("r") as file:
                self.lines.extend(file)


@contextmanager
def tcp_receiver(port: int) -> Iterator[Receiver]:
    receiver = Receiver(socket.AF_INET, ("127.0.0.1", port))
    try:
        yield receiver
    finally:
        receiver.hang_up()


@contextmanager
def sink_to(address: str, folder: Path, **more: object) -> Iterator[SinkSocket]:
    with opened(SinkSocket, {"address": address, **more}, folder=folder) as sink:
        assert isinstance(sink, SinkSocket)
        yield sink


def test_events_arrive_as_lines_in_order(tmp_path) -> None:
    port = free_port()
    with tcp_receiver(port) as receiver, sink_to(f"tcp://127.0.0.1:{port}", tmp_path) as sink:
        sink.process(events(1, 2))
        sink.process([event(3, size=1_000_000), event(4)])
        until(lambda: len(receiver.lines) == 4)
        assert receiver.ids == ["e1", "e2", "e3", "e4"]
        assert receiver.lines[0] == event(1).body.decode() + "\n"
        assert sink.context.counts == {("written", "cam"): 4}


def test_a_unix_receiver(tmp_path) -> None:
    path = str(tmp_path / "events.sock")
    receiver = Receiver(socket.AF_UNIX, path)
    with sink_to(f"unix://{path}", tmp_path) as sink:
        sink.process(events(1, 2, 3))
        assert len(receiver.lines) <= 3
        until(lambda: receiver.ids == ["e1", "e2", "e3"])
    receiver.hang_up()


def tried_to_connect(sink: SinkSocket) -> tuple[str, float]:
    """Hand in until the pause after the last failure is over, and it tries again: why in vain, and how long it took."""

    def tried() -> tuple[str, float] | None:
        start = time.monotonic()
        with pytest.raises(Unavailable) as refused:
            sink.process(events(1))
        why, took_s = str(refused.value), time.monotonic() - start
        return None if "not connected" in why else (why, took_s)

    found = until(tried, every_s=0.01)
    assert found
    return found


def test_a_host_that_swallows_everything_costs_a_second_at_most(tmp_path) -> None:
    """A server whose backlog is full answers a connection attempt with silence."""
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        port = full.getsockname()[1]
        fillers = [socket.socket() for _ in range(4)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(("127.0.0.1", port))
        with sink_to(f"tcp://127.0.0.1:{port}", tmp_path) as sink:
            for _ in range(2):
                why, took_s = tried_to_connect(sink)
                assert re.search(r"timed out|too long", why)
                assert 0.5 < took_s < 20.0
        for filler in fillers:
            filler.close()


def test_slow_receiver_gets_all_and_blocks_no_one(tmp_path) -> None:
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        server.bind(("127.0.0.1", 0))
        server.listen()
        with sink_to(f"tcp://127.0.0.1:{server.getsockname()[1]}", tmp_path) as sink:
            connection = server.accept()[0]
            big = [event(n, size=2_000_000) for n in range(5)]
            for _ in range(2):
                start = time.monotonic()
                with pytest.raises(Unavailable, match="the receiver does not read: events wait for it"):
                    sink.process(big)
                assert time.monotonic() - start < 20
            lines: list[str] = []
            reader = threading.Thread(target=lambda: lines.extend(connection.makefile("r")))
            reader.start()
            hand_in(sink, big)
            sink.close()
            reader.join(60)
            connection.close()
    assert [json.loads(line)["id"] for line in lines] == [f"e{n}" for n in range(5)], "each once, none torn"


def test_a_receiver_that_only_reads_is_no_lost_one(tmp_path) -> None:
    """`shutdown` of the other direction, as `nc` does at the end of its input."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        with sink_to(f"tcp://127.0.0.1:{server.getsockname()[1]}", tmp_path) as sink:
            connection = server.accept()[0]
            connection.shutdown(socket.SHUT_WR)
            for n in range(3):
                sink.process(events(n))
            assert connection.recv(100_000).count(b"\n") == 3
            connection.close()


def test_what_the_receiver_says_is_thrown_away(tmp_path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        with sink_to(f"tcp://127.0.0.1:{server.getsockname()[1]}", tmp_path) as sink:
            connection = server.accept()[0]
            for n in range(20):
                connection.sendall(b"hello " * 20_000)
                sink.process(events(n))
            assert connection.recv(100_000).count(b"\n") == 20
            connection.close()


RECEIVER = """
import socket, sys, time
server = socket.socket()
server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
server.bind(("127.0.0.1", int(sys.argv[1])))
server.listen()
print("ready", flush=True)
connection = server.accept()[0]
time.sleep(600)
"""


def test_a_receiver_killed_in_a_batch_gets_it_again(tmp_path) -> None:
    """It took a part and died; nothing of the batch counts as delivered."""
    port = free_port()
    with subprocess.Popen([sys.executable, "-c", RECEIVER, str(port)], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        with sink_to(f"tcp://127.0.0.1:{port}", tmp_path) as sink:
            big = [event(n, size=3_000_000) for n in range(4)]
            with pytest.raises(Unavailable, match="does not read"):
                sink.process(big)
            child.send_signal(signal.SIGKILL)
            child.wait(10)
            with pytest.raises(Unavailable, match="no receiver"):
                sink.process(big)
            with tcp_receiver(port) as receiver:
                hand_in(sink, big)
                until(lambda: len(receiver.lines) == 4)
                assert receiver.ids == [f"e{n}" for n in range(4)]


@pytest.mark.lab
def test_delivery_is_fast_enough(tmp_path) -> None:
    """Waiting for the confirmation must not mean waiting for a delayed one (40 ms) again and again."""
    port = free_port()
    with tcp_receiver(port) as receiver, sink_to(f"tcp://127.0.0.1:{port}", tmp_path) as sink:
        start = time.monotonic()
        for n in range(200):
            sink.process(events(n))
        assert time.monotonic() - start < 4
        until(lambda: len(receiver.lines) == 200)


def test_a_datagram_per_event_and_too_large_ones_are_counted(tmp_path) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind(("127.0.0.1", 0))
        receiver.settimeout(60)
        with sink_to(f"udp://127.0.0.1:{receiver.getsockname()[1]}", tmp_path) as sink:
            sink.process([event(1), event(2, size=70_000), event(3)])
            assert [json.loads(receiver.recv(70_000))["id"] for _ in range(2)] == ["e1", "e3"]
        assert sink.context.counts == {("written", "cam"): 2, ("unsent.too_large", "cam"): 1}


def test_datagrams_go_on_where_nobody_listens(tmp_path) -> None:
    port = free_port()
    with sink_to(f"udp://127.0.0.1:{port}", tmp_path) as sink:
        for n in range(5):
            sink.process(events(n))
        assert sink.context.counts == {("written", "cam"): 5}


def read_lines(client: socket.socket, count: int) -> list[str]:
    client.settimeout(60)
    data, whole = bytearray(), 0
    while whole < count:
        piece = client.recv(1 << 20)
        assert piece, "closed too early"
        data += piece
        whole += piece.count(b"\n")  # of the piece alone: who takes long to read is put out
    return [json.loads(line)["id"] for line in data.splitlines()]


def test_client_gets_events_from_its_connection_on(tmp_path) -> None:
    port = free_port()
    with sink_to(f"tcp://127.0.0.1:{port}", tmp_path, listen=True) as sink:
        sink.process(events(0))
        with socket.create_connection(("127.0.0.1", port)) as first:
            sink.process(events(1))
            with socket.create_connection(("127.0.0.1", port)) as second:
                sink.process(events(2, 3))
                assert read_lines(second, 2) == ["e2", "e3"]
            assert read_lines(first, 3) == ["e1", "e2", "e3"]
        assert sink.context.counts == {("unsent.no_client", "cam"): 1, ("written", "cam"): 3}


def test_client_that_does_not_read_is_disconnected(tmp_path) -> None:
    port = free_port()
    with sink_to(f"tcp://127.0.0.1:{port}", tmp_path, listen=True) as sink, socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.connect(("127.0.0.1", port))
        with socket.create_connection(("127.0.0.1", port)) as good:
            big = [event(n, size=1_500_000) for n in range(6)]
            got: list[str] = []
            reader = threading.Thread(target=lambda: got.extend(read_lines(good, 7)))
            reader.start()
            start = time.monotonic()
            sink.process(big)
            assert time.monotonic() - start < 20
            sink.process(events(6))
            reader.join(60)
            assert got == [f"e{n}" for n in range(7)]
        slow.settimeout(60)
        assert sum(iter(lambda: len(slow.recv(1 << 20)), 0)) < 9_000_000, "it sees the end of the stream"


def test_unix_socket_is_private_and_removed_at_end(tmp_path) -> None:
    path = tmp_path / "feed.sock"
    with sink_to(f"unix://{path}", tmp_path, listen=True) as sink:
        assert path.stat().st_mode & 0o777 == 0o600
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
            sink.process(events(1))
            assert read_lines(client, 1) == ["e1"]
    assert not path.exists()


def test_the_socket_file_of_a_killed_process_is_taken_over(tmp_path) -> None:
    path = tmp_path / "feed.sock"
    code = "import socket, os, sys; s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen(); os.abort()"
    subprocess.run([sys.executable, "-c", code, str(path)], check=False, timeout=60)
    assert path.is_socket()
    with sink_to(f"unix://{path}", tmp_path, listen=True):
        with pytest.raises(EnvironmentProblem, match="another program listens there"):
            with sink_to(f"unix://{path}", tmp_path, listen=True):
                pass
        assert path.is_socket()


def test_a_tcp_port_can_be_taken_again_at_once(tmp_path) -> None:
    port = free_port()
    for _ in range(2):
        with sink_to(f"tcp://127.0.0.1:{port}", tmp_path, listen=True) as sink:
            with socket.create_connection(("127.0.0.1", port)) as client:
                sink.process(events(1))
                assert read_lines(client, 1) == ["e1"]


def test_where_a_sink_cannot_listen_is_said_at_the_start(tmp_path) -> None:
    (tmp_path / "file").touch()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        cases: list[tuple[str, type[CamgraphError], str]] = [
            (f"tcp://127.0.0.1:{taken.getsockname()[1]}", EnvironmentProblem, "stop it, or choose another port"),
            ("tcp://192.0.2.1:7000", EnvironmentProblem, "this machine does not have that address"),
            (f"unix://{tmp_path}/gone/feed.sock", EnvironmentProblem, "make the folder first"),
            (f"unix://{tmp_path}/file", UserError, "is no socket; name another path"),
        ]
        for address, error, text in cases:
            with pytest.raises(error, match=text):
                with sink_to(address, tmp_path, listen=True):
                    pass


def test_listening_to_datagrams_is_refused() -> None:
    with pytest.raises(ValueError, match="udp has no connections to wait for"):
        SinkSocketSettings(address="udp://127.0.0.1:7000", listen=True)


def test_nothing_stays_open(tmp_path) -> None:
    port = free_port()
    before = len(list(Path("/proc/self/fd").iterdir()))
    with tcp_receiver(port):
        with sink_to(f"tcp://127.0.0.1:{port}", tmp_path) as sink:
            sink.process(events(1))
    with sink_to(f"tcp://127.0.0.1:{port}", tmp_path, listen=True):
        pass
    assert len(list(Path("/proc/self/fd").iterdir())) == before


@contextmanager
def no_descriptors_left() -> Iterator[None]:
    """In this process; those that are open stay so."""
    import resource

    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest_free = os.dup(0)
    os.close(lowest_free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest_free, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_refused_clients_cost_no_event(tmp_path) -> None:
    port = free_port()
    with sink_to(f"tcp://127.0.0.1:{port}", tmp_path, listen=True) as sink:
        with socket.create_connection(("127.0.0.1", port)) as first:
            sink.process(events(0))
            with socket.create_connection(("127.0.0.1", port)) as second:
                with capture_logs() as logs, no_descriptors_left():
                    sink.process(events(1))
                    sink.process(events(2))
                sink.process(events(3))
                assert read_lines(first, 4) == ["e0", "e1", "e2", "e3"]
                assert read_lines(second, 1) == ["e3"]
        assert sink.context.counts == {("written", "cam"): 4}
        [line] = [line for line in logs if line["event"] == "clients_refused"]
        assert "ulimit -n" in line["why"]


def test_strangers_take_a_bounded_number_of_places(tmp_path) -> None:
    port = free_port()
    with sink_to(f"tcp://127.0.0.1:{port}", tmp_path, listen=True) as sink, contextlib.ExitStack() as stack:
        with capture_logs() as logs:
            reader = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            sink.process(events(0))
            others = [
                stack.enter_context(socket.create_connection(("127.0.0.1", port))) for _ in range(MOST_CLIENTS + 20)
            ]
            sink.process(events(1))
            sink.process(events(2))
        assert read_lines(reader, 3) == ["e0", "e1", "e2"]
        assert read_lines(others[0], 2) == ["e1", "e2"]
        assert others[-1].recv(1) == b"", "it is closed"
        others[0].close()
        reader.close()
        until(lambda: sink.process(events(3)) or clients_of(sink) < MOST_CLIENTS)
        with socket.create_connection(("127.0.0.1", port)) as late:
            sink.process(events(4))
            assert read_lines(late, 1) == ["e4"]
    assert [line["event"] for line in logs].count("clients_refused") == 1


def clients_of(sink: SinkSocket) -> int:
    """Those that the sink counts: a client sees only that it is let in or not."""
    sender = sink._sender
    assert isinstance(sender, Listener)
    return len(sender._clients)


@pytest.mark.parametrize("number", [errno.ECONNABORTED, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.EPERM])
def test_whatever_accept_says_the_others_are_served(tmp_path, monkeypatch, number: int) -> None:
    port = free_port()
    with sink_to(f"tcp://127.0.0.1:{port}", tmp_path, listen=True) as sink:
        with socket.create_connection(("127.0.0.1", port)) as client:
            sink.process(events(0))

            def fail(_: Listener) -> socket.socket:
                raise OSError(number, os.strerror(number))

            monkeypatch.setattr(Listener, "_next_client", fail)
            sink.process(events(1))
            assert read_lines(client, 2) == ["e0", "e1"]


def test_a_datagram_socket_that_cannot_be_had_is_waited_for(tmp_path) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind(("127.0.0.1", 0))
        receiver.settimeout(60)
        address = f"udp://127.0.0.1:{receiver.getsockname()[1]}"
        with no_descriptors_left():
            with sink_to(address, tmp_path) as sink:
                with pytest.raises(Unavailable):
                    sink.process(events(1))
        with sink_to(address, tmp_path) as sink:
            sink.process(events(1))
            assert json.loads(receiver.recv(1000))["id"] == "e1"


def test_a_lookup_for_which_there_is_no_thread_is_tried_again(tmp_path, monkeypatch) -> None:
    port = free_port()
    with tcp_receiver(port) as receiver:
        with monkeypatch.context() as patch:

            def no_thread(_: threading.Thread) -> None:
                raise RuntimeError("can't start new thread")

            patch.setattr(threading.Thread, "start", no_thread)
            with sink_to(f"tcp://127.0.0.1:{port}", tmp_path) as sink:
                patch.undo()
                hand_in(sink, events(1))
        until(lambda: receiver.ids == ["e1"])
