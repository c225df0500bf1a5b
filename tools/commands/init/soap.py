"""SOAP as ONVIF speaks it: what is sent, and answers that nobody has to trust. All reads and all texts are bounded."""

from __future__ import annotations

import base64
import hashlib
import http.client
import os
import socket
import threading
import time
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from urllib.parse import urlsplit
from xml.sax.saxutils import escape

from camgraph.pipeline.system import happy_eyeballs

MOST_BYTES = 256 * 1024
MOST_LETTERS = 2048
"""Of one text in an answer."""
CALL_S = 4.0
_ENVELOPE = (
    '<?xml version="1.0" encoding="utf-8"?>'
    '<s:Envelope xmlns:s="http://www.w3.org/2003/05/soap-envelope" '
    'xmlns:a="http://schemas.xmlsoap.org/ws/2004/08/addressing"><s:Header>{head}</s:Header><s:Body>{body}</s:Body>'
    "</s:Envelope>"
)
_SECURITY = (
    '<w:Security xmlns:w="http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-secext-1.0.xsd" '
    'xmlns:u="http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-utility-1.0.xsd" '
    's:mustUnderstand="1"><w:UsernameToken><w:Username>{user}</w:Username>'
    '<w:Password Type="http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-username-token-profile-1.0'
    '#PasswordDigest">{digest}</w:Password>'
    '<w:Nonce EncodingType="http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-soap-message-security-1.0'
    '#Base64Binary">{nonce}</w:Nonce><u:Created>{created}</u:Created></w:UsernameToken></w:Security>'
)


class SoapProblem(Exception):
    """The other side gave no usable answer; its text says why, and quotes nothing of it."""


class Login(NamedTuple):
    """`ahead`: how far the clock of the camera is ahead of ours, for it refuses tokens that look old."""

    user: str
    password: str
    ahead: timedelta = timedelta()


class _Refusing(ET.TreeBuilder):
    """No document types, and so no entities: a short answer must not become a long one."""

    def doctype(self, name: str, pubid: str | None, system: str | None) -> None:
        raise SoapProblem("its answer has a document type, which SOAP forbids")


def envelope(body: str, head: str = "") -> bytes:
    """A message with this body, which is XML already."""
    return _ENVELOPE.format(head=head, body=body).encode()


def parsed(answer: bytes) -> ET.Element:
    """The root of an answer. Raises SoapProblem."""
    if len(answer) > MOST_BYTES:
        raise SoapProblem("its answer is too long")
    try:
        parser = ET.XMLParser(target=_Refusing())  # noqa: S314 - it refuses what would be dangerous
        parser.feed(answer)
        root: ET.Element = parser.close()
    except (ET.ParseError, LookupError, ValueError):
        raise SoapProblem("its answer is no XML") from None
    return root


def texts(root: ET.Element, name: str) -> Iterator[str]:
    """The texts of all elements of this name, in any namespace, cut at `MOST_LETTERS`."""
    for element in root.iter():
        if isinstance(element.tag, str) and element.tag.rpartition("}")[2] == name:
            yield (element.text or "").strip()[:MOST_LETTERS]


def first(root: ET.Element, name: str) -> str:
    """The first of them; "" if there is none."""
    return next(texts(root, name), "")


def _time_there(login: Login) -> datetime:
    """By the clock of the camera, which may be set to the last or first moment that Python knows."""
    try:
        return datetime.now(UTC) + login.ahead
    except OverflowError:
        return (datetime.max if login.ahead > timedelta() else datetime.min).replace(tzinfo=UTC)


def security(login: Login) -> str:
    """The header that proves a password without sending it (WS-UsernameToken, digest)."""
    nonce = os.urandom(16)
    created = f"{_time_there(login).replace(tzinfo=None).isoformat('T', 'seconds')}.000Z"
    digest = hashlib.sha1(nonce + created.encode() + login.password.encode()).digest()  # noqa: S324 - as ONVIF wants it
    return _SECURITY.format(
        user=escape(login.user),
        digest=base64.b64encode(digest).decode(),
        nonce=base64.b64encode(nonce).decode(),
        created=created,
    )


def call(address: str, body: str, login: Login | None = None, within_s: float = CALL_S) -> tuple[int, ET.Element]:
    """Post it, and return the status and the answer. No proxy, no redirect, and never longer than `within_s`.

    Raises SoapProblem.
    """
    message = envelope(body, security(login) if login else "")
    none = SoapProblem(f"it gave no answer to ONVIF within {within_s:g} s")
    late = time.monotonic() + within_s
    try:
        with _connected(address, within_s) as (connection, path):
            head = {"Content-Type": "application/soap+xml; charset=utf-8", "Connection": "close"}
            connection.request("POST", path, message, head)
            answer = connection.getresponse()
            content = answer.read(MOST_BYTES + 1)
    except (OSError, http.client.HTTPException, ValueError, AttributeError):
        # A socket that the clock has shut down ends in whichever of these the library was at.
        raise none from None
    if time.monotonic() >= late:  # the clock has cut it
        raise none
    return answer.status, parsed(content)


@contextmanager
def _connected(address: str, within_s: float) -> Iterator[tuple[http.client.HTTPConnection, str]]:
    """Each read may take its time-out; the clock ends the connection if all of them together take too long."""
    parts = urlsplit(address)
    host, port = parts.hostname or "", parts.port or 80
    with closing(http.client.HTTPConnection(host, port, timeout=within_s)) as connection:
        connection.sock = socket_ = happy_eyeballs.connect(host, port, time.monotonic() + within_s)
        socket_.settimeout(within_s)
        clock = threading.Timer(within_s, _shut, [socket_])
        clock.start()
        try:
            yield connection, (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        finally:
            clock.cancel()


def _shut(one: socket.socket) -> None:
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
