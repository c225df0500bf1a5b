from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from camgraph_test_stages.brokers import (
    Server,
    delivering,
    hand_in,
    incident,
    or_skip,
    program,
    serving,
    stream,
)
from camgraph_test_stages.waiting import until
from paho.mqtt.client import CallbackAPIVersion, Client, MQTTMessage, MQTTv5

from camgraph.pipeline.errors import Unavailable
from camgraph.pipeline.graph import load_plan
from camgraph.pipeline.messages import Event
from camgraph.pipeline.supervision.control_client import ask
from camgraph.pipeline.supervision.supervisor import Supervisor
from camgraph.pipeline.testing import run_graph, stamp
from camgraph.stages.sinks.delivery.mqtt import mqtt_link
from camgraph.stages.sinks.sink_mqtt import SinkMqtt, SinkMqttSettings
from camgraph.tools.lab import broker_servers

PASSWORD = "plum-garden-74"


def mosquitto(folder: Path, *more: str) -> Server:
    return or_skip(lambda: broker_servers.mosquitto(folder, *more))


class Reader:
    """A client that comes back by itself and gets all again that is retained."""

    def __init__(self, port: int, topics: str = "#", **login: str) -> None:
        self.messages: list[MQTTMessage] = []
        self.joined = threading.Event()
        self._client = Client(CallbackAPIVersion.VERSION2, f"reader-{id(self)}", protocol=MQTTv5)
        if login:
            self._client.username_pw_set(login["username"], login["password"])
        self._client.reconnect_delay_set(1, 1)
        self._client.on_connect = lambda client, *_: client.subscribe(topics, qos=1)
        self._client.on_subscribe = lambda *_: self.joined.set()
        self._client.on_message = lambda _, __, message: self.messages.append(message)
        self._client.connect("127.0.0.1", port)
        self._client.loop_start()
        assert self.joined.wait(60)

    def last(self, topic: str) -> bytes | None:
        return next((m.payload for m in reversed(self.messages) if m.topic == topic), None)

    def all(self, topic: str) -> list[bytes]:
        return [m.payload for m in self.messages if m.topic == topic]

    def wait_for(self, topic: str, payload: bytes) -> None:
        until(lambda: self.last(topic) == payload, every_s=0.01, why=lambda: f"{topic}: {self.last(topic)!r}")

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()


@contextmanager
def reading(port: int, topics: str = "#", **login: str) -> Iterator[Reader]:
    reader = Reader(port, topics, **login)
    try:
        yield reader
    finally:
        reader.close()


@contextmanager
def sink_to(port: int, folder: Path, *, cameras: tuple[str, ...] = ("a", "b"), **more: Any) -> Iterator[SinkMqtt]:
    settings = {"address": f"mqtt://127.0.0.1:{port}", **more}
    with delivering(SinkMqtt, settings, folder, cameras=cameras, cameras_now=dict.fromkeys(cameras, "live")) as sink:
        yield sink


def camera_event(number: int, camera: str, *, lost: bool) -> Event:
    kind, state, phase = ("lost", "stalled", "start") if lost else ("back", "live", "end")
    data = {"incident": "c1", "phase": phase, "camera": camera, "state": state, "why": ""}
    body = {"id": f"c{number}", "type": f"camgraph.camera.{kind}", "subject": camera, "data": data}
    return Event(stamp(number, camera), f"c{number}", "c1", phase, json.dumps(body).encode())


def test_a_killed_broker_loses_no_state(tmp_path) -> None:
    with serving(mosquitto(tmp_path)) as server, sink_to(server.port, tmp_path) as sink:
        hand_in(sink, [incident(1, "a", phase="start", name="f1"), incident(2, "b")])
        server.kill()
        server.start()
        with reading(server.port) as late:
            late.wait_for("camgraph/test/a/fall/state", b"ON")
            late.wait_for("camgraph/test/b/fall/state", b"OFF")
            late.wait_for("camgraph/test/availability", b"online")
            state = json.loads(late.last("camgraph/test/a/state") or b"")
            assert state["actions"] == {"fall": "ON"}
            assert [one["incident"] for one in state["incidents"]] == ["f1"]


