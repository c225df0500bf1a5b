"""Takes credentials out of texts for people: the one place that decides which part of an address may be shown.

    rtsp://viewer:secret@10.0.0.11:554/main?token=secret   ->   rtsp://***@10.0.0.11:554/main?***

People write passwords with `/ @ # ? ' "` in them without encoding, and leave out the host. If the parts of an address
are ambiguous, only its protocol is shown: better too little than a secret. In a path, the text behind `name:` or
`password=` is hidden, because cameras take credentials there as well:

    http://10.0.0.12/cgi/admin:secret/video            ->   http://10.0.0.12/cgi/admin:***/video

So is a part of a camera's path that looks like a key (letters of both cases and digits, twelve or more):

    rtsps://10.0.0.12:7441/BlvHDJVeqeh8oNa9            ->   rtsps://10.0.0.12:7441/***

Values that are known to be secret (`hide`) are hidden in every text, in an address or not.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator
from urllib.parse import quote, quote_plus

from camgraph.pipeline.foreign_text import shown

HIDDEN = "***"

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
# As `Path` writes an address: with one slash.
_ADDRESS_AS_PATH = re.compile(r"(?P<head>(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]{0,30}:/)[^/\s]*:[^/\s]*@")
# The name of a protocol is as long as any is: a long word without one must not be looked through from each letter.
_ADDRESS = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]{0,30})?://")
# A name, or an address in brackets, then a port; "user:password" is none.
HOST = re.compile(r"(\[[0-9A-Fa-f:.%]*(?:%[A-Za-z0-9._~-]+)?\]|[^\[\]:@]*)(:[0-9]{1,5})?")
SECRET_IN_PATH = re.compile(r"(?i)(user\w*|login|pass\w*|pwd|psw|token|key|secret|auth\w*)=")
_SECRET_IN_QUERY = re.compile(
    r"(?P<head>[?&][^=&?\s]{0,200}?(?:pass|pwd|psw|secret|token|key|auth)[^=&?\s]{0,200}=)[^&\s]+", re.IGNORECASE
)
_SECRET_SEGMENT = re.compile(r"(?i)(?<=/)([^/:]*?(?::|%3a))[^/]+")
# rtsps://10.0.0.12:7441/BlvHDJVeqeh8oNa9: whoever knows such a path needs no password. Names seldom look so.
_KEY_AS_PATH = re.compile(r"(?<=/)(?=[^/]*[a-z])(?=[^/]*[A-Z])(?=[^/]*[0-9])[A-Za-z0-9]{12,}(?=/|$)")
_STREAM = re.compile(r"(?i)(?:rtsp|rtmp|srt)")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_SPACE = re.compile(r"\s")
_CALLED_SECRET = re.compile(
    r"(?i)(?:^|_)[a-z0-9]*(?:pass|passwd|password|passphrase|pwd|psw|pw|pin|secret|token|key|auth|credentials?)[0-9]*(?:_|$)"
)
# As messages name the form that they expect.
_PLACEHOLDER = re.compile(r"HOST(?::PORT|\[:PORT\])(?:\[?/[A-Z]+\]?)?(?=[,;:.)`'\"]*(?:\s|$))")
# Characters that the text around an address may put behind it.
_BEHIND = "'\"`)]}>,;:.!"


_LEAST = 4
"""Shorter values are not looked for: they occur everywhere."""
LONGEST_SECRET = 4096
"""A longer one that is cut in two may be shown in part."""
_LEAST_IN_BASE64 = 6
"""Fewer letters of base64 are not looked for: a value of five bytes has so many."""
_ENCODED = re.compile(r"%[0-9A-F]{2}")
_known: set[str] = set()
_any_known: re.Pattern[str] | None = None


def hide(values: Iterable[str]) -> None:
    """Hide these values from now on in all texts of this process, also percent-encoded, in base64, or as Python or JSON
    write them.

    Values of fewer than four characters are hidden only if an address marks them as secret.
    """
    global _any_known  # noqa: PLW0603 - one for all texts of the process
    new = {spelling for value in values if len(value) >= _LEAST for spelling in spellings(value)} - _known
    if new:
        _known.update(new)
        _any_known = re.compile("|".join(re.escape(one) for one in sorted(_known, key=len, reverse=True)))


def holds_secret(text: str) -> bool:
    """Whether a value that is known to be secret stands in it."""
    return _any_known is not None and _any_known.search(text) is not None


def spellings(value: str) -> set[str]:
    """The forms in which a value may appear in messages of libraries."""
    encoded = {quote(value, safe=""), quote(value), quote_plus(value)}
    encoded |= {_ENCODED.sub(lambda match: match.group().lower(), one) for one in encoded}
    as_json = {json.dumps(value, ensure_ascii=plain)[1:-1] for plain in (False, True)}
    return {value, *encoded, repr(value)[1:-1], *as_json, *_in_base64(value)} - {""}


def _in_base64(value: str) -> Iterator[str]:
    """The letters that are the value's alone, behind any number of other bytes: as in `Basic`, base64 of `user:value`.

    Of the first and the last letter, a part of the bits may belong to the neighbours: these stay.
    """
    data = value.encode(errors="backslashreplace")
    for before, begin in enumerate((0, 2, 3)):
        text = b64encode(bytes(before) + data).decode()[begin : (before + len(data)) * 8 // 6]
        if len(text) >= _LEAST_IN_BASE64:
            yield text
            yield text.translate(_URL_SAFE)


_URL_SAFE = str.maketrans("+/", "-_")


def is_called_secret(name: str) -> bool:
    """Whether a variable's value is secret, by its name."""
    return _CALLED_SECRET.search(name) is not None


