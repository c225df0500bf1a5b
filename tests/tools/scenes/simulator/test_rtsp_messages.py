"""Bytes of RTSP, RTP and RTCP, and who is let in."""

from __future__ import annotations

import base64
import struct
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camgraph.tools.scenes.simulator.authentication import challenge, digest_response, is_authorised
from camgraph.tools.scenes.simulator.rtp import interleaved, ntp_of, rtp_packets, sender_report
from camgraph.tools.scenes.simulator.rtsp import Request, RequestReader, Response, Transport, transport_of

REQUESTS = (
    b"OPTIONS rtsp://127.0.0.1:8554/cam1 RTSP/1.0\r\nCSeq: 1\r\n\r\n$\x01\x00\x08\r\n\r\nabcd"
    b"SET_PARAMETER rtsp://127.0.0.1/cam1/track0?x=1 RTSP/1.0\r\nCSeq: 2\r\nContent-Length: 6\r\n\r\na: b\r\n"
    b"TEARDOWN rtsp://127.0.0.1/cam1/ RTSP/1.0\r\ncseq:3\r\nSession: ab\r\n\r\n"
)


@given(st.lists(st.integers(0, len(REQUESTS)), max_size=6))
def test_requests_are_read_however_they_come_in_pieces(cuts: list[int]) -> None:
    reader, found = RequestReader(), []
    places = [0, *sorted(cuts), len(REQUESTS)]
    for begin, end in pairwise(places):
        found += reader.feed(REQUESTS[begin:end])
    assert [(one.method, one.path, one.headers["cseq"]) for one in found] == [
        ("OPTIONS", "cam1", "1"),
        ("SET_PARAMETER", "cam1/track0", "2"),
        ("TEARDOWN", "cam1", "3"),
    ]


def test_what_is_no_request_is_an_error() -> None:
    with pytest.raises(ValueError, match="expected a method"):
        list(RequestReader().feed(b"hello\r\n\r\n"))
    with pytest.raises(ValueError, match="more than 16384 bytes"):
        list(RequestReader().feed(b"x" * 20_000))


def test_a_response_says_its_length() -> None:
    text = Response(200, {"Session": "ab"}, "é").encode("7").decode()
    assert text.startswith("RTSP/1.0 200 OK\r\nCSeq: 7\r\n")
    assert text.endswith("Session: ab\r\nContent-Length: 2\r\n\r\né")


@pytest.mark.parametrize(
    ("header", "transport"),
    [
        ("RTP/AVP/TCP;unicast;interleaved=2-3", Transport("tcp", 2, 3)),
        ("RTP/AVP;unicast;client_port=5000-5001", Transport("udp", 5000, 5001)),
        ("RTP/AVP/UDP;unicast;client_port=5000", Transport("udp", 5000, 5001)),
        ("RTP/AVP;multicast, RTP/AVP/TCP;interleaved=0-1", Transport("tcp", 0, 1)),
        ("RTP/SAVP;unicast;client_port=5000-5001", None),
        ("", None),
    ],
)
def test_the_first_transport_that_the_farm_has_is_taken(header: str, transport: Transport | None) -> None:
    assert transport_of(header) == transport


@pytest.mark.parametrize("header", ["RTP/AVP;client_port=70000-70001", "RTP/AVP/TCP;interleaved=255"])
def test_a_transport_that_cannot_be_is_an_error(header: str) -> None:
    with pytest.raises(ValueError, match="expected two numbers up to"):
        transport_of(header)


def test_the_path_of_a_request_is_that_of_its_url() -> None:
    assert Request("PLAY", "rtsp://me:secret@127.0.0.1:8554/cam1/", {}).path == "cam1"
    assert Request("OPTIONS", "*", {}).path == "*"


def test_the_digest_of_the_standards_own_example() -> None:
    given = {
        "username": "Mufasa",
        "realm": "testrealm@host.com",
        "nonce": "dcd98b7102dd2f0e8b11d0f600bfb0c093",
        "uri": "/dir/index.html",
        "qop": "auth",
        "nc": "00000001",
        "cnonce": "0a4f113b",
    }
    assert digest_response(given, "GET", "Circle Of Life") == "6629fae49393a05397450978507c4ef1"


def digest_header(password: str, method: str = "DESCRIBE", nonce: str = "n1", user: str = "me") -> str:
    given = {"username": user, "realm": "r", "nonce": nonce, "uri": "rtsp://127.0.0.1/cam1"}
    response = digest_response(given, method, password)
    return "Digest " + ", ".join(f'{name}="{value}"' for name, value in {**given, "response": response}.items())


@pytest.mark.parametrize(
    ("header", "let_in"),
    [
        (digest_header("secret"), True),
        (digest_header("wrong"), False),
        (digest_header("secret", method="PLAY"), False),
        (digest_header("secret", nonce="n2"), False),
        (digest_header("secret", user="you"), False),
        ("Basic " + base64.b64encode(b"me:secret").decode(), False),
        ("", False),
    ],
)
def test_a_digest_lets_in_who_knows_the_password(header: str, let_in: bool) -> None:
    assert is_authorised("digest", header, "DESCRIBE", "n1", ("me", "secret")) is let_in


@pytest.mark.parametrize(("account", "let_in"), [("me:secret", True), ("me:wrong", False), ("you:secret", False)])
def test_basic_lets_in_who_says_the_password(account: str, let_in: bool) -> None:
    header = "Basic " + base64.b64encode(account.encode()).decode()
    assert is_authorised("basic", header, "DESCRIBE", "", ("me", "secret")) is let_in


def test_who_is_asked_for_nothing_is_let_in() -> None:
    assert is_authorised("none", "", "DESCRIBE", "", ("me", "secret"))


def test_challenges_name_their_scheme() -> None:
    assert challenge("basic", "r", "n") == 'Basic realm="r"'
    assert challenge("digest", "r", "n") == 'Digest realm="r", nonce="n", stale="FALSE"'


def test_the_last_packet_of_a_picture_carries_the_marker() -> None:
    packets = rtp_packets((b"a", b"b"), 0x1FFFF, 5, 9)
    heads = [struct.unpack_from("!BBHII", packet) for packet in packets]
    assert heads == [(0x80, 96, 0xFFFF, 5, 9), (0x80, 96 | 128, 0, 5, 9)]
    assert [packet[12:] for packet in packets] == [b"a", b"b"]


def test_packets_inside_a_connection_say_channel_and_length() -> None:
    assert interleaved((b"ab", b"c"), 2) == b"$\x02\x00\x02ab$\x02\x00\x01c"


def test_ntp_counts_from_1900() -> None:
    assert ntp_of(1_500_000_000) == (2_208_988_801, 1 << 31)


def test_a_sender_report_is_a_whole_compound_packet() -> None:
    packet = sender_report(9, 0, 1 << 32 | 5, 7, 100)
    assert struct.unpack_from("!BBHIIIIII", packet) == (0x80, 200, 6, 9, 2_208_988_800, 0, 5, 7, 100)
    _, kind, words = struct.unpack_from("!BBH", packet, 28)
    assert (kind, len(packet)) == (202, 28 + 4 + 4 * words)