@pytest.mark.parametrize("processes", ["separate", "one"])
def test_camera_is_not_live_before_its_first_picture(tmp_path: Path, processes: str) -> None:
    """Also if the sink gets no events of cameras: it reads those of one stage alone."""
    says = tmp_path / "says"
    with serving(mosquitto(tmp_path)) as server, reading(server.port) as reader:
        (tmp_path / "ward.yaml").write_text(f"""
version: 1
name: ward
processes: {processes}
cameras: {{a: {{frames: 1000000, live: true, pace_ms: 20, state_from: says}}}}
stages:
  numbers: {{use: count_source, each: cameras}}
  emit:    {{use: emit, from: numbers, with: {{every: 1000000}}}}
  house:   {{use: sink_mqtt, from: emit, with: {{address: "mqtt://127.0.0.1:{server.port}"}}}}
""")
        command = [sys.executable, "-m", "camgraph.tools.cli", "run", str(tmp_path / "ward.yaml")]
        environment = {**os.environ, "CAMGRAPH_STATE_DIR": str(tmp_path / "state")}
        with (tmp_path / "log").open("w") as log, subprocess.Popen(command, env=environment, stderr=log) as run:
            try:
                for state in ("connecting", "lost gone", "live", "stalled silent", "live"):
                    says.write_text(state)
                    wait_for_camera(reader, state.partition(" ")[0])
                first = json.loads(reader.all("camgraph/ward/a/state")[0])
                assert first["camera"] == "connecting"
            finally:
                run.send_signal(signal.SIGINT)
        assert run.returncode in (0, 1, 130), (tmp_path / "log").read_text()


def wait_for_camera(reader: Reader, state: str) -> None:
    topic = "camgraph/ward/a/state"
    until(lambda: json.loads(reader.last(topic) or b"{}").get("camera") == state, every_s=0.01)


def test_it_is_online_without_events_and_comes_back_by_itself(tmp_path) -> None:
    server = mosquitto(tmp_path)
    with sink_to(server.port, tmp_path) as sink, serving(server):  # the broker comes later
        with reading(server.port) as reader:
            reader.wait_for("camgraph/test/availability", b"online")
            reader.wait_for("camgraph/test/a/state", b'{"camera": "live", "actions": {}, "incidents": []}')
        until(lambda: not sink.context.troubles)
        server.kill()
        until(lambda: "connection" in sink.context.troubles.get("", ""))
        server.start()
        with reading(server.port) as reader:
            reader.wait_for("camgraph/test/availability", b"online")
            sink.close()
            reader.wait_for("camgraph/test/availability", b"offline")


def test_who_stops_amid_coming_back_is_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go_on, retain = threading.Event(), threading.Event(), mqtt_link.MqttLink._retain

    def slow(link: mqtt_link.MqttLink, *arguments: Any) -> None:
        begun.set()
        assert go_on.wait(60)
        retain(link, *arguments)

    # The moment between "online" and the end of the beginning: nothing outside holds it open.
    monkeypatch.setattr(mqtt_link.MqttLink, "_retain", slow)
    server = mosquitto(tmp_path)
    with serving(server), sink_to(server.port, tmp_path) as sink, reading(server.port) as reader:
        assert begun.wait(60)
        closing = threading.Thread(target=sink.close)
        closing.start()
        until(sink._link._stopping.is_set)
        go_on.set()
        closing.join()
        reader.wait_for("camgraph/test/availability", b"offline")


def test_an_event_says_what_it_is(tmp_path) -> None:
    with serving(mosquitto(tmp_path)) as server, sink_to(server.port, tmp_path, expires="10min") as sink:
        with reading(server.port, "camgraph/test/+/+") as reader:
            late = Event(stamp(1, "a"), "e1", "i", "single", incident(1, "a").body, committed_ns=time.time_ns())
            until(lambda: reader.last("camgraph/test/a/state"))
            hand_in(sink, [late])
            until(lambda: reader.last("camgraph/test/a/fall"))
        [message] = [m for m in reader.messages if m.topic == "camgraph/test/a/fall"]
        assert message.payload == late.body
        assert not message.retain
        properties = message.properties
        assert properties.ContentType == "application/cloudevents+json"
        assert properties.UserProperty == [("id", "e1")]
        assert properties.PayloadFormatIndicator == 1
        assert properties.MessageExpiryInterval > 500


