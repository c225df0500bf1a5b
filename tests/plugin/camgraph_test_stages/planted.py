"""Secrets that are planted, looked for, and repeated by other sides, for tests that nothing discloses them.

Each secret is made of two words that occur nowhere else, with characters around them that every encoding changes. The
words are looked for as they are, in base64 (at each of its three alignments) and in hexadecimal: so a part of a secret
is found as well, and any encoding that keeps letters and digits.
"""

from __future__ import annotations

import base64
import re
import secrets
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

WORDS = 12
"""Letters of a word: none of them is found by chance."""


def word() -> str:
    return secrets.token_hex(WORDS // 2)


class Planted:
    """Secrets by name, and the texts that show that one was disclosed."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self._forms: dict[bytes, str] = {}

    def plant(self, name: str, between: str = "/@ +%") -> str:
        """Make a secret, and return how a graph names it."""
        words = word(), word()
        return self.plant_value(name, f"{words[0]}{between}{words[1]}", *words)

    def plant_value(self, name: str, value: str, *parts: str) -> str:
        """Likewise for a secret that has a form of its own; `parts` of it are looked for."""
        self.values[name] = value
        self.look_for(name, *parts)
        return f"${{secret:{name}}}"

    def look_for(self, name: str, *parts: str) -> None:
        for part in parts:
            for form in forms(part.encode()):
                self._forms[form] = name

    def found_in(self, data: bytes) -> set[str]:
        """The names of the secrets that are disclosed there."""
        lower = data.lower()
        return {name for form, name in self._forms.items() if form in data or form.lower() in lower}


def forms(part: bytes) -> Iterator[bytes]:
    """As it is, in hexadecimal, and in base64 behind any number of other bytes, without the letters they share."""
    yield part
    yield part.hex().encode()
    for before in range(3):
        text = base64.b64encode(b"x" * before + part)
        yield text[(0, 2, 3)[before] : (before + len(part)) * 8 // 6]


# ---- other sides that repeat what they are told

Reply = Callable[[bytes], bytes]


def one_line(told: bytes) -> bytes:
    return b" ".join(told.split())


def as_camera(told: bytes) -> bytes:
    if b"\r\n\r\n" not in told:
        return b""
    number = re.search(rb"CSeq: *(\d+)", told)
    return b'RTSP/1.0 401 %s\r\nCSeq: %s\r\nWWW-Authenticate: Basic realm="x"\r\n\r\n' % (
        one_line(told) + b" " + b" ".join(decoded(told)),
        number.group(1) if number else b"1",
    )


def decoded(told: bytes) -> Iterator[bytes]:
    """What stands there in base64."""
    for text in re.findall(rb"[A-Za-z0-9+/=]{16,}", told):
        with suppress(ValueError):
            yield re.sub(rb"[^ -~]", b" ", base64.b64decode(text))


@contextmanager
def parrot(reply: Reply, greeting: bytes = b"") -> Iterator[tuple[int, list[bytes]]]:
    """A server on loopback: its port, and all that it was told."""
    told: list[bytes] = []

    def talk(stream: socket.socket) -> None:
        with stream, suppress(OSError):
            stream.settimeout(20)
            stream.sendall(greeting)
            while data := stream.recv(65536):
                told.append(data)
                stream.sendall(reply(data))

    def serve() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=talk, args=(server.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1], told
        server.shutdown(socket.SHUT_RDWR)


# ---- what a run tells


def descendants(pid: int) -> list[int]:
    found = []
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                found += [int(child), *descendants(int(child))]
    return found


def told_by_the_system(run: int) -> Iterator[tuple[str, bytes]]:
    """Of all processes what others may read of them; of what camgraph starts, also the environment at its start."""
    own = Path(f"/proc/{run}/cmdline").read_bytes()
    for pid in (run, *descendants(run)):
        with suppress(OSError):
            line = Path(f"/proc/{pid}/cmdline").read_bytes()
            yield f"cmdline of {pid}", line
            yield f"comm of {pid}", Path(f"/proc/{pid}/comm").read_bytes()
            if line != own:  # the process that was started, and its fork for the screen: they have what they were given
                yield f"environ of {pid}: {line.decode()}", Path(f"/proc/{pid}/environ").read_bytes()
