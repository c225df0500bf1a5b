"""Basic and digest authentication of RTSP clients (RFC 2617)."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from typing import Literal

Scheme = Literal["none", "basic", "digest"]

_PARAMETER = re.compile(r'(\w+)=(?:"([^"]*)"|([^\s,]+))')


def challenge(scheme: Scheme, realm: str, nonce: str) -> str:
    """The value of WWW-Authenticate; most cameras send digest: MD5, without `qop`."""
    if scheme == "basic":
        return f'Basic realm="{realm}"'
    return f'Digest realm="{realm}", nonce="{nonce}", stale="FALSE"'


def is_authorised(scheme: Scheme, header: str, method: str, nonce: str, account: tuple[str, str]) -> bool:
    """Whether the Authorization header of a request proves knowledge of ``account`` (user, password)."""
    if scheme == "none":
        return True
    given, _, rest = header.partition(" ")
    if given.lower() != scheme:
        return False
    return _basic(rest, account) if scheme == "basic" else _digest(rest, method, nonce, account)


def _basic(encoded: str, account: tuple[str, str]) -> bool:
    expected = base64.b64encode(":".join(account).encode())
    return hmac.compare_digest(encoded.strip().encode(), expected)


def _digest(parameters: str, method: str, nonce: str, account: tuple[str, str]) -> bool:
    given = {name: quoted or bare for name, quoted, bare in _PARAMETER.findall(parameters)}
    if given.get("nonce") != nonce or given.get("username") != account[0]:
        return False
    expected = digest_response(given, method, account[1])
    return hmac.compare_digest(given.get("response", ""), expected)


def digest_response(given: dict[str, str], method: str, password: str) -> str:
    """The answer of a client that knows the password to its own parameters, in 32 hexadecimal digits."""
    secret = _md5(f"{given.get('username', '')}:{given.get('realm', '')}:{password}")
    asked = _md5(f"{method}:{given.get('uri', '')}")
    middle = [given.get("nonce", "")]
    if given.get("qop"):
        middle += [given.get("nc", ""), given.get("cnonce", ""), given["qop"]]
    return _md5(":".join([secret, *middle, asked]))


def _md5(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
