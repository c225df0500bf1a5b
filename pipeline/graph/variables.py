"""`${NAME}` in the strings of a graph file.

rtsp://viewer:${PASSWORD}@10.0.0.11/main    in the user part of a URL the value is percent-encoded
${CAMERA_URL}                               elsewhere it is taken as it is
${secret:door}, ${file:/etc/x/password}     from where secrets lie: see `pipeline.graph.secret_files`
$${NAME}                                    the text ${NAME}

A value is secret, and hidden wherever it occurs, if it comes from a secret or a file, if it is a password in a URL, or
if its variable has the name of one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote

from camgraph.pipeline.graph.secret_files import NamedSecret, named_secret, secret_file
from camgraph.pipeline.system.redaction import is_called_secret, spellings

_TOKEN = re.compile(
    r"\$\$\{"
    r"|\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)\}"
    r"|\$\{secret:(?P<secret>[A-Za-z0-9_][A-Za-z0-9_.-]*)\}"
    r"|\$\{file:(?P<file>[^}]+)\}"
    r"|\$\{"
)
_USER_PART = re.compile(r"(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]{0,31}://(?P<user>[^\s/?#]*)@")


@dataclass(frozen=True, slots=True)
class Substituted:
    """A string after substitution. `secrets`: every value that was put in -> the `${NAME}` to show in its place.

    `hidden`: those to hide everywhere. `remarks`: on the files that they came from.
    """

    text: str
    secrets: Mapping[str, str]
    problems: tuple[str, ...]
    hidden: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


def substitute(text: str, environ: Mapping[str, str]) -> Substituted:
    """Fill in the variables. A missing or misspelt one is a problem, and stays in the text."""
    masked = _TOKEN.sub(lambda token: "_" * len(token[0]), text)  # a path in a token is none in the URL
    user_parts = [match.span("user") for match in _USER_PART.finditer(masked)]
    pieces: list[str] = []
    secrets: dict[str, str] = {}
    problems: list[str] = []
    hidden: list[str] = []
    remarks: list[str] = []
    end = 0
    for token in _TOKEN.finditer(text):
        pieces.append(text[end : token.start()])
        end = token.end()
        if token[0] == "$${":
            pieces.append("${")
            continue
        found = _found(token, environ)
        if found.problem:
            problems.append(found.problem)
            pieces.append(token[0])
            continue
        part = next((part for part in user_parts if part[0] <= token.start() < part[1]), None)
        pieces.append(quote(found.value, safe="") if part else found.value)
        secrets.update(dict.fromkeys(spellings(found.value), token[0]))
        if (
            token["name"] is None
            or is_called_secret(token["name"])
            or (part and ":" in masked[part[0] : token.start()])
        ):
            hidden.append(found.value)
        if found.remark:
            remarks.append(found.remark)
    return Substituted("".join([*pieces, text[end:]]), secrets, tuple(problems), tuple(hidden), tuple(remarks))


def _found(token: re.Match[str], environ: Mapping[str, str]) -> NamedSecret:
    """Return the value of a token, or the problem if there is none."""
    name = token["name"]
    if name is not None:
        what, found = f"the environment variable {name}", _variable(name, environ)
    elif token["secret"] is not None:
        what, found = f"the secret {token['secret']}", named_secret(token["secret"], environ)
    elif token["file"] is not None:
        what, found = f"the file {token['file']}", secret_file(token["file"])
    else:
        return NamedSecret(
            problem="`${` without a name and `}`: expected ${NAME}; write $${ for the characters themselves"
        )
    if not found.problem and (not found.value.isprintable() or not _is_unicode(found.value)):
        return NamedSecret(problem=f"{what} contains characters that are not text: expected printable UTF-8")
    return found


def _variable(name: str, environ: Mapping[str, str]) -> NamedSecret:
    if name in environ:
        return NamedSecret(environ[name])
    return NamedSecret(
        problem=f"the environment variable {name} is not set: set it, name a file that does (--env-file), or write "
        f"${{secret:{name}}} for a secret of this name, $${{{name}}} for the text itself"
    )


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)
