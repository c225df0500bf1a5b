"""Messages to a real rsyslogd, and to small servers where that has no way to show what it was sent."""

from __future__ import annotations

import json
import re
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import trustme
from camgraph_test_stages.brokers import Server, free_port, program, serving
from camgraph_test_stages.delivering import delivering, hand_in
from camgraph_test_stages.incident_views import incident
from camgraph_test_stages.waiting import json_lines, until
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from camgraph.pipeline.errors import Unavailable
from camgraph.pipeline.foreign_text import printable
from camgraph.pipeline.messages import Event
from camgraph.pipeline.testing import feed, opened, stamp
from camgraph.stages.sinks.delivery.event_view import view_of
from camgraph.stages.sinks.delivery.syslog_message import rfc5424
from camgraph.stages.sinks.delivery.template import one_line
from camgraph.stages.sinks.sink_syslog import SinkSyslog, SinkSyslogSettings

CONFIGURATION = """
module(load="imudp")
module(load="imtcp")
module(load="imuxsock" SysSock.Use="off")
input(type="imudp" port="{port}" address="127.0.0.1")
input(type="imtcp" port="{port}" address="127.0.0.1")
input(type="imuxsock" Socket="{folder}/log")
template(name="json" type="list") {{ property(name="jsonmesg") constant(value="\\n") }}
action(type="omfile" file="{folder}/messages" template="json")
"""


@pytest.fixture
def rsyslog(tmp_path: Path) -> Iterator[Server]:
    port = free_port()
    (tmp_path / "rsyslog.conf").write_text(CONFIGURATION.format(port=port, folder=tmp_path))
    command = [program("rsyslogd"), "-n", "-f", str(tmp_path / "rsyslog.conf"), "-i", str(tmp_path / "pid")]
    with serving(Server(command, port, tmp_path)) as server:
        yield server


def messages(folder: Path) -> list[dict[str, Any]]:
    return [message for message in json_lines(folder / "messages") if message["app-name"] == "camgraph"]


def start(number: int = 1, **data: Any) -> Event:
    return incident(f"i{number}", "start", at_s=number, **{"camera": "room-3", **data}).event


@pytest.mark.parametrize("way", ["tcp", "udp"])
def test_a_server_reads_every_fact(rsyslog: Server, tmp_path: Path, way: str) -> None:
    event = start(severity="alarm", action="fällt", zones=["bed"])
    settings = {"address": f"{way}://127.0.0.1:{rsyslog.port}", "facility": "local3", "text": "{action} in {zones}"}
    with opened(SinkSyslog, settings, folder=tmp_path, graph="ward") as stage:
        hand_in(stage, [event])
        until(lambda: messages(tmp_path))
    [message] = messages(tmp_path)
    assert message["msg"].lstrip("\ufeff") == "fällt in bed"
    assert (message["syslogfacility"], message["syslogseverity"]) == ("19", "1")
    assert (message["procid"], message["msgid"]) == ("ward", "incident.start")
    assert message["timereported"].startswith("2026-11-23T12:00:01")
    assert f'id="{event.own_id}"' in message["structured-data"]
    assert (
        'camera="room-3" rule="fall" action="fällt" severity="alarm" phase="start" incident="i1"'
        in (message["structured-data"])
    )


def test_the_log_of_this_machine(rsyslog: Server, tmp_path: Path) -> None:
    with delivering(SinkSyslog, {"address": f"unix://{tmp_path}/log"}, tmp_path) as stage:
        hand_in(stage, [start(severity="warning")])
        until(lambda: messages(tmp_path))
        rsyslog.stop()
        with pytest.raises(Unavailable, match="no log to write to"):
            feed(stage, [start(2)])
        rsyslog.start()
        hand_in(stage, [start(2)])
        until(lambda: len(messages(tmp_path)) == 2)
    first, second = messages(tmp_path)
    assert first["msg"].strip().startswith("fall on room-3 (start) [camgraph@32473 id=")
    assert first["syslogseverity"] == "4"
    assert 'incident="i2"' in second["msg"]


