"""Takes the folders of the machine out of what viewers are told: a path shows how the machine is laid out.

    /srv/cam/clips/hall.mp4: no such file    ->    hall.mp4: no such file

Operators and admins, who have to mend what is wrong, are told whole paths.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeVar

from starlette.requests import Request

_PATH = re.compile(
    r"(?<![\w:/.~*@\]-])/(?!api/|page/)"  # a path, and no part of an address or of another path
    r"(?:[^\s/:;,'\"`()<>]+/)*"
    r"(?P<name>[^\s/:;,'\"`()<>]+)/?"
)
_LOCAL = re.compile(r"\b(?P<scheme>(?:unix|ipc|file):)/+(?:[^\s/:;,'\"`()<>]+/)*(?P<name>[^\s/:;,'\"`()<>]+)/?")
"""An address that is a path of this machine."""
_QUOTED = re.compile(r"(?P<quote>['\"`])(?:file:/*)?/(?:[^'\"`\n]*/)?(?P<name>[^'\"`/\n]+)/?(?P=quote)")
"""A path in quotes may hold blanks."""
T = TypeVar("T")


def sees_paths(request: Request) -> bool:
    """Whether somebody with the role of this request is told whole paths."""
    return request.scope.get("camgraph.role") in ("operator", "admin")


def as_told_to(request: Request, value: T) -> T:
    """`value`, of plain values, as somebody with the role of this request is told."""
    return value if sees_paths(request) else without_folders(value)


def without_folders(value: T) -> T:
    """The same, each absolute path in it cut to its last name."""
    return _cut(value)  # type: ignore[return-value]  # of the same form


def _cut(value: object) -> object:
    if isinstance(value, str):
        if "/" not in value:
            return value
        value = _QUOTED.sub(lambda path: f"{path['quote']}{path['name']}{path['quote']}", value)
        value = _LOCAL.sub(lambda path: path["scheme"] + path["name"], value)
        return _PATH.sub(lambda path: path["name"], value)
    if isinstance(value, Mapping):
        return {key: _cut(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_cut(part) for part in value]
    return value
