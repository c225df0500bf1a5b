"""The names that a graph, a run, a stage, a port and a camera may have.

Names become parts of paths and addresses, so they are ASCII. Only cameras (and rules, whose ids occur in events alone)
may be named in any script, as people name places. If a camera's name becomes part of a path or an address, its
`ascii_form` stands for it.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterable
from contextlib import suppress
from hashlib import sha256

NAME_PATTERN = r"^[A-Za-z0-9_][A-Za-z0-9_-]*$"
MAX_NAME = 40
"""With it the address of a process's socket still is shorter than the 107 characters that a socket's may have."""
A_NAME = f"a name of letters, digits, `_` and `-` (at most {MAX_NAME} characters)"
MAX_CAMERA_BYTES = 120
"""Of a camera's name in UTF-8."""
A_CAMERA_NAME = (
    f"a name of letters of any script, digits, `_` and `-` (at most {MAX_NAME} characters and {MAX_CAMERA_BYTES} bytes)"
)
ANY_SCRIPT_PATTERN = (
    r"^[^\u0000-\u002f\u003a-\u0040\u005b-\u005e\u0060\u007b-\u00a0]"
    r"[^\u0000-\u002c\u002e\u002f\u003a-\u0040\u005b-\u005e\u0060\u007b-\u00a0]*$"
)
"""For editors: it refuses the blanks and signs of ASCII. Classes of letters are written otherwise in each language."""
_HASH_DIGITS = 6


def nearest_name(text: str) -> str:
    """The name that comes nearest to a text: `Eingang Süd` becomes `Eingang-Sud`; "" if nothing is left."""
    plain = "".join(c for c in unicodedata.normalize("NFKD", text[: 4 * MAX_NAME]) if not unicodedata.combining(c))
    return re.sub(r"[^A-Za-z0-9_]+", "-", plain).strip("-")[:MAX_NAME].strip("-")


def is_name(text: str) -> bool:
    """Whether something may be called so."""
    return len(text) <= MAX_NAME and re.fullmatch(NAME_PATTERN, text) is not None


def nfc(text: str) -> str:
    """The composed form of a text: `u` with a diaeresis behind it becomes `ü`, as most keyboards write it."""
    return unicodedata.normalize("NFC", text)


def is_of_any_script(text: str) -> bool:
    """Whether it is letters, marks and digits of any script, `_` and `-`, in composed form, and begins as a name."""
    return (
        len(text) > 0
        and all(_is_of_name(letter) for letter in text)
        and _may_begin(text[0])
        and unicodedata.is_normalized("NFC", text)
    )


def is_camera_name(text: str) -> bool:
    """Whether a camera may be called so."""
    return len(text) <= MAX_NAME and is_of_any_script(text) and len(text.encode()) <= MAX_CAMERA_BYTES


def nearest_camera_name(text: str) -> str:
    """The camera name that comes nearest to a text: `Eingang Süd` becomes `Eingang-Süd`; "" if nothing is left."""
    spaced = "".join(letter if _is_of_name(letter) else " " for letter in nfc(text[: 4 * MAX_NAME]))
    name = "-".join(spaced.split())
    while name and not _may_begin(name[0]):
        name = name[1:]
    name = name[:MAX_NAME].encode()[:MAX_CAMERA_BYTES].decode(errors="ignore").rstrip("-")
    return name if is_camera_name(name) else ""


def ascii_form(camera: str) -> str:
    """A camera's name for paths and addresses: itself if it is ASCII, else its nearest one and digits of its hash.

        front -> front      Süd -> Sud-be833b      入口 -> 1a7930

    Never longer than a name may be. `twin_of` finds the cameras that would share one.
    """
    if camera.isascii():
        return camera
    name = nfc(camera)
    digits = sha256(name.encode(errors="surrogatepass")).hexdigest()[:_HASH_DIGITS]
    near = nearest_name(name)[: MAX_NAME - _HASH_DIGITS - 1].strip("-")
    return f"{near}-{digits}" if near else digits


def twin_of(camera: str, others: Iterable[str]) -> str | None:
    """Another camera with the same `ascii_form`; the two would share paths and addresses."""
    form = ascii_form(camera)
    return next((other for other in others if other != camera and ascii_form(other) == form), None)


def _is_of_name(letter: str) -> bool:
    category = unicodedata.category(letter)
    return category[0] in "LM" or category == "Nd" or letter in "_-"


def _may_begin(letter: str) -> bool:
    category = unicodedata.category(letter)
    return category[0] == "L" or category == "Nd" or letter == "_"


def own_user() -> int:
    """Return the number of the user of this process; 0 on Windows, where users have no numbers."""
    return os.getuid() if hasattr(os, "getuid") else 0


def user_name(uid: int) -> str:
    """A user of this machine in messages: "cam (1000)"; "user 1000" if that has no name."""
    import pwd  # noqa: PLC0415 - there is none on Windows

    with suppress(KeyError):
        return f"{pwd.getpwuid(uid).pw_name} ({uid})"
    return f"user {uid}"
