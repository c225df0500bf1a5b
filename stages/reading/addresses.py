"""What the address of a camera is, and how it may be shown."""

from __future__ import annotations

import re

HIDDEN = "***"
FILE_SCHEME = "file://"

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
# A name, or an address in brackets, then a port; "user:password" is none.
_HOST = re.compile(r"(\[[0-9A-Fa-f:.%]*\]|[^\[\]:@]*)(:[0-9]{0,5})?")
_SECRET_IN_PATH = re.compile(r"(?i)(user\w*|login|pass\w*|pwd|psw|token|key|secret|auth\w*)=")


def is_live(url: str) -> bool:
    """Whether the address is of something that sends by itself: any `scheme://` but file, or a video device."""
    return is_device(url) or (_SCHEME.match(url) is not None and not url.lower().startswith(FILE_SCHEME))


def is_device(url: str) -> bool:
    """A camera of this machine, by Video4Linux."""
    return url.startswith("/dev/video")


def file_of(url: str) -> str:
    """The path in the address of a file: without `file://`, where it has that."""
    return url[len(FILE_SCHEME) :] if url.lower().startswith(FILE_SCHEME) else url


def redact_url(url: str) -> str:
    """The address without what may be secret: credentials, a query, `password=...` in a path.

    People write passwords with `/`, `@`, `#` and `?` in them without encoding: where it is not certain which part is
    which, only the scheme is shown. Paths of files are returned as they are.
    """
    match = _SCHEME.match(url)
    if match is None:
        return url
    authority, rest = _cut(url[match.end() :], "/?#")
    _, at, host = authority.rpartition("@")
    if "@" in rest or not _HOST.fullmatch(host):
        return match.group() + HIDDEN
    path, query = _cut(rest, "?#")
    secret = _SECRET_IN_PATH.search(path)
    if secret is not None:
        path = path[: secret.end()] + HIDDEN
    return match.group() + (HIDDEN + at if at else "") + host + path + (query[0] + HIDDEN if query else "")


def _cut(text: str, marks: str) -> tuple[str, str]:
    """The text up to, and from, the first of these characters."""
    end = min((text.index(mark) for mark in marks if mark in text), default=len(text))
    return text[:end], text[end:]
