from __future__ import annotations

import socket
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camgraph.pipeline.errors import Unavailable
from camgraph.stages.sinks.sockets.address import Address, Lookup, parse_address


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tcp://127.0.0.1:7000", Address("tcp", "127.0.0.1", 7000)),
        ("udp://events.example:514", Address("udp", "events.example", 514)),
        ("tcp://[::1]:7000", Address("tcp", "::1", 7000)),
        ("unix:///run/events.sock", Address("unix", path="/run/events.sock")),
    ],
)
def test_an_address_is_read_and_written_the_same(text, expected) -> None:
    assert parse_address(text) == expected
    assert str(expected) == text


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("127.0.0.1:7000", "expected tcp://HOST:PORT"),
        ("http://127.0.0.1:7000", "got 'http://127.0.0.1:7000'"),
        ("tcp://127.0.0.1", "a port from 1 to 65535"),
        ("tcp://127.0.0.1:0", "a port from 1 to 65535"),
        ("tcp://127.0.0.1:99999", "a port from 1 to 65535"),
        ("tcp://127.0.0.1:port", "a port from 1 to 65535"),
        ("tcp://:7000", "name the host"),
        ("tcp://*:7000", "name the host"),
        ("tcp://127.0.0.1:7000/events", "expected tcp://HOST:PORT"),
        ("tcp://127.0.0.1:7000?a=1", "expected tcp://HOST:PORT"),
        ("unix://run/events.sock", "three slashes"),
        ("unix:///" + "x" * 107, "107 bytes"),
    ],
)
def test_a_wrong_address_says_what_was_expected(text, says) -> None:
    with pytest.raises(ValueError, match="expected") as caught:
        parse_address(text)
    assert says in str(caught.value)


def test_a_password_is_refused_and_not_repeated() -> None:
    with pytest.raises(ValueError, match="no place for a user name or password") as caught:
        parse_address("tcp://me:hunter2@127.0.0.1:7000")
    assert "hunter2" not in str(caught.value)


@given(st.text(max_size=60))
def test_any_text_is_an_address_or_a_plain_error(text) -> None:
    try:
        address = parse_address(text)
    except ValueError:
        return
    assert parse_address(str(address)) == address


@pytest.mark.parametrize(
    ("text", "local"),
    [
        ("tcp://127.0.0.1:1", True),
        ("tcp://localhost:1", True),
        ("tcp://[::1]:1", True),
        ("unix:///a", True),
        ("tcp://0.0.0.0:1", False),
        ("tcp://[::]:1", False),
        ("tcp://events.example:1", False),
    ],
)
def test_what_only_this_machine_reaches(text, local) -> None:
    assert parse_address(text).is_local is local


def test_a_host_is_found_and_one_that_does_not_exist_is_not() -> None:
    found = Lookup(parse_address("tcp://127.0.0.1:7000")).places(time.monotonic() + 5)
    assert found == [(socket.AF_INET, ("127.0.0.1", 7000))]
    with pytest.raises(Unavailable, match=r"tcp://nowhere\.invalid:7000: (cannot find this host|the name server)"):
        Lookup(parse_address("tcp://nowhere.invalid:7000")).places(time.monotonic() + 5)


@pytest.mark.parametrize("host", ["a" * 64, "a..b", "x." + "ü" * 60])
def test_a_host_that_no_resolver_takes_is_no_address(host: str) -> None:
    with pytest.raises(ValueError, match="HOST can be no name of a host"):
        parse_address(f"tcp://{host}:7000")