@pytest.mark.parametrize(
    ("topic", "event", "wanted"),
    [
        ("{camera}/{action}", incident(1, "a", action="raised_hand"), "a/raised_hand"),
        ("{camera}/{action}", incident(1, "Süd", action="x/+#\0y$"), "Süd/x_x00y_"),
        ("{camera}/{action}", incident(1, "a", action="state"), "a/state_"),
        ("{camera}/{action}", camera_event(1, "a", lost=True), "a/camera"),
        ("{severity}/{rule}", incident(1, "a"), "alarm/fall"),
    ],
)
def test_topics(tmp_path, topic: str, event: Event, wanted: str) -> None:
    with serving(mosquitto(tmp_path)) as server, sink_to(server.port, tmp_path, topic=topic, prefix="ward") as sink:
        with reading(server.port, "ward/#") as reader:
            hand_in(sink, [event])
            until(lambda: event.body in [m.payload for m in reader.messages])
            assert [m.topic for m in reader.messages if m.payload == event.body] == [f"ward/{wanted}"]


def test_states_follow_all_incidents_also_those_of_other_phases(tmp_path) -> None:
    """`only` picks alerts; a light that never goes out again would be no state."""
    with serving(mosquitto(tmp_path)) as server, sink_to(server.port, tmp_path, only={"phase": "start"}) as sink:
        with reading(server.port) as reader:
            is_on = "camgraph/test/a/fall/state"
            hand_in(sink, [incident(1, "a", phase="start", name="f1"), incident(2, "a", phase="start", name="f2")])
            hand_in(sink, [incident(3, "a", phase="end", name="f1")])
            reader.wait_for(is_on, b"ON")
            hand_in(sink, [incident(4, "a", phase="end", name="f2"), incident(5, "b", phase="single")])
            reader.wait_for(is_on, b"OFF")
            for number, state in ((6, "stalled"), (7, "live")):
                sink.context.cameras_now = {"a": "live", "b": state}  # type: ignore[dict-item]
                hand_in(sink, [camera_event(number, "b", lost=state != "live")])
                until(lambda state=state: json.loads(reader.last("camgraph/test/b/state") or b"{}")["camera"] == state)
            assert len(reader.all("camgraph/test/a/fall")) == 2


def test_a_process_that_begins_anew_knows_the_states(tmp_path) -> None:
    with serving(mosquitto(tmp_path)) as server:
        with sink_to(server.port, tmp_path) as sink:
            hand_in(sink, [incident(1, "a", phase="start", name="f1")])
        server.kill()
        server.start()
        with sink_to(server.port, tmp_path), reading(server.port) as reader:
            reader.wait_for("camgraph/test/a/fall/state", b"ON")


def test_home_assistant_follows_added_and_removed_cameras(tmp_path) -> None:
    at = "homeassistant/binary_sensor/camgraph_test/"
    with serving(mosquitto(tmp_path)) as server:
        with sink_to(server.port, tmp_path, cameras=("a", "gone"), home_assistant=True, snapshots=True) as sink:
            with reading(server.port) as reader:
                hand_in(sink, [incident(1, "a", phase="start"), incident(2, "gone")])
                until(lambda: reader.last(at + "a__fall/config"))
                entity = json.loads(reader.last(at + "a__fall/config") or b"")
                assert entity["state_topic"] == "camgraph/test/a/fall/state"
                assert entity["device"]["identifiers"] == ["camgraph_test_a"]
                assert reader.last(at + "a/config")
                assert reader.last("homeassistant/image/camgraph_test/a__snapshot/config")
                sink.context.cameras = ("a", "new")
                sink.cameras_changed()
                reader.wait_for(at + "gone__fall/config", b"")
                reader.wait_for("camgraph/test/gone/state", b"")
                until(lambda: reader.last(at + "new/config"))
                hand_in(sink, [incident(3, "gone")])  # it has waited here meanwhile
                until(lambda: len(reader.all("camgraph/test/gone/fall")) == 2)
                assert "camgraph/test/gone/state" not in sink._up.shown
        other = tmp_path / "other"
        other.mkdir()
        with reading(server.port) as reader:
            with sink_to(server.port, other, cameras=("b",), home_assistant=True):  # another run, without this camera
                reader.wait_for(at + "a__fall/config", b"")
                reader.wait_for("camgraph/test/a/state", b"")
                reader.wait_for("camgraph/test/a/fall/state", b"")
                until(lambda: reader.last(at + "b/config"))
                assert reader.last("camgraph/test/b/state")


def picture_event(number: int, file: str) -> Event:
    data = {"incident": "i", "camera": "a", "kind": "snapshot", "file": file, "rule": "fall", "action": "fall"}
    body = {"id": f"p{number}", "type": "camgraph.footage.ready", "subject": "a", "data": data}
    return Event(stamp(number, "a"), f"p{number}", "i", "single", json.dumps(body).encode())


