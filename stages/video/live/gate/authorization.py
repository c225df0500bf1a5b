"""Answers the challenges of cameras: Basic (RFC 7617) and Digest (RFC 7616), over HTTP and RTSP alike."""

from __future__ import annotations

import hashlib
import re
import secrets
import threading
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping

from camgraph.pipeline.foreign_text import shown
from camgraph.stages.video.live.gate.origins import Login

_SCHEME = re.compile(r"(?:^|,)\s*(Basic|Digest)\s+", re.IGNORECASE)
_PARAMETER = re.compile(r'([A-Za-z0-9_-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,]*))')
_MOST_SHOWN = 100
_ESCAPED = re.compile(r"\\(.)")

_SHA_512_256 = "sha512_256"
"""Python has it from OpenSSL, which may be built without."""
_HASHES: Mapping[str, Callable[[bytes], str]] = {
    **(
        {"SHA-512-256": lambda data: hashlib.new(_SHA_512_256, data).hexdigest()}
        if _SHA_512_256 in hashlib.algorithms_available
        else {}
    ),
    "SHA-256": lambda data: hashlib.sha256(data).hexdigest(),
    "MD5": lambda data: hashlib.md5(data, usedforsecurity=False).hexdigest(),
}
"""The better first."""


class Authorization:
    """The credentials sent to one origin, by any thread: none before it has asked.

    ``new_cnonce`` gives a text nobody can guess. No count comes twice with the same nonce: servers call that a replay.
    """

    def __init__(self, login: Login, new_cnonce: Callable[[], str] = lambda: secrets.token_hex(8)) -> None:
        self._login = login
        self._new_cnonce = new_cnonce
        self._challenge: Mapping[str, str] | None = None
        self._basic = False
        self._count = 0
        """Requests signed with the nonce of the challenge."""
        self._lock = threading.Lock()

    def take(self, headers: Iterable[str]) -> bool:
        """Whether one of these challenges (`WWW-Authenticate`) can be answered; the best is from now on."""
        found = [challenge for header in headers for challenge in _challenges(header)]
        digests = [parameters for scheme, parameters in found if scheme == "digest" and _can_answer(parameters)]
        with self._lock:
            if digests:
                self._answer_from_now_on(min(digests, key=lambda one: list(_HASHES).index(_algorithm(one)[0])))
            self._basic = not digests and any(scheme == "basic" for scheme, _ in found)
            return bool(digests) or self._basic

    def _answer_from_now_on(self, challenge: Mapping[str, str]) -> None:
        if self._challenge is None or self._challenge.get("nonce") != challenge.get("nonce"):
            self._count = 0
        self._challenge = challenge

    def header(self, method: str, uri: str) -> str:
        """The value of `Authorization` for a request, "" before the first challenge."""
        with self._lock:
            is_basic, challenge = self._basic, self._challenge
            self._count += 1
            number = self._count
        if is_basic:
            return "Basic " + b64encode(f"{self._login.user}:{self._login.password}".encode()).decode()
        return self._digest(challenge, number, method, uri) if challenge is not None else ""

    def _digest(self, challenge: Mapping[str, str], number: int, method: str, uri: str) -> str:
        algorithm, is_session = _algorithm(challenge)
        realm, nonce, cnonce = challenge.get("realm", ""), challenge.get("nonce", ""), self._new_cnonce()

        def hashed(*parts: str) -> str:
            return _HASHES[algorithm](":".join(parts).encode())

        secret = hashed(self._login.user, realm, self._login.password)
        if is_session:
            secret = hashed(secret, nonce, cnonce)
        asked = hashed(method, uri)
        count = f"{number:08x}"
        is_hashed = challenge.get("userhash", "").lower() == "true"
        user = hashed(self._login.user, realm) if is_hashed else self._login.user
        fields = {"username": user, "realm": realm, "nonce": nonce, "uri": uri}
        if "qop" in challenge:
            fields["response"] = hashed(secret, nonce, count, cnonce, "auth", asked)
        else:
            fields["response"] = hashed(secret, nonce, asked)
        if "opaque" in challenge:
            fields["opaque"] = challenge["opaque"]
        text = ", ".join(f'{name}="{_quoted(value)}"' for name, value in fields.items())
        if "algorithm" in challenge:
            text += f", algorithm={challenge['algorithm']}"
        if "qop" in challenge:
            text += f', qop=auth, nc={count}, cnonce="{cnonce}"'
        if is_hashed:
            text += ", userhash=true"
        return f"Digest {text}"


def why_not_answered(headers: Iterable[str]) -> str:
    """Why no challenge in these headers (`WWW-Authenticate`) can be answered; "" if one can, or if there is none."""
    challenges = list(headers)
    found = [challenge for header in challenges for challenge in _challenges(header)]
    if not challenges or any(scheme == "basic" or _can_answer(parameters) for scheme, parameters in found):
        return ""
    asked = [f"Digest by {_algorithm(one)[0]} (qop: {one.get('qop', 'auth')})" for _, one in found]
    named = ", ".join(asked or [challenge.split(maxsplit=1)[0] for challenge in challenges if challenge.strip()])
    return (
        f"it asks for a kind of login that camgraph does not know: {shown(named, _MOST_SHOWN)}; choose one in the "
        f"camera: expected Basic, or Digest by {', '.join(_HASHES)}. The user and password of `url` were not sent"
    )


def _challenges(header: str) -> list[tuple[str, dict[str, str]]]:
    """(scheme, parameters) of each in one header."""
    starts = list(_SCHEME.finditer(header))
    ends = [*(start.start() for start in starts), len(header)][1:]
    return [
        (start[1].lower(), {name.lower(): _ESCAPED.sub(r"\1", quoted) or plain for name, quoted, plain in found})
        for start, end in zip(starts, ends, strict=True)
        for found in [_PARAMETER.findall(header[start.end() : end])]
    ]


def _algorithm(challenge: Mapping[str, str]) -> tuple[str, bool]:
    """Its name in capitals, and whether it is the form that hashes once for a session."""
    name = (challenge.get("algorithm") or "MD5").upper()
    return name.removesuffix("-SESS"), name.endswith("-SESS")


def _can_answer(challenge: Mapping[str, str]) -> bool:
    qop = [one.strip().lower() for one in challenge.get("qop", "auth").split(",")]
    return _algorithm(challenge)[0] in _HASHES and "auth" in qop


def _quoted(value: str) -> str:
    """Nothing in it ends the header: a camera chooses realm and nonce."""
    plain = value.replace("\r", "").replace("\n", "")
    return plain.replace("\\", "\\\\").replace('"', '\\"')
