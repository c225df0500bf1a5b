"""RTSP in pieces: whatever arrives together or apart, the same messages come out, and no byte of media is lost."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camgraph.stages.video.live.gate.rtsp_stream import (
    LEAST_MEDIA,
    MOST_BODY,
    MOST_HEAD,
    Malformed,
    Message,
    Splitter,
)

ANSWER = b"RTSP/1.0 200 OK\r\nCSeq: 3\r\nContent-Length: 4\r\n\r\nv=0\n"
REQUEST = b"GET_PARAMETER rtsp://h/x RTSP/1.0\r\nCSeq: 4\r\n\r\n"
DECEIVING = b"RTSP/1.0 200 OK\r\nCSeq: 5\r\nContent-Length: 12\r\n\r\n$\x00\x00\x04\r\n\r\nRTSP"
"""With a body that looks like the end of a head, or like media."""


def media(size: int) -> bytes:
    return b"$\x00" + size.to_bytes(2, "big") + b"R" * size


def split(pieces: list[bytes]) -> tuple[bytes, list[Message]]:
    splitter, data, messages = Splitter(), b"", list[Message]()
    for piece in pieces:
        for one in splitter.feed(piece):
            if isinstance(one, Message):
                messages.append(one)
            else:
                data += one
    return data, messages


def cut(text: bytes, sizes: list[int]) -> list[bytes]:
    pieces, at = list[bytes](), 0
    while at < len(text):
        size = sizes[len(pieces) % len(sizes)]
        pieces.append(text[at : at + size])
        at += size
    return pieces


MESSAGES = st.sampled_from([ANSWER, REQUEST, DECEIVING])
MEDIA = st.integers(LEAST_MEDIA, 3000).map(media)


@given(st.lists(st.one_of(MESSAGES, MEDIA)), st.lists(st.integers(1, 2000), min_size=1))
def test_however_it_arrives(whole: list[bytes], sizes: list[int]) -> None:
    data, messages = split(cut(b"".join(whole), sizes))
    assert data == b"".join(piece for piece in whole if piece.startswith(b"$"))
    assert [message.to_bytes() for message in messages] == [piece for piece in whole if not piece.startswith(b"$")]


def test_media_is_passed_on_before_it_is_whole() -> None:
    splitter = Splitter()
    assert list(splitter.feed(media(1000)[:100])) == [media(1000)[:100]]
    assert list(splitter.feed(media(1000)[100:])) == [media(1000)[100:]]


@given(st.integers(0, LEAST_MEDIA - 1), st.lists(st.integers(1, 9), min_size=1))
def test_frames_that_ffmpeg_reads_as_text_are_left_out(size: int, sizes: list[int]) -> None:
    """It takes the size of them, finds it too small, and goes on with what is in them."""
    data, messages = split(cut(media(20) + media(size) + ANSWER + media(size) + media(30), sizes))
    assert data == media(20) + media(30)
    assert len(messages) == 1


@given(st.binary(max_size=3000), st.lists(st.integers(1, 500), min_size=1))
def test_nothing_but_whole_frames_is_passed_on_as_media(garbage: bytes, sizes: list[int]) -> None:
    """A reader that takes media by the sizes that it states never meets anything else."""
    splitter, passed = Splitter(), b""
    try:
        for piece in cut(garbage, sizes):
            passed += b"".join(one for one in splitter.feed(piece) if isinstance(one, bytes))
    except Malformed:
        pass
    at = 0
    while at + 4 <= len(passed):
        size = int.from_bytes(passed[at + 2 : at + 4], "big")
        assert passed[at] == ord("$")
        assert size >= LEAST_MEDIA
        at += 4 + size
    assert at >= len(passed)


@pytest.mark.parametrize(
    "text",
    [
        b"HTTP/1.1 302 Found\r\n\r\n",
        b"rtsp/1.0 302 Moved\r\n\r\n",
        b" RTSP/1.0 302 Moved\r\n\r\n",
        b"REDIRECT\r\n\r\n",
        b"REDIRECT rtsp://h/x\r\n\r\n",
        b"\x00",
        b"v=0",
    ],
)
def test_what_is_no_message_is_refused(text: bytes) -> None:
    with pytest.raises(Malformed):
        split([media(100) + text])
    with pytest.raises(Malformed):
        split(cut(media(100) + text, [1]))


def test_line_breaks_between_messages_are_nothing() -> None:
    """Some cameras do not count the last one of a body."""
    data, messages = split([ANSWER + b"\r\n" + ANSWER + b"\r\n\r\n" + media(20) + b"\n" + REQUEST])
    assert [message.to_bytes() for message in messages] == [ANSWER, ANSWER, REQUEST]
    assert data == media(20)


def test_what_a_message_says() -> None:
    [message] = Splitter().feed(ANSWER)
    assert isinstance(message, Message)
    assert (message.is_answer, message.status, message.value("cseq"), message.body) == (True, 200, "3", b"v=0\n")
    message.set("CSeq", "9")
    assert b"CSeq: 9\r\n" in message.to_bytes()
    assert b"CSeq: 3" not in message.to_bytes()


@pytest.mark.parametrize(
    ("first", "status"),
    [
        ("RTSP/1.0 200 OK", 200),
        ("RTSP/1.0 200", 200),
        ("RTSP/1.0 200OK", 200),
        ("RTSP/1.0   302x Moved", 302),
        ("RTSP/1.0\t404 Not Found", 404),
        ("RTSP/2.0 302 Moved", 302),
        ("RTSP/1.0 OK", None),
        ("RTSP/1.0 +302 Moved", None),
        ("RTSP/1.0 3020 Moved", None),
        ("RTSP/1.0", None),
        ("OPTIONS rtsp://h/200 RTSP/1.0", None),
    ],
)
def test_the_status_is_read_as_ffmpeg_reads_it_or_not_at_all(first: str, status: int | None) -> None:
    [message] = Splitter().feed(f"{first}\r\n\r\n".encode())
    assert isinstance(message, Message)
    assert message.status == status


def test_sloppy_heads_are_read() -> None:
    [message] = Splitter().feed(b"RTSP/1.0 200 OK \ncseq:3\n CONTENT-LENGTH :  2\nnothing\n\nab")
    assert isinstance(message, Message)
    assert (message.status, message.value("CSeq"), message.body) == (200, "3", b"ab")


def test_nothing_in_a_header_begins_another() -> None:
    [message] = Splitter().feed(b"RTSP/1.0 200 OK\r\nSession: a\x0bb\x85\x00Location: x\rCSeq: 3\r\n\r\n")
    assert isinstance(message, Message)
    assert [name for name, _ in message.headers] == ["Session"]
    assert message.to_bytes().count(b"\n") == 3


@pytest.mark.parametrize("declared", ["", "0", "4", "0004", "4\r\nContent-Length: 4"])
def test_lengths(declared: str) -> None:
    [message] = Splitter().feed(
        f"RTSP/1.0 200 OK\r\nContent-Length: {declared}\r\n\r\n{'v=0!' if '4' in declared else ''}".encode()
    )
    assert isinstance(message, Message)
    assert message.body == (b"v=0!" if "4" in declared else b"")


@pytest.mark.parametrize("declared", ["+4", "-4", "4x", "0x4", "4 4", "4\r\nContent-Length: 5"])
def test_a_length_that_can_be_read_in_two_ways_is_refused(declared: str) -> None:
    with pytest.raises(Malformed, match="length cannot be read"):
        list(Splitter().feed(f"RTSP/1.0 200 OK\r\nContent-Length: {declared}\r\n\r\n".encode()))


@pytest.mark.parametrize(
    "endless",
    [
        b"RTSP/1.0 200 OK\r\n" + b"X: y\r\n" * MOST_HEAD,
        b"RTSP/1.0 200 OK\r\n" + b"X" * (MOST_HEAD + 1),
        f"RTSP/1.0 200 OK\r\nContent-Length: {MOST_BODY + 1}\r\n\r\n".encode(),
        b"RTSP/1.0 200 OK\r\nContent-Length: 000001073741824\r\n\r\n",
        b"RTSP/1.0 200 OK\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n",
    ],
)
def test_what_no_camera_sends_is_refused(endless: bytes) -> None:
    with pytest.raises(Malformed):
        list(Splitter().feed(endless))


@pytest.mark.slow
def test_single_bytes_cost_no_more_than_their_number() -> None:
    """A copy of what is held, or a search through it, with each byte of a megabyte takes half an hour."""
    size = MOST_BODY
    text = f"RTSP/1.0 200 OK\r\nX: {'y' * (MOST_HEAD // 2)}\r\nContent-Length: {size}\r\n\r\n".encode() + bytes(size)
    splitter, messages, begun = Splitter(), 0, time.process_time()
    for at in range(len(text)):
        messages += len(list(splitter.feed(text[at : at + 1])))
    assert messages == 1
    assert time.process_time() - begun < 60
