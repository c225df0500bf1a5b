"""What every sink promises, tried with real receivers. `CASES` describes each sink; `SinkContract` has the tests."""

from __future__ import annotations

import asyncio
import csv
import email
import io
import json
import re
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email.policy import default
from pathlib import Path
from typing import Any

import msgpack
import nats
import pytest
import redis
import zmq
from aiosmtpd.controller import Controller
from amqp import Connection
from camgraph_test_stages.brokers import Line, Server, free_port, or_skip, program, serving
from camgraph_test_stages.waiting import json_lines
from camgraph_test_stages.web_receiver import Reply, WebReceiver
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from nats.js.api import ConsumerConfig, DeliverPolicy
from paho.mqtt.client import CallbackAPIVersion, Client, MQTTv5

from camgraph.pipeline.errors import UserError
from camgraph.pipeline.registry import find_stage, stage_names
from camgraph.pipeline.stage import Stage
from camgraph.pipeline.testing import Receiver, SinkCase, SinkContract, event, hand_in, refusal, until
from camgraph.stages.sinks.delivery.incident_rows import COLUMNS
from camgraph.stages.sinks.sink_amqp import SinkAmqp
from camgraph.stages.sinks.sink_command import SinkCommand
from camgraph.stages.sinks.sink_csv import SinkCsv
from camgraph.stages.sinks.sink_email import SinkEmail
from camgraph.stages.sinks.sink_jsonl import SinkJsonl
from camgraph.stages.sinks.sink_kafka import SinkKafka
from camgraph.stages.sinks.sink_mqtt import SinkMqtt
from camgraph.stages.sinks.sink_nats import SinkNats
from camgraph.stages.sinks.sink_redis import SinkRedis
from camgraph.stages.sinks.sink_socket import SinkSocket
from camgraph.stages.sinks.sink_syslog import SinkSyslog
from camgraph.stages.sinks.sink_webhook import SinkWebhook
from camgraph.stages.sinks.sink_zmq import SinkZmq
from camgraph.tools.lab import broker_servers

SECRET = "plum-garden-74"
BAD = event(9999, "a")


