"""RTSP messages (RFC 2326) as values: requests out of bytes, responses into bytes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

REASONS = {
    200: "OK",
    400: "Bad Request",
    401: "Unauthorized",
    404: "Not Found",
    454: "Session Not Found",
    455: "Method Not Valid in This State",
    461: "Unsupported Transport",
    501: "Not Implemented",
    503: "Service Unavailable",
}
_MAX_HEAD = 16_384


@dataclass(frozen=True, slots=True)
class Request:
    """One request; the names of headers are in lower case, a body is read over."""

    method: str
    url: str
    headers: Mapping[str, str]

    @property
    def path(self) -> str:
        """The path behind host and port, without slashes at its ends: `cam1/track0`."""
        return re.sub(r"^rtsp://[^/]*", "", self.url, flags=re.IGNORECASE).partition("?")[0].strip("/")


@dataclass(frozen=True, slots=True)
class Response:
    """One response; `encode` adds the headers that all of them carry."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str = ""

    def encode(self, cseq: str) -> bytes:
        """The bytes of the response to the request with that CSeq."""
        lines = [f"RTSP/1.0 {self.status} {REASONS[self.status]}", f"CSeq: {cseq}", "Server: camgraph farm"]
        lines += [f"{name}: {value}" for name, value in self.headers.items()]
        if self.body:
            lines.append(f"Content-Length: {len(self.body.encode())}")
        return "\r\n".join([*lines, "", self.body]).encode()


@dataclass(frozen=True, slots=True)
class Transport:
    """How a client wants its packets: the two channels of its connection, or its two UDP ports."""

    kind: Literal["tcp", "udp"]
    first: int
    second: int


class RequestReader:
    """Splits a stream of bytes into requests; other data of clients (receiver reports) is skipped."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def feed(self, received: bytes) -> Iterator[Request]:
        """The requests that are complete now. Raises ValueError if they are none."""
        self._bytes += received
        while self._skip_interleaved() and (request := self._next()) is not None:
            yield request

    def _skip_interleaved(self) -> bool:
        """Whether a request may begin at the first byte."""
        while self._bytes[:1] == b"$":
            if len(self._bytes) < 4 or len(self._bytes) < (end := 4 + int.from_bytes(self._bytes[2:4], "big")):
                return False
            del self._bytes[:end]
        return bool(self._bytes)

    def _next(self) -> Request | None:
        head, end, _ = self._bytes.partition(b"\r\n\r\n")
        if not end:
            if len(head) > _MAX_HEAD:
                raise ValueError(f"a request of more than {_MAX_HEAD} bytes")
            return None
        request = _request_of(head.decode("utf-8", "replace"))
        total = len(head) + 4 + int(request.headers.get("content-length", "0"))
        if len(self._bytes) < total:
            return None
        del self._bytes[:total]
        return request


def _request_of(head: str) -> Request:
    first, *rest = head.strip().split("\r\n")
    words = first.split()
    if len(words) != 3:
        raise ValueError(f"expected a method, a URL and a version, got {len(words)} words")
    headers = (line.partition(":") for line in rest)
    return Request(words[0].upper(), words[1], {name.strip().lower(): value.strip() for name, _, value in headers})


def transport_of(header: str) -> Transport | None:
    """The first of the offered transports that the simulator has; None if it has none of them.

    Raises ValueError for channels and ports that there cannot be.
    """
    for offer in header.split(","):
        parameters = dict(part.strip().lower().partition("=")[::2] for part in offer.split(";"))
        if "multicast" in parameters:
            continue
        if "rtp/avp/tcp" in parameters:
            return Transport("tcp", *_pair(parameters.get("interleaved", "0-1"), 255))
        if ("rtp/avp" in parameters or "rtp/avp/udp" in parameters) and "client_port" in parameters:
            return Transport("udp", *_pair(parameters["client_port"], 65_535))
    return None


def _pair(text: str, most: int) -> tuple[int, int]:
    begin, _, end = text.partition("-")
    first, second = int(begin), int(end) if end else int(begin) + 1
    if not 0 <= first <= most or not 0 <= second <= most:
        raise ValueError(f"expected two numbers up to {most}, got {text}")
    return first, second