def test_a_picture_is_published_and_no_file_elsewhere(tmp_path) -> None:
    (tmp_path / "one.jpg").write_bytes(b"\xff\xd8picture")
    folder = tmp_path / "graph"
    folder.mkdir()
    (folder / "one.jpg").write_bytes(b"\xff\xd8picture")
    with serving(mosquitto(tmp_path)) as server, sink_to(server.port, folder, snapshots=True) as sink:
        with reading(server.port) as reader:
            hand_in(sink, [picture_event(1, "../one.jpg"), picture_event(2, str(tmp_path / "one.jpg"))])
            hand_in(sink, [incident(3, "a", phase="start")])
            reader.wait_for("camgraph/test/a/fall/state", b"ON")
            assert reader.last("camgraph/test/a/snapshot") is None
            hand_in(sink, [picture_event(4, "one.jpg")])
            reader.wait_for("camgraph/test/a/snapshot", b"\xff\xd8picture")


def test_onvif(tmp_path) -> None:
    fall = "ward/onvif-ej/RuleEngine/camgraph/Fall/&a/fall"
    loss = "ward/onvif-ej/VideoSource/SignalLoss/&a"
    with serving(mosquitto(tmp_path)) as server:
        with sink_to(server.port, tmp_path, prefix="ward", format="onvif") as sink:
            first = [incident(n, "a", phase="start", name=f"f{n}", people=[{"track_id": 7}]) for n in (1, 2)]
            hand_in(sink, [*first, incident(3, "a", phase="end", name="f1"), camera_event(4, "a", lost=True)])
            with reading(server.port) as late:  # properties are retained
                until(lambda: late.last(loss))
                shown = json.loads(late.last(fall) or b"")
                assert shown["UtcTime"] == "2026-01-01T12:00:03.000Z"
                assert shown["Source"] == {"VideoSource": "a", "Rule": "fall"}
                assert shown["Data"]["State"] is True  # the second one goes on
                assert json.loads(late.last(loss) or b"")["Data"] == {"State": True}
                server.kill()
                server.start()
                until(lambda: json.loads(late.last(fall) or b"{}") == shown)
                hand_in(sink, [incident(5, "a", phase="end", name="f2")])
                until(lambda: json.loads(late.last(fall) or b"{}")["Data"]["State"] is False)
                sink.context.cameras = ("b",)
                sink.cameras_changed()
                late.wait_for(fall, b"")
                late.wait_for(loss, b"")


def with_password(folder: Path) -> Server:
    import subprocess

    passwords = folder / "passwords"
    subprocess.run([program("mosquitto_passwd"), "-b", "-c", passwords, "camgraph", PASSWORD], check=True)
    passwords.chmod(0o600)
    (folder / "acl").write_text("user camgraph\ntopic readwrite #\ntopic deny camgraph/test/a/secret\n")
    return mosquitto(folder, "allow_anonymous false", "password_file passwords", "acl_file acl")


def test_password(tmp_path, capfd) -> None:
    with serving(with_password(tmp_path)) as server:
        login = {"username": "camgraph", "password": PASSWORD}
        with sink_to(server.port, tmp_path, **login) as sink, reading(server.port, **login) as reader:
            hand_in(sink, stream(4))
            until(lambda: len(reader.all("camgraph/test/a/fall")) == 2)
            with pytest.raises(Unavailable, match=r"does not permit this.*camgraph/test/a/secret") as denied:
                list(sink.process([incident(9, "a", action="secret")]))
        with sink_to(server.port, tmp_path, username="camgraph", password="wrong-" + PASSWORD) as sink:
            until(lambda: sink.context.troubles)
            with pytest.raises(Unavailable, match="check `username`, `password`") as refused:
                list(sink.process(stream(1)))
        said = f"{denied.value}{refused.value}{sink.context.troubles}{capfd.readouterr()}"
        assert PASSWORD not in said