@contextmanager
def secure_server(authority: trustme.CA) -> Iterator[tuple[int, list[bytes]]]:
    """Reads messages of one client behind their lengths."""
    context, taken = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), list[bytes]()
    authority.issue_cert("localhost").configure_cert(context)
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with suppress(OSError):
            while True:
                plain, _ = listener.accept()
                with suppress(OSError), context.wrap_socket(plain, server_side=True) as client:
                    with client.makefile("rb") as stream:
                        while length := _length(stream):
                            taken.append(stream.read(length))

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield int(listener.getsockname()[1]), taken
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


def _length(stream: Any) -> int:
    digits = b""
    while (letter := stream.read(1)).isdigit():
        digits += letter
    return int(digits or 0)


def test_a_connection_with_tls(tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    with secure_server(authority) as (port, taken):
        address = {"address": f"tls://127.0.0.1:{port}"}
        with delivering(SinkSyslog, address, tmp_path) as stage:
            with pytest.raises(Unavailable, match="`ca` of `tls`"):
                feed(stage, [start()])
        known = {**address, "tls": {"ca": "ca.pem", "server_name": "localhost"}, "whole_event": True}
        with delivering(SinkSyslog, known, tmp_path) as stage:
            hand_in(stage, [start(1), start(2)])
            until(lambda: len(taken) == 2)
    bodies = [json.loads(message.partition(b"] ")[2]) for message in taken]
    assert [body["data"]["incident"] for body in bodies] == ["i1", "i2"]


def test_what_no_datagram_can_hold_is_a_dead_letter(rsyslog: Server, tmp_path: Path) -> None:
    settings = {"address": f"udp://127.0.0.1:{rsyslog.port}", "whole_event": True}
    with delivering(SinkSyslog, settings, tmp_path) as stage:
        hand_in(stage, [start(1, note="x" * 70_000), start(2)])
        [letter] = stage.context.dead_letters
        until(lambda: messages(tmp_path))
    assert "too large" in letter.why
    assert [f'incident="i{number}"' in messages(tmp_path)[0]["structured-data"] for number in (1, 2)] == [False, True]


def test_text_of_an_event_stays_within_its_message() -> None:
    hostile = 'x"] y\\z\n<0>1 - evil \x00'
    view = incident("a", "start", camera=hostile, rule=hostile)
    message = rfc5424(view, "text", facility="user", host="a host", graph="küche").decode()
    assert message.startswith("<12>1 2026-11-23T12:00:00.000Z a_host camgraph k_che incident.start [camgraph@32473 ")
    assert r'camera="x\"\] y\\z <0>1 - evil \\x00"' in message
    assert "\n" not in message
    assert "\x00" not in message


_MESSAGE = re.compile(
    r'<\d{1,3}>1 \S+ \S+ camgraph \S+ \S+ \[camgraph@32473((?: \w+="(?:[^"\\\]\n]|\\["\\\]])*")*)\] (.*)', re.DOTALL
)


@given(text=st.text(max_size=30), graph=st.text(max_size=200))
@settings(max_examples=60)
def test_any_fact_can_be_read_again(text: str, graph: str) -> None:
    view = incident("a", "start", rule=text)
    parts = _MESSAGE.fullmatch(rfc5424(view, "words", facility="user", host="h", graph=graph).decode())
    assert parts
    facts = dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', parts[1]))
    assert re.sub(r"\\(.)", r"\1", facts.get("rule", "")) == one_line(printable(text))
    assert parts[2] == "words"


def test_an_event_without_facts_is_a_message() -> None:
    message = rfc5424(view_of(Event(stamp(), "7", "", "single", b"{}")), "", facility="local0", host="", graph="")
    assert message == b'<133>1 - - camgraph - - [camgraph@32473 id="7" camera="cam" phase="single"] '


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"address": "log.example.org"}, "expected tls://HOST"),
        ({"address": "tcp://a/b"}, "nothing behind the port"),
        ({"address": "tcp://a", "tls": {}}, "begin with tls://"),
        ({"address": "unix:///dev/log", "facility": "kern"}, "local0"),
        ({"address": "tcp://me:secret-77@a"}, "expected"),
    ],
)
def test_mistakes(wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(ValidationError, match=told):
        SinkSyslogSettings.model_validate(wrong)
