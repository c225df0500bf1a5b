"""`${NAME}` in the strings of a graph file.

rtsp://viewer:${PASSWORD}@10.0.0.11/main    in the user part of a URL the value is percent-encoded
${CAMERA_URL}                               elsewhere it is taken as it is
$${NAME}                                    the text ${NAME}
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import quote

_TOKEN = re.compile(r"\$\$\{|\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)\}|\$\{")
_USER_PART = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://(?P<user>[^\s/?#]*)@")


@dataclass(frozen=True, slots=True)
class Substituted:
    """A string after substitution. `secrets`: every value that was put in -> the `${NAME}` to show in its place."""

    text: str
    secrets: Mapping[str, str]
    problems: tuple[str, ...]


def substitute(text: str, environ: Mapping[str, str]) -> Substituted:
    """Put variables in. One that is missing or misspelt is a problem, and stays in the text as it stands."""
    user_parts = [match.span("user") for match in _USER_PART.finditer(text)]
    pieces: list[str] = []
    secrets: dict[str, str] = {}
    problems: list[str] = []
    end = 0
    for token in _TOKEN.finditer(text):
        pieces.append(text[end : token.start()])
        end = token.end()
        if token[0] == "$${":
            pieces.append("${")
            continue
        problem = _problem(token["name"], environ)
        if problem:
            problems.append(problem)
            pieces.append(token[0])
            continue
        value = environ[token["name"]]
        encoded = any(start <= token.start() < stop for start, stop in user_parts)
        pieces.append(quote(value, safe="") if encoded else value)
        secrets.update(dict.fromkeys(_spellings(value), token[0]))
    return Substituted("".join([*pieces, text[end:]]), secrets, tuple(problems))


def _problem(name: str | None, environ: Mapping[str, str]) -> str:
    if name is None:
        return "`${` without a name and `}`: expected ${NAME}; write $${ for the characters themselves"
    if name not in environ:
        return f"the environment variable {name} is not set: set it, or write $${{{name}}} for the text itself"
    if not environ[name].isprintable() or not _is_unicode(environ[name]):
        return f"the environment variable {name} holds characters that are no text: expected printable UTF-8"
    return ""


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _spellings(value: str) -> Iterator[str]:
    """The ways in which a value may turn up in the message of somebody else's code."""
    if value:
        yield from {value, quote(value, safe=""), quote(value), repr(value)[1:-1]}
