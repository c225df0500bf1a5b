"""Takes credentials out of what people see: the one place that decides what of an address may be shown.

    rtsp://viewer:secret@10.0.0.11:554/main?token=secret   ->   rtsp://***@10.0.0.11:554/main?***

People write passwords with `/ @ # ? ' "` in them without encoding, and leave out the host. Where it is not certain
which part of an address is which, only its protocol is shown; rather too little than a secret.
"""

from __future__ import annotations

import re

HIDDEN = "***"

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
# The name of a protocol is as long as any is: a long word without one must not be looked through from each letter.
_ADDRESS = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]{0,30})?://")
# A name, or an address in brackets, then a port; "user:password" is none.
HOST = re.compile(r"(\[[0-9A-Fa-f:.%]*\]|[^\[\]:@]*)(:[0-9]{1,5})?")
SECRET_IN_PATH = re.compile(r"(?i)(user\w*|login|pass\w*|pwd|psw|token|key|secret|auth\w*)=")
_SECRET_IN_QUERY = re.compile(
    r"(?P<head>[?&][^=&\s]*(?:pass|pwd|psw|secret|token|key|auth)[^=&\s]*=)[^&\s]+", re.IGNORECASE
)
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_SPACE = re.compile(r"\s")
# What the text around an address may put behind it.
_BEHIND = "'\"`)]}>,;:.!"


def redact_url(url: str) -> str:
    """An address without what may be secret: credentials, a query, `password=...` in a path.

    Paths of files are returned as they are.
    """
    match = _SCHEME.match(url)
    if match is None:
        return url
    return match.group() + _without_secrets(url[match.end() :])


def redact_urls(text: str) -> str:
    """`text` with each address in it as `redact_url` shows it, wherever it stands: in a traceback, a log, an error.

    An address ends at white space, or, where it would make no sense like that, at the last `@` of its line: a password
    may hold white space. Outside of addresses, what a query calls a password or token goes as well.
    """
    lines = (_redacted_line(line) if "://" in line else line for line in _LINE.findall(text))
    return _SECRET_IN_QUERY.sub(rf"\g<head>{HIDDEN}", "".join(lines))


def cut(text: str, most: int) -> str:
    """The first words of `text`, `most` characters at most: part of a word may be half an address."""
    if len(text) <= most:
        return text
    return text[: max(text.rfind(" ", 0, most), text.rfind("\n", 0, most)) + 1]


def _redacted_line(line: str) -> str:
    parts, at = list[str](), 0
    while (match := _ADDRESS.search(line, at)) is not None:
        end = _end_of_address(line, match.end())
        parts += [line[at : match.end()], _without_secrets(line[match.end() : end])]
        at = end
    return "".join([*parts, line[at:]])


def _end_of_address(line: str, begin: int) -> int:
    """Where the address ends whose part behind the `://` begins there."""
    end = _end_of_word(line, begin)
    last = line.rfind("@", end)
    if last >= 0 and _may_go_on(line[begin:end]):
        end = _end_of_word(line, last)
    return begin + len(line[begin:end].rstrip(_BEHIND))


def _end_of_word(line: str, begin: int) -> int:
    space = _SPACE.search(line, begin)
    return space.start() if space else len(line)


def _may_go_on(word: str) -> bool:
    """Whether white space may be a part of the address: there is no whole host before it."""
    authority, rest = _split(word, "/?#")
    host = authority.rpartition("@")[2].rstrip(_BEHIND)
    return not HOST.fullmatch(host) or (not rest and (not host or ":" in host))


def _without_secrets(address: str) -> str:
    """What stands behind the `://` of an address."""
    authority, rest = _split(address, "/?#")
    _, at, host = authority.rpartition("@")
    if "@" in rest or not HOST.fullmatch(host):
        return HIDDEN
    path, query = _split(rest, "?#")
    secret = SECRET_IN_PATH.search(path)
    if secret is not None:
        path = path[: secret.end()] + HIDDEN
    return (HIDDEN + at if at else "") + host + path + (query[0] + HIDDEN if query else "")


def _split(text: str, marks: str) -> tuple[str, str]:
    """The text up to, and from, the first of these characters."""
    end = min((text.index(mark) for mark in marks if mark in text), default=len(text))
    return text[:end], text[end:]