def test_tls(tmp_path) -> None:
    trustme = pytest.importorskip("trustme")
    authority, stranger = trustme.CA(), trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    stranger.cert_pem.write_to_path(tmp_path / "other.pem")
    shown = authority.issue_cert("broker.test")
    shown.private_key_pem.write_to_path(tmp_path / "key.pem")
    shown.cert_chain_pems[0].write_to_path(tmp_path / "crt.pem")
    server = mosquitto(tmp_path, "allow_anonymous true", "certfile crt.pem", "keyfile key.pem")
    with serving(server):
        secure = {"address": f"mqtts://127.0.0.1:{server.port}"}
        right = {"ca": "ca.pem", "server_name": "broker.test"}
        with sink_to(server.port, tmp_path, **secure, tls=right) as sink:
            hand_in(sink, stream(4))
            assert sink.context.counts["written", "a"] == 2
        for tls, why in (
            ({"ca": "ca.pem"}, "for another name"),
            ({"ca": "other.pem", "server_name": "broker.test"}, "not trusted"),
        ):
            with sink_to(server.port, tmp_path, **secure, tls=tls) as sink:
                until(lambda s=sink: s.context.troubles)
                assert why in sink.context.troubles[""]


@contextmanager
def slow_line(port: int, bytes_a_second: int) -> Iterator[int]:
    """A port that leads to this one; what goes there takes its time."""
    stop = threading.Event()

    def carry(source: socket.socket, target: socket.socket, pause_s: float) -> None:
        with suppress(OSError):
            while not stop.is_set() and (piece := source.recv(4096)):
                target.sendall(piece)
                stop.wait(pause_s)
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def serve() -> None:
        with suppress(OSError):
            while True:
                client, _ = server.accept()
                client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
                broker = socket.create_connection(("127.0.0.1", port))
                ends.extend([client, broker])
                for source, target, pause_s in ((client, broker, 4096 / bytes_a_second), (broker, client, 0.0)):
                    threads.append(threading.Thread(target=carry, args=(source, target, pause_s)))
                    threads[-1].start()

    ends: list[socket.socket] = []
    server = socket.create_server(("127.0.0.1", 0))
    threads = [threading.Thread(target=serve)]
    threads[0].start()
    try:
        yield server.getsockname()[1]
    finally:
        stop.set()
        for end in (server, *ends):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        for thread in threads:
            thread.join()
        for end in (server, *ends):
            end.close()


def test_an_event_arrives_though_pictures_take_long(tmp_path, monkeypatch) -> None:
    """Pictures of 3 s on this line, to a broker that has 1 s to confirm an event."""
    monkeypatch.setattr(mqtt_link, "WAIT_S", 1.0)
    with serving(mosquitto(tmp_path)) as server, slow_line(server.port, 100_000) as port:
        with sink_to(port, tmp_path, snapshots=True) as sink, reading(server.port) as reader:
            (tmp_path / "large.jpg").write_bytes(b"\xff\xd8" + bytes(300_000))
            assert hand_in(sink, [picture_event(1, "large.jpg")]) == []
            assert hand_in(sink, [incident(2, "a")]) == []
            assert sink.context.counts["written", "a"] == 2
            assert sink.context.troubles.get("", "") == ""
            until(lambda: len(reader.last("camgraph/test/a/snapshot") or b"") == 300_002)
            until(lambda: len(reader.all("camgraph/test/a/fall")) >= 2)
            assert len(reader.all("camgraph/test/a/fall")) == 2, "each of the two once"


def test_a_picture_that_is_too_large_stops_nothing(tmp_path) -> None:
    """It is retained: each new connection would begin with it, and the broker would end each of them."""
    with serving(mosquitto(tmp_path, "allow_anonymous true", "max_packet_size 10000")) as server:
        with sink_to(server.port, tmp_path, snapshots=True) as sink, reading(server.port, "camgraph/#") as reader:
            for number, size in ((1, 5000), (2, 20_000)):
                (tmp_path / f"{number}.jpg").write_bytes(b"\xff\xd8" + bytes(size))
                hand_in(sink, [picture_event(number, f"{number}.jpg")])
            hand_in(sink, [incident(3, "a")])
            until(lambda: reader.last("camgraph/test/a/fall"))
            reader.wait_for("camgraph/test/a/snapshot", b"")
            assert sink.context.troubles == {}
        with sink_to(server.port, tmp_path, snapshots=True) as sink:
            hand_in(sink, [incident(4, "a")])
            assert sink.context.counts["written", "a"] == 1


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"address": "http://a"}, "expected mqtt://HOST"),
        ({"address": f"mqtt://me:{PASSWORD}@a"}, "write name and password as"),
        ({"address": "mqtt://a", "password": "x"}, "belongs to a `username`"),
        ({"address": "mqtt://a", "tls": {}}, "begin with mqtts://"),
        ({"address": "mqtt://a", "prefix": "a/#"}, "without"),
        ({"address": "mqtt://a", "topic": "{nobody}"}, "there is no {nobody}"),
        ({"address": "mqtt://a", "topic": "a/#/{camera}"}, "without"),
        ({"address": "mqtt://a", "topic": "{camera}//x"}, "expected names with"),
        ({"address": "mqtt://a", "topic": "/"}, "expected names with"),
        ({"address": "mqtt://a", "topic": "{camera}/state"}, "another last name than"),
    ],
)
def test_mistakes(settings: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why) as error:
        SinkMqttSettings.model_validate(settings)
    shown = [problem["msg"] for problem in error.value.errors(include_input=False)]
    assert PASSWORD not in str(shown)