@pytest.fixture(autouse=True)
def waits(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Short for answers that never come; long for real servers, which answer late on a busy machine."""
    never = "at" in getattr(request.function, "needs", ())
    for module in ("redis", "amqp", "nats", "kafka"):
        monkeypatch.setattr(f"camgraph.stages.sinks.sink_{module}.WAIT_S", 0.5 if never else 30.0)
    if never:
        for name in ("delivery.mqtt.mqtt_link.WAIT_S", "sink_zmq._WAIT_S"):
            monkeypatch.setattr(f"camgraph.stages.sinks.{name}", 0.5)
    monkeypatch.setattr("camgraph.stages.sinks.sink_zmq._SUBSCRIBES_WITHIN_S", 30.0)


def ids(bodies: Sequence[bytes]) -> list[str]:
    return [json.loads(body)["id"] for body in bodies]


@dataclass
class Broker:
    """A server process; `read` gives the bodies that it holds."""

    server: Server | Line
    settings: Mapping[str, Any]
    read: Callable[[], Sequence[bytes]]

    def arrived(self) -> Sequence[str]:
        return ids(self.read())

    def stop(self) -> None:
        self.server.kill()

    def start(self) -> None:
        self.server.start()


# ---- brokers


@contextmanager
def redis_stream(folder: Path) -> Iterator[Broker]:
    def read() -> list[bytes]:
        with redis.Redis(port=server.port) as client:
            return [fields[b"event"] for _, fields in client.xrange("camgraph:test")]

    with serving(or_skip(lambda: broker_servers.redis_server(folder))) as server:
        yield Broker(server, {"address": f"redis://127.0.0.1:{server.port}"}, read)


@contextmanager
def nats_stream(folder: Path) -> Iterator[Broker]:
    async def read() -> list[bytes]:
        client = await nats.connect(f"nats://127.0.0.1:{server.port}", max_reconnect_attempts=0, connect_timeout=60)
        try:
            held = (await client.jetstream().stream_info("CAMGRAPH")).state.messages
            config = ConsumerConfig(deliver_policy=DeliverPolicy.ALL)
            subscription = await client.jetstream().subscribe("camgraph.>", ordered_consumer=True, config=config)
            return [(await subscription.next_msg(timeout=60)).data for _ in range(held)]
        except nats.js.errors.NotFoundError:
            return []  # the first event makes the stream
        finally:
            await client.close()

    with serving(or_skip(lambda: broker_servers.nats_server(folder, "max_payload: 4096"))) as server:
        settings = {"address": f"nats://127.0.0.1:{server.port}", "stream": "CAMGRAPH"}
        yield Broker(server, settings, lambda: asyncio.run(read()))


@pytest.fixture(scope="module")
def rabbitmq(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(or_skip(lambda: broker_servers.rabbitmq(tmp_path_factory.mktemp("rabbit")))) as server:
        yield server


RABBITMQ: list[Callable[[], Server]] = []
"""Gives the one that all tests share: it takes seconds to start. What is killed is the line to it."""


@contextmanager
def amqp_queue(folder: Path) -> Iterator[Broker]:
    server, found = RABBITMQ[-1](), list[bytes]()

    def read() -> list[bytes]:
        connection = Connection(f"127.0.0.1:{server.port}", connect_timeout=60, read_timeout=60)
        try:
            connection.connect()
            channel = connection.channel()
            channel.queue_declare(folder.name, durable=True, auto_delete=False)
            while message := channel.basic_get(folder.name, no_ack=True):
                found.append(message.body)
        finally:
            connection.collect()
        return found

    with Line(server.port) as line:
        yield Broker(line, {"address": f"amqp://127.0.0.1:{line.port}", "queue": folder.name}, read)


@contextmanager
def kafka_cluster(_: Path) -> Iterator[Broker]:
    """The cluster that librdkafka has within itself for tests."""
    host = Producer({"bootstrap.servers": "none", "test.mock.num.brokers": 1, "log_level": 0})
    [one] = until(lambda: list(host.list_topics(timeout=60).brokers.values()))
    place = f"{one.host}:{one.port}"
    host.list_topics("camgraph", timeout=60)
    reader = Consumer({"bootstrap.servers": place, "group.id": "test", "auto.offset.reset": "earliest"})
    until(lambda: reader.list_topics("camgraph", timeout=60).topics["camgraph"].partitions, every_s=0.01)
    partitions = reader.list_topics("camgraph", timeout=60).topics["camgraph"].partitions
    reader.assign([TopicPartition("camgraph", number, OFFSET_BEGINNING) for number in partitions])
    found: list[bytes] = []

    def read() -> list[bytes]:
        found.extend(message.value() or b"" for message in reader.consume(500, 0.1) if not message.error())
        return found

    try:
        yield Broker(Server([], 0, Path()), {"address": f"kafka://{place}", "topic": "camgraph"}, read)
    finally:
        reader.close()
        host.flush(0)


class MqttReader:
    """A broker, which keeps nothing, and a client that comes back by itself."""

    def __init__(self, server: Server) -> None:
        self.settings = {"address": f"mqtt://127.0.0.1:{server.port}"}
        self._server, self._bodies, self._joined = server, list[bytes](), threading.Event()
        self._client = Client(CallbackAPIVersion.VERSION2, f"reader-{id(self)}", protocol=MQTTv5)
        self._client.reconnect_delay_set(1, 1)
        self._client.on_connect = lambda client, *_: client.subscribe("camgraph/test/+/fall", qos=1)
        self._client.on_subscribe = lambda *_: self._joined.set()
        self._client.on_message = lambda _, __, message: self._bodies.append(message.payload)
        self._client.connect("127.0.0.1", server.port)
        self._client.loop_start()
        assert self._joined.wait(60)

    def arrived(self) -> Sequence[str]:
        return ids(list(self._bodies))

    def stop(self) -> None:
        self._server.kill()
        self._joined.clear()

    def start(self) -> None:
        self._server.start()
        assert self._joined.wait(60), "the reader has not come back"

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()


@contextmanager
def mqtt_broker(folder: Path) -> Iterator[Receiver]:
    server = or_skip(lambda: broker_servers.mosquitto(folder, "allow_anonymous true", "max_packet_size 10000"))
    with serving(server):
        reader = MqttReader(server)
        try:
            yield reader
        finally:
            reader.close()


# ---- other servers

RSYSLOG = """
module(load="imtcp")
input(type="imtcp" port="{port}" address="127.0.0.1")
template(name="json" type="list") {{ property(name="jsonmesg") constant(value="\\n") }}
action(type="omfile" file="{folder}/messages" template="json")
"""


@contextmanager
def rsyslogd(folder: Path) -> Iterator[Broker]:
    port = free_port()
    (folder / "rsyslog.conf").write_text(RSYSLOG.format(port=port, folder=folder))
    command = [program("rsyslogd"), "-n", "-f", str(folder / "rsyslog.conf"), "-i", str(folder / "pid")]

    def read() -> list[bytes]:
        told = "".join(str(one.get("structured-data")) for one in json_lines(folder / "messages"))
        return [b'{"id": "%s"}' % one.encode() for one in re.findall(r'\bid="(\w+)"', told)]

    with serving(Server(command, port, folder)) as server:
        yield Broker(server, {"address": f"tcp://127.0.0.1:{port}"}, read)


@dataclass
class Mailbox:
    """A mail server, which refuses `BAD`. The subject of each mail is the id of its event."""

    port: int = field(default_factory=free_port)
    subjects: list[str] = field(default_factory=list)
    controller: Controller | None = None

    @property
    def settings(self) -> Mapping[str, Any]:
        return {**mail("127.0.0.1", self.port), "security": "none", "user": None, "password": None, "limit": "60s"}

    def arrived(self) -> Sequence[str]:
        return list(self.subjects)

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:  # noqa: N802 - aiosmtpd's name
        subject = str(email.message_from_bytes(envelope.content, policy=default)["Subject"])
        name = subject.lower()  # a subject begins with a capital
        if name == BAD.id:
            return "554 spam"
        self.subjects.append(name)
        return "250 OK"

    def start(self) -> None:
        self.controller = Controller(self, hostname="127.0.0.1", port=self.port)
        self.controller.start()

    def stop(self) -> None:
        if self.controller:
            self.controller.stop()
        self.controller = None


def mail(host: str, port: int) -> Mapping[str, Any]:
    login = {"user": "ward", "password": SECRET}
    return {
        "server": host,
        "port": port,
        "sender": "a@b.org",
        "to": "c@d.org",
        "subject": "{id}",
        "limit": "2s",
        **login,
    }


@dataclass
class WebServer:
    """It refuses `BAD`."""

    receiver: WebReceiver = field(default_factory=WebReceiver)
    before: list[str] = field(default_factory=list)

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"url": self.receiver.url, "allow_private": True, "limit": "60s"}

    def arrived(self) -> Sequence[str]:
        return self.before + [one.headers["webhook-id"] for one in self.receiver.requests if not self._is_bad(one)]

    @staticmethod
    def _is_bad(request: Any) -> bool:
        return bool(request.headers["webhook-id"] == BAD.id)

    def stop(self) -> None:
        self.receiver.close()
        self.before = list(self.arrived())
        self.receiver.requests.clear()

    def start(self) -> None:
        self.receiver = WebReceiver(self.receiver.port)
        self.receiver.reply = lambda request: Reply(422 if self._is_bad(request) else 204)


@contextmanager
def started(receiver: Any) -> Iterator[Receiver]:
    """A receiver that begins by `start`, and may be stopped twice."""
    receiver.start()
    try:
        yield receiver
    finally:
        receiver.stop()


@contextmanager
def web_server(_: Path) -> Iterator[Receiver]:
    first = WebServer()
    first.stop()
    with started(first):
        yield first


class TcpReader:
    """Reads msgpack of one client after the other, each event behind its length."""

    def __init__(self) -> None:
        self._port, self._ids = free_port(), list[str]()
        self.settings = {"address": f"tcp://127.0.0.1:{self._port}", "format": "msgpack"}
        self._thread: threading.Thread | None = None

    def arrived(self) -> Sequence[str]:
        return list(self._ids)

    def start(self) -> None:
        self._server = socket.create_server(("127.0.0.1", self._port))
        self._clients: list[socket.socket] = []
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._server.accept()
                self._clients.append(client)
                with client, client.makefile("rb") as stream, suppress(OSError):
                    while head := stream.read(4):
                        self._ids.append(msgpack.unpackb(stream.read(int.from_bytes(head, "big")))["id"])

    def stop(self) -> None:
        if self._thread:
            for one in (self._server, *self._clients):
                with suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)
            self._thread.join()
            self._server.close()
        self._thread = None


class Subscriber:
    """A SUB of ZeroMQ that listens."""

    def __init__(self) -> None:
        self._ids: list[str] = []
        self._address = f"tcp://127.0.0.1:{free_port()}"
        self.settings = {"address": self._address, "connect": True, "format": "msgpack"}
        self._context: zmq.Context[zmq.Socket[bytes]] | None = None

    def arrived(self) -> Sequence[str]:
        return list(self._ids)

    def start(self) -> None:
        self._context = zmq.Context()
        stream = self._context.socket(zmq.SUB)
        stream.set(zmq.LINGER, 0)
        stream.subscribe("")
        stream.bind(self._address)
        self._thread = threading.Thread(target=self._read, args=(stream,))
        self._thread.start()

    def _read(self, stream: zmq.Socket[bytes]) -> None:
        with stream, suppress(zmq.ContextTerminated):
            while True:
                self._ids.append(msgpack.unpackb(stream.recv_multipart()[1])["id"])

    def stop(self) -> None:
        if self._context:
            self._context.term()
            self._thread.join()
        self._context = None


# ---- programs and files


@dataclass
class InFolder:
    """Something in a folder, which is away while the folder has another name; what arrives lies in `got`."""

    folder: Path
    settings: Mapping[str, Any]
    read: Callable[[], Sequence[str]]

    def arrived(self) -> Sequence[str]:
        return self.read()

    def stop(self) -> None:
        self.folder.rename(self.folder.with_name("away"))

    def start(self) -> None:
        self.folder.with_name("away").rename(self.folder)


@contextmanager
def siren(folder: Path) -> Iterator[Receiver]:
    """A program that keeps its events, and fails at `BAD`."""
    path, got = folder / "bin" / "siren", folder / "got"
    path.parent.mkdir()
    path.write_text(f'#!/bin/sh\nread -r line\ncase "$line" in *{BAD.id}*) exit 3; esac\necho "$line" >> {got}\n')
    path.chmod(0o755)
    settings = {"command": ["bin/siren"], "tries": 1}
    yield InFolder(path.parent, settings, lambda: [one["id"] for one in json_lines(got)])


@contextmanager
def json_file(folder: Path) -> Iterator[Receiver]:
    file = folder / "out" / "events.jsonl"
    file.parent.mkdir()
    yield InFolder(file.parent, {"path": str(file)}, lambda: [one["id"] for one in json_lines(file)])


@contextmanager
def table(folder: Path) -> Iterator[Receiver]:
    file = folder / "out" / "table.csv"
    file.parent.mkdir()

    def read() -> list[str]:
        rows = file.read_text("utf-8-sig").splitlines()[1:] if file.exists() else []
        return [row.rpartition(",")[2] for row in rows]

    yield InFolder(file.parent, {"path": str(file)}, read)


LOGIN = {"username": "ward", "password": SECRET}
TOO_LARGE_FOR_MSGPACK = event(9999, "a", large=10**20)

CASES: dict[str, SinkCase] = {
    "sink_amqp": SinkCase(
        SinkAmqp, amqp_queue, at=lambda host, port: {"address": f"amqp://{host}:{port}", "queue": "q", **LOGIN},
        secrets=[SECRET],
    ),
    "sink_command": SinkCase(SinkCommand, siren, keeps=False, refused=BAD, why_refused="ended with status 3"),
    "sink_csv": SinkCase(SinkCsv, table, comes_later=False, keeps=False, once=True),
    "sink_email": SinkCase(
        SinkEmail, lambda _: started(Mailbox()), refused=BAD, why_refused="554 spam", at=mail, secrets=[SECRET],
    ),
    "sink_jsonl": SinkCase(SinkJsonl, json_file, comes_later=False, keeps=False, once=True),
    "sink_kafka": SinkCase(
        SinkKafka, kafka_cluster, stops=False, refused=event(9999, "a", text="x" * 2_000_000),
        why_refused="larger than Kafka takes",
        at=lambda host, port: {"address": f"kafka://{host}:{port}", "topic": "t", **LOGIN}, secrets=[SECRET],
    ),
    "sink_mqtt": SinkCase(
        SinkMqtt, mqtt_broker, keeps=False, refused=event(9999, "a", text="x" * 20_000),
        why_refused="larger than the broker takes",
        at=lambda host, port: {"address": f"mqtt://{host}:{port}", **LOGIN}, secrets=[SECRET],
    ),
    "sink_nats": SinkCase(
        SinkNats, nats_stream, once=True, refused=event(9999, "a", text="x" * 6000),
        why_refused="the server takes 4,096",
        at=lambda host, port: {"address": f"nats://{host}:{port}", "stream": "S", **LOGIN}, secrets=[SECRET],
    ),
    "sink_redis": SinkCase(
        SinkRedis, redis_stream, at=lambda host, port: {"address": f"redis://{host}:{port}", **LOGIN}, secrets=[SECRET],
    ),
    "sink_socket": SinkCase(
        SinkSocket, lambda _: started(TcpReader()), keeps=False, refused=TOO_LARGE_FOR_MSGPACK,
        why_refused="msgpack cannot hold",
        answers=False,
        at=lambda host, port: {"address": f"tcp://{host}:{port}"},
    ),
    "sink_syslog": SinkCase(
        SinkSyslog, rsyslogd, keeps=False, answers=False, at=lambda host, port: {"address": f"tcp://{host}:{port}"},
    ),
    "sink_webhook": SinkCase(
        SinkWebhook, web_server, refused=BAD, why_refused="it answers 422", secrets=[SECRET], at=lambda host, port: {
            "url": f"http://{host}:{port}/{SECRET}", "bearer_token": SECRET, "allow_private": True, "limit": "2s"
        },
    ),
    "sink_zmq": SinkCase(
        SinkZmq, lambda _: started(Subscriber()), confirms=False, refused=TOO_LARGE_FOR_MSGPACK,
        why_refused="msgpack cannot hold", at=lambda host, port: {"address": f"tcp://{host}:{port}", "connect": True},
    ),
}  # fmt: skip
OTHERS = {
    "sink_null": "delivers nothing",
    "sink_footage": "makes pictures and clips of packets, and tells of each by an event of its own",
    "sink_heatmap": "adds up tracks",
    "sink_tracks": "writes tracks, which no outbox keeps",
    "sink_video": "writes frames, which no outbox keeps",
    "sink_api_events": "hands events to the program that runs the graph: both end together",
    "sink_api_tracks": "as sink_api_events",
    "sink_api_frames": "as sink_api_events",
}
"""Sinks whose promises are others, and why; their tests are in the files of their names."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A case for each sink that the promise is about."""
    if "case" in metafunc.fixturenames:
        needed = getattr(metafunc.function, "needs", ())
        able = {name: case for name, case in CASES.items() if all(getattr(case, part) for part in needed)}
        metafunc.parametrize("case", able.values(), ids=able.keys())


class TestEverySink(SinkContract):
    @pytest.fixture(autouse=True)
    def _shared(self, request: pytest.FixtureRequest) -> None:
        RABBITMQ[:] = [lambda: request.getfixturevalue("rabbitmq")]


@pytest.mark.in_process
def test_each_sink_is_in_the_table() -> None:
    ours = {name: find_stage(name) for name in stage_names("camgraph")}
    sinks = {name for name, one in ours.items() if one.__module__.startswith("camgraph.stages.sinks.")}
    assert CASES.keys() | OTHERS.keys() == sinks, "describe a new sink in `CASES`"
    assert {name: case.sink for name, case in CASES.items()} == {name: ours[name] for name in CASES}


# ---- files


@dataclass(frozen=True)
class FileCase:
    """A sink that writes one file."""

    sink: type[Stage[Any]]
    name: str
    read: Callable[[Path], list[str]]
    """The ids of its events; fails on a line that is not whole."""

    @contextmanager
    def opened(self, folder: Path, path: str = "") -> Iterator[Stage[Any]]:
        case = SinkCase(self.sink, json_file)
        with case.opened({"path": path or str(folder / self.name)}, folder) as sink:
            yield sink


def read_lines(file: Path) -> list[str]:
    data = file.read_bytes()
    assert data == b"" or data.endswith(b"\n")
    return ids(data.splitlines())


def read_rows(file: Path) -> list[str]:
    data = file.read_text("utf-8-sig")
    assert data.endswith("\n")
    rows = list(csv.DictReader(io.StringIO(data, newline="")))
    assert all(len(row) == len(COLUMNS) for row in rows)
    return [row["id"] for row in rows]


FILES = {
    "sink_jsonl": FileCase(SinkJsonl, "events.jsonl", read_lines),
    "sink_csv": FileCase(SinkCsv, "table.csv", read_rows),
}


@pytest.fixture(params=FILES.values(), ids=FILES.keys())
def written(request: pytest.FixtureRequest) -> FileCase:
    found: FileCase = request.param
    return found


def test_a_full_disk_tears_no_line_and_loses_nothing(written: FileCase, small_disk: Path) -> None:
    many = [event(number, "x" * 400) for number in range(1, 31)]
    with written.opened(small_disk) as sink:
        hand_in(sink, [event(0)])
        ballast = small_disk / "ballast"
        ballast.write_bytes(bytes(50_000))
        for _ in range(3):
            assert "No space left on device" in refusal(sink, many)
            assert written.read(small_disk / written.name) == ["e0"]
        ballast.unlink()
        hand_in(sink, many, batch=len(many))
    assert written.read(small_disk / written.name) == [f"e{number}" for number in range(31)]


def test_a_file_has_one_writer(written: FileCase, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    with written.opened(tmp_path), pytest.raises(UserError, match="another sink or run is writing"):
        with written.opened(other, str(tmp_path / written.name)):
            pass
    with written.opened(tmp_path) as sink:
        hand_in(sink, [event(1)])


@pytest.mark.parametrize("created", [False, True])
def test_a_file_that_is_moved_away_is_followed_by_another(written: FileCase, tmp_path: Path, *, created: bool) -> None:
    """As `logrotate` does."""
    file, old = tmp_path / written.name, tmp_path / "old"
    with written.opened(tmp_path) as sink:
        hand_in(sink, [event(1), event(2)])
        file.rename(old)
        if created:
            file.touch()
        hand_in(sink, [event(3), event(4)])
    assert (written.read(old), written.read(file)) == (["e1", "e2"], ["e3", "e4"])


def test_a_missing_folder_is_named_at_the_start(written: FileCase, tmp_path: Path) -> None:
    gone = f"{tmp_path}/gone/{written.name}"
    settings = written.sink.settings_type.model_validate({"path": gone})
    assert [path for path, _ in written.sink.check(settings, tmp_path)] == [("path",)]
    with pytest.raises(UserError, match="no such folder; make it"), written.opened(tmp_path, gone):
        pass
