"""Makes cameras of the user's arguments: video files, folders of pictures, devices, addresses.

An address is shown with its password as a variable; if it is uncertain which part is secret, all of it is:

    rtsp://viewer:secret@10.0.0.11/main  ->  rtsp://viewer:${CAMERA_1_PASSWORD}@10.0.0.11/main
    http://10.0.0.11/cam?token=secret    ->  ${CAMERA_1_URL}
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote

from camgraph.pipeline.errors import UserError
from camgraph.pipeline.graph.variables import substitute
from camgraph.pipeline.system.names import MAX_NAME
from camgraph.pipeline.system.paths import ASSET_PREFIX, resolve
from camgraph.pipeline.system.redaction import redact_url
from camgraph.stages.video import examiner
from camgraph.stages.video.addresses import file_of, is_device, is_live
from camgraph.stages.video.inspection import MEMORY_MB, path_of, what_is_wrong, why_mistyped

_LOGIN = re.compile(r"(?P<head>[^:/?#]+://[^:/?#@]*:)(?P<password>[^/?#@]*)(?P<rest>@.*)")
_VARIABLE = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}")
_PATTERN = re.compile(r"[*?]|\[.+\]")
_PORT = re.compile(r":[0-9]*$")


@dataclass(frozen=True, slots=True)
class WatchedCamera:
    """`url` as in a graph file: without secrets. These are in `variables`, by the names that `url` uses."""

    name: str
    url: str
    live: bool
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)


def cameras_of(sources: Sequence[str], folder: Path, environ: Mapping[str, str]) -> list[WatchedCamera]:
    """A camera for each source; relative paths start at `folder`, and files are looked at.

    Raises UserError that names all sources which cannot be watched.
    """
    live = [is_live(source) for source in sources]
    problems = [text for number, source in enumerate(sources, 1) for text in _wrong(source, number, folder)]
    if problems:
        raise UserError("\n".join(problems), error_id="option-value")
    if any(live) and not all(live):
        raise UserError(_mixed([redact_url(source) for source in sources], live), error_id="option-value")
    names = unique_names([camera_name(source, folder) for source in sources])
    cameras = []
    for number, (source, name, alive) in enumerate(zip(sources, names, live, strict=True), 1):
        url, variables = hide_secrets(source, number, environ) if alive else (_file_url(source, folder), {})
        cameras.append(WatchedCamera(name, url, alive, variables))
    return cameras


def camera_name(source: str, folder: Path) -> str:
    """A name that a graph allows: of a folder its own, of a file its own without the suffix, of an address the host."""
    if is_live(source) and not is_device(source):
        authority = re.split(r"[/?#]", redact_url(source).partition("://")[2], maxsplit=1)[0]
        text = _PORT.sub("", authority.rpartition("@")[2])
    else:
        path = resolve(file_of(source), folder).absolute()
        text = path.name if path.is_dir() else path.stem
    plain = re.sub(r"[^A-Za-z0-9_]+", "-", text).strip("-")
    return plain[:MAX_NAME].rstrip("-") or "camera"


def unique_names(names: Iterable[str]) -> list[str]:
    """The names in this order, those that come again with a number behind them, none longer than a graph allows."""
    taken: list[str] = []
    for name in names:
        candidate, number = name, 1
        while candidate in taken:
            number += 1
            candidate = f"{name[: MAX_NAME - len(str(number)) - 1]}-{number}"
        taken.append(candidate)
    return taken


def hide_secrets(address: str, number: int, environ: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """The address as it may be shown, and the variables that replace its secrets.

    A password that is a variable already, `rtsp://viewer:${PASSWORD}@host`, stays one.
    """
    filled = substitute(address, environ)
    if redact_url(address) == address:
        _require_filled(address, filled.problems)
        return address, {}
    login = _LOGIN.fullmatch(address)
    if login and _without_secret(login["head"].partition("://")[0] + "://" + login["rest"][1:]):
        if _VARIABLE.fullmatch(login["password"]):
            _require_filled(address, filled.problems)
            return address, {}
        variable = f"CAMERA_{number}_PASSWORD"
        return f"{login['head']}${{{variable}}}{login['rest']}", {variable: unquote(login["password"])}
    _require_filled(address, filled.problems)
    variable = f"CAMERA_{number}_URL"
    return f"${{{variable}}}", {variable: filled.text}


def _require_filled(address: str, problems: Sequence[str]) -> None:
    """Raises UserError: the graph would tell the line of a file that nobody has written."""
    if problems:
        raise UserError(f"{redact_url(address)}: {'; '.join(problems)}", error_id="variable-missing")


def _without_secret(address: str) -> bool:
    return redact_url(address) == address


def _file_url(source: str, folder: Path) -> str:
    """An absolute path, so that the graph may be kept anywhere; `${` in it is no variable."""
    if source.startswith(ASSET_PREFIX):
        return source
    return str(resolve(file_of(source), folder).absolute()).replace("${", "$${")


def _wrong(source: str, number: int, folder: Path) -> list[str]:
    """Why the source with this number cannot be watched. Live cameras are not connected to."""
    if not source.strip():
        return ["an empty SOURCE; expected a video file, a folder of pictures or an address"]
    mistyped = why_mistyped(source, folder)
    if mistyped:
        return [f"SOURCE {number}: {mistyped}"]
    problem = what_is_wrong(source, folder)
    if is_live(source):
        return [f"{redact_url(source)}: {problem}"] if problem else []
    if problem:
        return [problem + _way_out(source, folder)]
    return _why_not_opened(source, path_of(source, folder))


def _why_not_opened(source: str, path: Path) -> list[str]:
    try:
        str(path.absolute()).encode()
        found = examiner.examine(path, playlist=False, memory_mb=MEMORY_MB)
        if found.refused or found.unreadable:
            return [found.refused or found.unreadable]
    except UnicodeEncodeError:
        return [f"{source!r}: its name is not UTF-8, which a graph must be; rename it, or link to it by another name"]
    except UserError as error:
        return [str(error)]
    return []


def _way_out(source: str, folder: Path) -> str:
    """Why a pattern that `one_each` has not filled in is none."""
    try:
        fits_nothing = _PATTERN.search(source) is not None and not path_of(source, folder).exists()
    except (UserError, OSError):
        return ""
    return ": nothing fits this pattern" if fits_nothing else ""


def _mixed(shown: Sequence[str], live: Sequence[bool]) -> str:
    alive = [text for text, is_live_one in zip(shown, live, strict=True) if is_live_one]
    files = [text for text, is_live_one in zip(shown, live, strict=True) if not is_live_one]
    return (
        f"live cameras ({', '.join(alive)}) and files ({', '.join(files)}) cannot be watched in one run: frames of "
        "live cameras are dropped if the machine is too slow, those of files never are. Watch them in two runs, "
        "at once if you like; then give one of them a --name of its own"
    )