GRAPH = """
version: 1
name: {name}
cameras: {{a: {{frames: 40}}, b: {{frames: 40}}, mute: {{frames: 0}}}}
stages:
  src: {{use: count_source}}
  emit: {{use: emit, from: src}}
  out: {{use: sink_mqtt, from: emit, batch: {{max: 10}}, with: {{address: "mqtt://127.0.0.1:{port}"}}}}
"""


@pytest.mark.parametrize("processes", ["separate", "one"])
def test_a_graph_publishes_all_its_events_and_cameras(tmp_path, processes) -> None:
    name = f"mqtt{os.getpid()}"
    with serving(mosquitto(tmp_path)) as server, reading(server.port, f"camgraph/{name}/#") as reader:
        graph = tmp_path / "graph.yaml"
        graph.write_text(f"processes: {processes}" + GRAPH.format(name=name, port=server.port))
        assert run_graph(load_plan(graph))[0].status == 0
        reader.wait_for(f"camgraph/{name}/availability", b"offline")
        for camera in ("a", "b"):
            seen = [json.loads(body)["seq"] for body in reader.all(f"camgraph/{name}/{camera}/other")]
            assert list(dict.fromkeys(seen)) == list(range(40))
        assert {m.topic.split("/")[2] for m in reader.messages if m.topic.endswith("/state")} == {"a", "b", "mute"}


def test_added_cameras_appear_and_removed_ones_disappear(tmp_path) -> None:
    name = f"mqttc{os.getpid()}"
    with serving(mosquitto(tmp_path)) as server, reading(server.port, f"camgraph/{name}/#") as reader:
        graph = tmp_path / "graph.yaml"
        endless = GRAPH.replace("frames: 40", "frames: 100000000, pace_ms: 50")
        graph.write_text(endless.format(name=name, port=server.port))
        story = changes(name, reader)

        def during(supervisor: Supervisor) -> None:
            """Goes one step further as soon as it can."""
            if next(story, True):
                supervisor.stop()

        assert run_graph(load_plan(graph), during)[0].status == 0
        assert reader.last(f"camgraph/{name}/new/state")
        assert not reader.last(f"camgraph/{name}/mute/state")


def changes(name: str, reader: Reader) -> Iterator[bool]:
    """False for each look at which a step is not done yet."""

    def is_shown(camera: str) -> bool:
        return bool(reader.last(f"camgraph/{name}/{camera}/state"))

    while not (is_shown("a") and is_shown("mute")):
        yield False
    later(lambda: ask(name, "add", camera="new", values={"frames": 1}))
    while not is_shown("new"):
        yield False
    later(lambda: ask(name, "remove", camera="mute"))
    while is_shown("mute"):
        yield False


def later(work: Callable[[], object]) -> None:
    """The supervisor, in whose loop we are, has to answer."""
    threading.Thread(target=work).start()


def test_nothing_is_deleted_below_a_prefix_that_graphs_may_share(tmp_path) -> None:
    with serving(mosquitto(tmp_path)) as server, reading(server.port, "ward/#") as reader:
        settings: dict[str, Any] = {"address": f"mqtt://127.0.0.1:{server.port}", "prefix": "ward"}
        for name, more in (("a", {}), ("b", {}), ("c", {"cameras": ["c"]})):
            (tmp_path / name).mkdir()
            with delivering(SinkMqtt, {**settings, **more}, tmp_path / name, cameras=(name,)) as sink:
                hand_in(sink, [incident(1, name)])
                until(lambda name=name: reader.last(f"ward/{name}/state"))
                assert bool(reader.last("ward/a/state")) or name == "c"
        reader.wait_for("ward/a/state", b"")
        reader.wait_for("ward/b/fall/state", b"")
        assert reader.last("ward/c/state")
