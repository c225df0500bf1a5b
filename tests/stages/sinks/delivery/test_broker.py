from __future__ import annotations

import errno
import re
import socket
from textwrap import dedent
from typing import Any

import pytest
from camgraph_test_stages.brokers import (
    Server,
    assert_all_in_order,
    delivering,
    free_port,
    hand_in,
    program,
    serving,
    stream,
    struck,
)
from camgraph_test_stages.delivering import refusal
from camgraph_test_stages.hostile import hostile, saying
from hypothesis import given
from hypothesis import strategies as st

from camgraph.stages.sinks.delivery import broker
from camgraph.stages.sinks.delivery.bounded_line import why_away
from camgraph.stages.sinks.delivery.broker import broker_address

PORTS = {"mqtt": 1883, "mqtts": 8883}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("mqtt://a", "mqtt://a:1883"),
        ("mqtts://a.b:9/", "mqtts://a.b:9"),
        ("mqtt://[::1]:9/x", "mqtt://[::1]:9/x"),
    ],
)
def test_addresses(text: str, wanted: str) -> None:
    assert str(broker_address(text, PORTS)) == wanted


@pytest.mark.parametrize("host", ["a..b", ".b", f"{'a' * 64}.b"])
def test_a_host_that_nobody_can_have_is_a_mistake(host: str) -> None:
    with pytest.raises(ValueError, match="HOST can be no name of a host"):
        broker_address(f"mqtt://{host}", PORTS)


@given(st.text(max_size=30) | st.text(max_size=30).map("mqtt://me:plum@".__add__))
def test_a_wrong_address_is_a_mistake_that_shows_no_password(text: str) -> None:
    said = ""
    try:
        broker_address(text, PORTS)
    except ValueError as error:
        said = str(error)
    assert "plum" not in said


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ConnectionRefusedError(errno.ECONNREFUSED, "words of a library"), "no connection: Connection refused"),
        (TimeoutError("words of a library"), "it does not answer"),
        (socket.gaierror(socket.EAI_NONAME, "Name or service not known"), "this host is not found: Name or service"),
        (KeyError("words of a library"), "no connection: KeyError"),
    ],
)
def test_an_error_of_a_library_is_told_in_our_words(error: Exception, told: str) -> None:
    wrapped = RuntimeError("words of a library")
    wrapped.__cause__ = error
    assert why_away(error).startswith(told)
    assert why_away(wrapped) == why_away(error)
    assert "words" not in why_away(error)


def own_sink() -> Any:
    """The class at the head of the module."""
    code = re.search(r"^    import socket\n.*?(?=^\S)", broker.__doc__ or "", re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {}
    assert code
    exec(dedent(code[0]), names)
    return names["SinkBeanstalk"]


def jobs(port: int) -> list[bytes]:
    """Take all jobs."""
    with socket.create_connection(("127.0.0.1", port)) as connection, connection.makefile("rwb") as stream_:
        found = []
        while True:
            stream_.write(b"reserve-with-timeout 0\r\n")
            stream_.flush()
            head = stream_.readline().split()
            if head[0] != b"RESERVED":
                return found
            found.append(stream_.read(int(head[2]) + 2)[:-2])


def ready(port: int) -> int:
    try:
        with socket.create_connection(("127.0.0.1", port)) as connection, connection.makefile("rwb") as stream_:
            stream_.write(b"stats-tube default\r\n")
            stream_.flush()
            found = re.search(rb"current-jobs-ready: (\d+)", stream_.read(200))
            return int(found[1]) if found else 0
    except OSError:
        return 0


def test_the_own_sink_takes_what_the_broker_says(tmp_path) -> None:
    settings = {"address": "beanstalk://127.0.0.1"}
    with hostile(saying(b"INSERTED 1\r\n", b"DRAINING\r\n")) as server:
        settings["address"] += f":{server.port}"
        with delivering(own_sink(), settings, tmp_path) as sink:
            hand_in(sink, stream(1))
            assert "it did not take the event" in refusal(sink, stream(2))


def test_an_own_sink_to_a_broker_is_short_and_loses_nothing(tmp_path) -> None:
    port, events = free_port(), stream(1000)
    command = [program("beanstalkd"), "-l", "127.0.0.1", "-p", str(port), "-b", str(tmp_path), "-f", "0"]
    with serving(Server(command, port, tmp_path)) as server:
        with delivering(own_sink(), {"address": f"beanstalk://127.0.0.1:{port}"}, tmp_path) as sink:
            with struck(server, lambda: ready(port) > 200):
                hand_in(sink, events)
        assert_all_in_order(events, jobs(port))