def redact_url(url: str) -> str:
    """An address without possible secrets: credentials, a query, `password=...` and `name:...` in a path.

    Paths of files are returned as they are.
    """
    url = _without_known(url)
    match = _SCHEME.match(url)
    if match is None:
        return url
    return match.group() + _without_secrets(url[match.end() :], match.group())


def redact_urls(text: str) -> str:
    """`text` with each address in it as `redact_url` shows it, wherever it stands: in a traceback, a log, an error.

    Values that are known to be secret go as well. An address ends at white space or, if it would make no sense like
    that, at the last `@` of its line: a password may hold white space. Outside of addresses, passwords and tokens of
    queries go as well.
    """
    text = _without_known(text)
    lines = (_redacted_line(line) if "://" in line else line for line in _LINE.findall(text))
    whole = _ADDRESS_AS_PATH.sub(rf"\g<head>{HIDDEN}@", "".join(lines))
    return _SECRET_IN_QUERY.sub(rf"\g<head>{HIDDEN}", whole)


def _without_known(text: str) -> str:
    return _any_known.sub(HIDDEN, text) if _any_known else text


def redacted_beginning(text: str, most: int) -> str:
    """As `redact_urls`, but at most `most` characters of the text, and looks at no more than are needed for that.

    Hidden before it is cut: otherwise half of a password would be shown, because the other half is not recognised.
    """
    if len(text) <= most:
        return redact_urls(text)
    whole = len(text) <= most + LONGEST_SECRET
    return (redact_urls(text) if whole else redact_urls(text[: most + LONGEST_SECRET])[:-LONGEST_SECRET])[:most]


def redacted_end(text: str, most: int) -> str:
    """Likewise, with the last characters."""
    if len(text) <= most:
        return redact_urls(text)
    whole = len(text) <= most + LONGEST_SECRET
    hidden = redact_urls(text) if whole else redact_urls(text[-most - LONGEST_SECRET :])[LONGEST_SECRET:]
    return hidden[-most:] if most else ""


def redacted_line(text: str, most: int) -> str:
    """What others wrote, as one line of at most so many letters: `shown`, with secrets hidden before it is cut."""
    if len(text) <= most:
        return shown(redact_urls(text))
    return f"{shown(redacted_beginning(text, most))}..."


def _redacted_line(line: str) -> str:
    parts, at = list[str](), 0
    while (match := _ADDRESS.search(line, at)) is not None:
        placeholder = _PLACEHOLDER.match(line, match.end())
        end = placeholder.end() if placeholder else _end_of_address(line, match.end())
        address = line[match.end() : end]
        shown_one = address if placeholder else _without_secrets(address, match.group())
        parts += [line[at : match.end()], shown_one]
        at = end
    return "".join([*parts, line[at:]])


def _end_of_address(line: str, begin: int) -> int:
    """The end of the address whose part behind the `://` begins there."""
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


def _without_secrets(address: str, scheme: str) -> str:
    """The part behind the `://` of an address; `scheme` is the part before it."""
    authority, rest = _split(address, "/?#")
    _, at, host = authority.rpartition("@")
    if "@" in rest or not HOST.fullmatch(host):
        return HIDDEN
    path, query = _split(rest, "?#")
    secret = SECRET_IN_PATH.search(path)
    if secret is not None:
        path = path[: secret.end()] + HIDDEN
    path = _SECRET_SEGMENT.sub(rf"\g<1>{HIDDEN}", path)
    if _STREAM.match(scheme):
        path = _KEY_AS_PATH.sub(HIDDEN, path)
    return (HIDDEN + at if at else "") + host + path + (query[0] + HIDDEN if query else "")


def _split(text: str, marks: str) -> tuple[str, str]:
    """The text up to, and from, the first of these characters."""
    end = min((text.index(mark) for mark in marks if mark in text), default=len(text))
    return text[:end], text[end:]
