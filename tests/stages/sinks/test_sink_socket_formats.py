"""`sink_socket` with TLS, msgpack and filters; the rest is in test_sink_socket.py."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import ssl
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgpack
import pytest
import trustme
from camgraph_test_stages.brokers import free_port
from camgraph_test_stages.delivering import hand_in
from camgraph_test_stages.incident_views import event, incident
from camgraph_test_stages.waiting import until

from camgraph.pipeline.errors import EnvironmentProblem, Unavailable
from camgraph.pipeline.messages import Event
from camgraph.pipeline.testing import opened
from camgraph.stages.sinks.sink_socket import SinkSocket, SinkSocketSettings
from camgraph.stages.sinks.sockets.listener import MOST_CLIENTS, Listener


def events(*numbers: int) -> list[Event]:
    return [event(number) for number in numbers]


@contextmanager
def sink_to(address: str, folder: Path, **more: Any) -> Iterator[SinkSocket]:
    with opened(SinkSocket, {"address": address, **more}, folder=folder) as sink:
        assert isinstance(sink, SinkSocket)
        yield sink


@pytest.fixture(scope="module")
def pems(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("pems")
    authority = trustme.CA()
    authority.cert_pem.write_to_path(folder / "ca.pem")
    trustme.CA().issue_cert("client.test").private_key_and_cert_chain_pem.write_to_path(folder / "stranger.pem")
    for name in ("server", "client"):
        pem = authority.issue_cert("127.0.0.1", f"{name}.test").private_key_and_cert_chain_pem
        pem.write_to_path(folder / f"{name}.pem")
    return folder


def client_context(pems: Path, certificate: str = "") -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=pems / "ca.pem")
    if certificate:
        context.load_cert_chain(pems / certificate)
    return context


def server_context(pems: Path, *, ask: bool = False) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pems / "server.pem")
    if ask:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(pems / "ca.pem")
    return context


def secure_client(port: int, context: ssl.SSLContext) -> ssl.SSLSocket:
    plain = socket.create_connection(("127.0.0.1", port), timeout=30)
    return context.wrap_socket(plain, server_hostname="127.0.0.1")


def ids_from(client: socket.socket, count: int) -> list[str]:
    client.settimeout(30)
    data = b""
    while data.count(b"\n") < count:
        piece = client.recv(1 << 20)
        assert piece, "closed too early"
        data += piece
    return [json.loads(line)["id"] for line in data.splitlines()]


def refusal(sink: SinkSocket) -> str:
    """Why an event is not taken, once it has tried to connect: before, it may pause."""

    def why() -> str:
        with pytest.raises(Unavailable) as refused:
            sink.process(events(1))
        return "" if "not connected" in str(refused.value) else str(refused.value)

    return until(why, every_s=0.05)


class SecureReceiver:
    """A server that speaks TLS and reads lines from one client after the other, until it is closed."""

    def __init__(self, context: ssl.SSLContext, port: int = 0) -> None:
        self.lines: list[bytes] = []
        self._context = context
        self._server = socket.create_server(("127.0.0.1", port))
        self.port: int = self._server.getsockname()[1]
        self._connection: socket.socket | None = None
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                plain = self._server.accept()[0]
                self._connection = plain
                with contextlib.suppress(OSError), plain:
                    with self._context.wrap_socket(plain, server_side=True) as stream:
                        self._connection = stream
                        with stream.makefile("rb") as file:
                            self.lines.extend(file)

    @property
    def ids(self) -> list[str]:
        return [json.loads(line)["id"] for line in self.lines]

    def close(self) -> None:
        for one in (self._server, self._connection):
            with contextlib.suppress(OSError):
                if one:
                    one.shutdown(socket.SHUT_RDWR)
        self._thread.join(30)
        self._server.close()


@contextmanager
def secure_receiver(context: ssl.SSLContext, port: int = 0) -> Iterator[SecureReceiver]:
    receiver = SecureReceiver(context, port)
    try:
        yield receiver
    finally:
        receiver.close()


# ---- TLS, as client


def test_events_reach_a_receiver_with_tls_after_its_restart(tmp_path, pems) -> None:
    tls = {"ca": str(pems / "ca.pem"), "certificate": str(pems / "client.pem"), "server_name": "server.test"}
    context = server_context(pems, ask=True)
    with secure_receiver(context) as first:
        port = first.port
        with sink_to(f"tcp://127.0.0.1:{port}", tmp_path, tls=tls) as sink:
            hand_in(sink, events(1, 2))
            hand_in(sink, [event(3, text="x" * 300_000)])
            until(lambda: len(first.lines) == 3)
            first.close()
            with secure_receiver(context, port) as second:
                hand_in(sink, events(4))
                until(lambda: second.ids[-1:] == [event(4).id])
    assert first.ids == [event(n).id for n in (1, 2, 3)]


@pytest.mark.parametrize(
    ("tls", "text"),
    [
        ({}, "name the file of that as `ca` of `tls`"),
        ({"ca": "ca.pem", "server_name": "other.test"}, "write it as `server_name`"),
        ({"ca": "ca.pem"}, "does it ask for a `certificate` of ours"),
        ({"ca": "ca.pem", "certificate": "stranger.pem"}, "trust our `certificate`|`certificate` of ours|reset"),
    ],
)
def test_no_event_goes_to_a_receiver_without_trust_on_both_sides(tmp_path, pems, tls, text) -> None:
    """A server tells only behind the handshake that it does not accept our certificate."""
    files = {key: str(pems / name) if key != "server_name" else name for key, name in tls.items()}
    with secure_receiver(server_context(pems, ask=True)) as receiver:
        with sink_to(f"tcp://127.0.0.1:{receiver.port}", tmp_path, tls=files) as sink:
            assert re.search(text, refusal(sink))
            assert sink.context.counts == {}
    assert receiver.lines == []


def test_a_receiver_without_a_handshake_costs_a_second_a_call(tmp_path, pems) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        address = f"tcp://127.0.0.1:{mute.getsockname()[1]}"
        began = time.monotonic()
        with sink_to(address, tmp_path, tls={"ca": str(pems / "ca.pem")}) as sink:
            assert time.monotonic() - began < 30
            assert "it took too long" in refusal(sink)
        assert time.monotonic() - began < 40


# ---- TLS, as server


@contextmanager
def secure_feed(folder: Path, pems: Path, **tls: str) -> Iterator[tuple[SinkSocket, int]]:
    port = free_port()
    settings = {"certificate": str(pems / "server.pem"), **tls}
    with sink_to(f"tcp://127.0.0.1:{port}", folder, listen=True, tls=settings) as sink:
        yield sink, port


def ready(sink: SinkSocket) -> int:
    """How many clients have shaken hands: nothing outside tells, as the sink sends nothing before an event."""
    listener = sink._sender
    assert isinstance(listener, Listener)
    assert listener._greeter
    return len(listener._greeter._ready)


def test_clients_shake_hands_while_no_event_comes(tmp_path, pems) -> None:
    with secure_feed(tmp_path, pems) as (sink, port):
        with secure_client(port, client_context(pems)) as first, secure_client(port, client_context(pems)) as second:
            until(lambda: ready(sink) == 2)
            sink.process(events(1, 2))
            assert ids_from(first, 2) == ids_from(second, 2) == [event(1).id, event(2).id]
            sink.process([event(3, text="x" * 1_000_000)])
            assert ids_from(first, 1) == [event(3).id]
            assert sink.context.counts == {("written", "cam"): 3}


def test_the_end_of_the_feed_is_the_end_of_tls(tmp_path, pems) -> None:
    """A reader can tell a feed that has ended from one that was cut."""
    with secure_feed(tmp_path, pems) as (sink, port):
        client = client_context(pems).wrap_socket(
            socket.create_connection(("127.0.0.1", port), timeout=30),
            server_hostname="127.0.0.1",
            suppress_ragged_eofs=False,
        )
        until(lambda: ready(sink) == 1)
        sink.process(events(1))
    with client:
        assert ids_from(client, 1) == [event(1).id]
        assert client.recv(1) == b""


def test_clients_that_do_harm_hold_up_nobody(tmp_path, pems) -> None:
    with secure_feed(tmp_path, pems) as (sink, port), contextlib.ExitStack() as stack:

        def plain() -> socket.socket:
            return stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=30))

        plain()  # says nothing
        plain().sendall(b"GET / HTTP/1.1\r\n\r\n" * 100)
        reset = plain()
        reset.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        reset.close()
        half = plain()
        half.sendall(b"\x16\x03\x01\x02\x00\x01")
        gone = secure_client(port, client_context(pems))
        good = stack.enter_context(secure_client(port, client_context(pems)))
        mute = stack.enter_context(secure_client(port, client_context(pems)))
        until(lambda: ready(sink) == 3)
        gone.close()
        until(lambda: ready(sink) == 2, why=lambda: "one that is gone takes up no place")
        good.sendall(b"hello " * 1000)
        began = time.monotonic()
        sink.process(events(1))
        assert time.monotonic() - began < 30
        assert ids_from(good, 1) == [event(1).id]
        assert ids_from(mute, 1) == [event(1).id]


def test_a_client_that_never_reads_is_disconnected(tmp_path, pems) -> None:
    with secure_feed(tmp_path, pems) as (sink, port):
        with secure_client(port, client_context(pems)) as slow:
            until(lambda: ready(sink) == 1)
            began = time.monotonic()
            sink.process([event(n, text="x" * 3_000_000) for n in range(6)])
            assert time.monotonic() - began < 40
            assert isinstance(sink._sender, Listener)
            assert sink._sender._clients == []
            slow.settimeout(30)
            with contextlib.suppress(OSError):
                while slow.recv(1 << 20):
                    pass


@pytest.mark.slow
def test_strangers_without_a_handshake_take_few_places(tmp_path, pems, monkeypatch: pytest.MonkeyPatch) -> None:
    with secure_feed(tmp_path, pems) as (sink, port), contextlib.ExitStack() as stack:
        for _ in range(MOST_CLIENTS + 10):
            stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=30))
        listener = sink._sender
        assert isinstance(listener, Listener)
        greeter = listener._greeter
        assert greeter
        until(lambda: len(greeter._shaking) == MOST_CLIENTS)
        sink.process(events(1))
        # Those who are let in when there is room again need not be waited for as long.
        monkeypatch.setattr("camgraph.stages.sinks.sockets.greeter.HANDSHAKE_S", 0.1)
        until(lambda: not greeter._shaking)


def test_only_clients_with_a_wanted_certificate_get_events(tmp_path, pems) -> None:
    with secure_feed(tmp_path, pems, ca=str(pems / "ca.pem")) as (sink, port):
        with contextlib.suppress(OSError), secure_client(port, client_context(pems)) as stranger:
            assert stranger.recv(1) == b""
        with secure_client(port, client_context(pems, "client.pem")) as known:
            until(lambda: ready(sink) == 1)
            sink.process(events(1))
            assert ids_from(known, 1) == [event(1).id]


def test_a_missing_certificate_is_named_at_the_start(tmp_path) -> None:
    with pytest.raises(EnvironmentProblem, match=r"`certificate` of `tls`: .*gone.pem: cannot be read"):
        with sink_to(f"tcp://127.0.0.1:{free_port()}", tmp_path, listen=True, tls={"certificate": "gone.pem"}):
            pass


# ---- msgpack


def unpacked(data: bytes) -> list[Any]:
    found = []
    while data:
        (length,) = struct.unpack(">I", data[:4])
        found.append(msgpack.unpackb(data[4 : 4 + length]))
        data = data[4 + length :]
    return found


def test_events_as_msgpack_are_the_same_events(tmp_path) -> None:
    sent = [event(1, camera="Tür"), event(2, text="x" * 100_000)]
    with socket.create_server(("127.0.0.1", 0)) as server:
        with sink_to(f"tcp://127.0.0.1:{server.getsockname()[1]}", tmp_path, format="msgpack") as sink:
            connection = server.accept()[0]
            reader = threading.Thread(target=lambda: received.append(connection.makefile("rb").read()))
            received: list[bytes] = []
            reader.start()
            hand_in(sink, sent)
        reader.join(30)
        connection.close()
    assert unpacked(received[0]) == [json.loads(one.body) for one in sent]


def test_a_datagram_of_msgpack_has_no_length(tmp_path) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind(("127.0.0.1", 0))
        receiver.settimeout(30)
        with sink_to(f"udp://127.0.0.1:{receiver.getsockname()[1]}", tmp_path, format="msgpack") as sink:
            sink.process(events(1))
            assert msgpack.unpackb(receiver.recv(70_000)) == json.loads(event(1).body)


@pytest.mark.parametrize("odd", [b'{"id": "x", "n": 100000000000000000000}', b'{"id": "x", "n": "\\ud800"}'])
def test_an_event_that_msgpack_cannot_hold_is_a_dead_letter(tmp_path, odd) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind(("127.0.0.1", 0))
        receiver.settimeout(30)
        with sink_to(f"udp://127.0.0.1:{receiver.getsockname()[1]}", tmp_path, format="msgpack") as sink:
            sink.process([Event(event(1).stamp, "x", "", "single", odd), event(2)])
            assert msgpack.unpackb(receiver.recv(70_000))["id"] == event(2).id
            [letter] = sink.context.dead_letters
            assert (letter.event.id, letter.why.startswith("msgpack cannot hold this event")) == ("x", True)
            assert sink.context.counts == {("written", "cam"): 1, ("dropped.refused", "cam"): 1}


# ---- filters


def test_filters_leave_out_events_and_need_no_receiver_for_them(tmp_path) -> None:
    falls, others = [event(1), event(3)], [event(2, camera="hall"), incident("5", "single", rule="lying").event]
    port = free_port()
    only = {"rule": "fall", "camera": "c*"}
    with sink_to(f"tcp://127.0.0.1:{port}", tmp_path, only=only) as sink:
        sink.process(others)
        assert sink.context.counts == {("filtered", "hall"): 1, ("filtered", "cam"): 1}
        with socket.create_server(("127.0.0.1", port)) as server:
            hand_in(sink, [falls[0], *others, falls[1]])
            with server.accept()[0] as connection:
                assert ids_from(connection, 2) == [one.id for one in falls]


def test_an_unknown_camera_in_a_filter_is_a_mistake(tmp_path) -> None:
    settings = SinkSocketSettings(address="tcp://127.0.0.1:7000", never=[{"camera": "hal"}])
    [(path, why)] = SinkSocket.check_cameras(settings, tmp_path, {"hall": None})
    assert path == ("never", 0, "camera")
    assert "did you mean `hall`" in why


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"address": "udp://127.0.0.1:7000", "tls": {}}, "`tls` works on tcp alone"),
        ({"address": "unix:///run/x.sock", "tls": {}}, "`tls` works on tcp alone"),
        ({"address": "tcp://127.0.0.1:7000", "format": "cbor"}, "'json' or 'msgpack'"),
    ],
)
def test_mistakes_in_settings(settings, text) -> None:
    with pytest.raises(ValueError, match=text):
        SinkSocketSettings(**settings)
