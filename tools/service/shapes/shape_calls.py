"""The calls that draw zones and lines: they list those that the rules of a camera have, and change their file.

A change is tried first: the answer is the lines of the file that would differ. If it is saved, the old file stays by
it, and the run goes on with the new rules; if the run refuses them, the file becomes what it was.
"""

from __future__ import annotations

import difflib
import glob
import hashlib
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NotRequired

import yaml
from pydantic import Field, WithJsonSchema
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from typing_extensions import TypedDict  # pydantic needs this one before Python 3.12

from camgraph.pipeline.errors import EnvironmentProblem, UserError
from camgraph.pipeline.foreign_text import shown
from camgraph.pipeline.system.disk import write_whole
from camgraph.pipeline.system.redaction import redact_urls
from camgraph.stages.rules.rule_file import EVERY_CAMERA
from camgraph.stages.rules.rule_set import parse_rules
from camgraph.tools.service.run.camera_calls import checked_camera
from camgraph.tools.service.run.run_link import RunLink
from camgraph.tools.service.shapes.yaml_edit import with_value, without_value
from camgraph.tools.service.web.calls import Body, Call, Gives, body_of
from camgraph.tools.service.web.thread_pools import ThreadPools

_KINDS = {"zone": "zones", "line": "lines"}
Kind = Literal["zone", "line"]
_LEAST = {"zone": 3, "line": 2}
_MOST_CORNERS = 100
_POINT = {"type": "array", "items": {"type": "number", "minimum": 0, "maximum": 1}, "minItems": 2, "maxItems": 2}
_POINTS = {"type": ["array", "null"], "items": _POINT, "minItems": min(_LEAST.values()), "maxItems": _MOST_CORNERS}
_MOST_BYTES = 4 << 20
_BACKUPS = 10
_DIGITS = 3
_NOT_READ = {400: "the file is no YAML now, or the change is wrong", 503: "a file cannot be read or written now"}


Shape = TypedDict("Shape", {"for": Literal["camera", "all"], "points": Any})
"""`points`: as they are written, in fractions or pixels; two for a line."""


class StageShapes(TypedDict):
    """The zones and lines that one stage has for the camera. `version`: changes with the file."""

    stage: str
    file: str
    version: str
    zone: dict[str, Shape]
    line: dict[str, Shape]


class ShapeList(TypedDict):
    """The shapes of all stages with rules. `problems`: for each stage without shapes, the reason."""

    stages: list[StageShapes]
    problems: list[str]


class Changed(TypedDict):
    """The answer to a change. `diff`: the lines that differ; `backup`: the old file, if the change was saved."""

    diff: str
    version: str
    saved: bool
    backup: NotRequired[str]


class ShapeChange(Body):
    """A zone or line to be drawn or changed; without points, to be removed."""

    words: ClassVar = (
        '{"stage": STAGE, "kind": "zone" or "line", "name": NAME, "points": [[x, y], ...] in fractions, or null to '
        'remove it, "for": "camera" or "all", "version": as the list says, "save": false to see what would change}'
    )
    stage: str
    kind: Kind
    name: str = Field(min_length=1)
    points: Annotated[Any, WithJsonSchema(_POINTS)] = None
    of: Literal["camera", "all"] = Field("camera", alias="for")
    version: str
    save: bool = False


@dataclass(frozen=True, slots=True)
class ShapeFile:
    """The file with the rules of a stage. `keys`: the path to the rules in it; empty in a file of rules."""

    path: Path
    keys: tuple[str, ...] = ()

    def state(self) -> tuple[int, ...]:
        """Differs if the file is another one, or has been written. Raises EnvironmentProblem."""
        try:
            found = self.path.stat()
        except OSError as error:
            raise EnvironmentProblem(
                f"{self.path.name} cannot be read: {_why(error)}", error_id="cannot-read"
            ) from None
        return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns

    def text(self) -> str:
        """The text of the file. Raises EnvironmentProblem if it cannot be read."""
        try:
            if self.path.stat().st_size > _MOST_BYTES:
                raise EnvironmentProblem(
                    f"{self.path.name} is larger than {_MOST_BYTES >> 20} MB", error_id="file-not-editable"
                )
            return self.path.read_bytes().decode()
        except (OSError, UnicodeError) as error:
            raise EnvironmentProblem(
                f"{self.path.name} cannot be read: {_why(error)}", error_id="cannot-read"
            ) from None


class ShapeFiles:
    """All files with rules of a run. `files`: stage -> its file of rules, "" if they stand in the graph file."""

    def __init__(self, run: RunLink, base_folder: Path, files: Mapping[str, str]) -> None:
        self._run, self._base_folder, self._files = run, base_folder, files
        self._saving = threading.Lock()
        self._read: dict[ShapeFile, tuple[tuple[int, ...], str, Mapping[str, Any]]] = {}
        """What a file was when it was read, its version, and its rules."""

    def listed(self, camera: str) -> ShapeList:
        """The shapes of a camera, of all stages whose file can be read."""
        found: ShapeList = {"stages": [], "problems": []}
        for stage in self._files:
            try:
                found["stages"].append(self._of_stage(stage, camera))
            except (UserError, EnvironmentProblem) as error:
                found["problems"].append(f"{stage}: {redact_urls(str(error))}")
        return found

    def _of_stage(self, stage: str, camera: str) -> StageShapes:
        """Raises UserError or EnvironmentProblem for a file that cannot be read."""
        file = self._file(stage)
        version, has = self._rules_of(file)
        zone, line = (_of_camera(has.get(key), camera) for key in _KINDS.values())
        return {"stage": stage, "file": file.path.name, "version": version, "zone": zone, "line": line}

    def _rules_of(self, file: ShapeFile) -> tuple[str, Mapping[str, Any]]:
        """Its version and its rules, which are read once: a large file takes seconds. Raises as `text`, UserError."""
        state = file.state()
        known = self._read.get(file)
        if known is None or known[0] != state:
            text = file.text()
            known = self._read[file] = (state, _version(text), _rules_in(text, file))
        return known[1:]

    def change(self, camera: str, wanted: ShapeChange) -> Changed:
        """Try a change, or save it. Raises UserError, and EnvironmentProblem if the file cannot be written."""
        with self._saving:
            file = self._file(wanted.stage)
            before = file.text()
            if wanted.version != _version(before):
                raise UserError(
                    f"{file.path.name} has changed meanwhile: look at it anew, and then draw", error_id="file-changed"
                )
            after = _changed(before, file, camera, wanted)
            if not file.keys:
                parse_rules(after, file.path.name)
            answer: Changed = {"diff": _diff(before, after, file.path.name), "version": _version(after), "saved": False}
            if wanted.save and after != before:
                answer["backup"] = self._save(file, before, after)
                answer["saved"] = True
            return answer

    def _file(self, stage: str) -> ShapeFile:
        name = self._files.get(stage)
        if name is None:
            raise UserError(f"the run has no stage with rules called {shown(stage)[:60]}", error_id="name-unknown")
        if name:
            return ShapeFile((self._base_folder / name).resolve())
        return ShapeFile(self._graph_file().resolve(), ("stages", stage, "with"))

    def _graph_file(self) -> Path:
        file = self._run.graph_file()
        if not file:
            raise UserError("the run was not started from a file", error_id="run-without-file")
        return Path(file)

    def _save(self, file: ShapeFile, before: str, after: str) -> str:
        backup = file.path.with_name(f"{file.path.name}.{datetime.now(UTC):%Y%m%dT%H%M%S.%fZ}.backup")
        try:
            mode = file.path.stat().st_mode & 0o777
            write_whole(backup, before.encode(), mode=mode)
            write_whole(file.path, after.encode(), mode=mode)
        except OSError as error:
            raise EnvironmentProblem(
                f"{file.path.name} cannot be written: {_why(error)}: change it with an editor, as the diff says, and "
                "run `camgraph reload`",
                error_id="cannot-write",
            ) from None
        try:
            self._reload()
        except (UserError, EnvironmentProblem) as error:
            if error.error_id == "run-silent":  # it may still do what it was asked to: the file has to be so then
                saved = f"{file.path.name} is saved ({backup.name} is how it was)"
                why = f"{saved}, and the run may still take it over: {error}"
                raise EnvironmentProblem(why, error_id="run-silent") from None
            raise UserError(
                f"the run goes on as before, and {_restored(file.path, backup)}: {error}", error_id="reload-refused"
            ) from None
        _remove_old(file.path)
        return backup.name

    def _reload(self) -> None:
        graph = self._graph_file()
        try:
            text = graph.read_text("utf-8")
        except (OSError, UnicodeError) as error:
            raise EnvironmentProblem(f"{graph.name} cannot be read: {_why(error)}", error_id="cannot-read") from None
        self._run.ask("reload", file=str(graph), folder=str(graph.parent), text=text)


def shape_calls(run: RunLink, threads: ThreadPools, base_folder: Path, files: Mapping[str, str]) -> list[Call]:
    """The calls of this module, for the service."""
    known = ShapeFiles(run, base_folder, files)

    async def listed(request: Request) -> Response:
        name = await threads.run.run(checked_camera, run, request.path_params["name"])
        return JSONResponse(await threads.rules.run(known.listed, name))

    async def change(request: Request) -> Response:
        wanted = await body_of(request, ShapeChange)
        name = await threads.run.run(checked_camera, run, request.path_params["name"])
        return JSONResponse(await threads.rules.run(known.change, name, wanted))

    place = "/api/cameras/{name}/shapes"
    return [
        Call("GET", place, "viewer", listed, "The zones and lines of the rules, as their files have them.",
             Gives(type=ShapeList), errors=_NOT_READ),
        Call("POST", place, "admin", change, "Draw, change or remove a zone or a line.", Gives(type=Changed),
             body=ShapeChange, errors=_NOT_READ),
    ]  # fmt: skip


def _rules_in(text: str, file: ShapeFile) -> Mapping[str, Any]:
    """Raises UserError for a file that is broken now."""
    try:
        found = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError):
        raise UserError(f"{file.path.name} is no YAML now", error_id="file-not-editable") from None
    for key in file.keys:
        found = found.get(key) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def _of_camera(shapes: Any, camera: str) -> dict[str, Shape]:
    """Name -> (the cameras that it is for, its points as they are written: fractions, or pixels)."""
    found: dict[str, Shape] = {}
    for name, shape in shapes.items() if isinstance(shapes, dict) else ():
        key = _camera_key(shape, camera)
        own = shape.get(key) if key else shape
        if own is not None:
            points = [own.get("from"), own.get("to")] if isinstance(own, dict) else own
            found[str(name)] = {"for": "camera" if key == camera else "all", "points": points}
    return found


def _camera_key(shape: Any, camera: str) -> str:
    """The key of the camera in a shape that differs by camera; "" if all cameras have the same."""
    if isinstance(shape, list) or (isinstance(shape, dict) and {"from", "to"} & shape.keys()):
        return ""
    is_general = isinstance(shape, dict) and camera not in shape and EVERY_CAMERA in shape
    return EVERY_CAMERA if is_general else camera


def _changed(text: str, file: ShapeFile, camera: str, wanted: ShapeChange) -> str:
    kind, name, points = wanted.kind, wanted.name, wanted.points
    has = _rules_in(text, file).get(_KINDS[kind])
    shape = has.get(name) if isinstance(has, dict) else None
    key = _camera_key(shape, camera) if shape is not None else "" if wanted.of == "all" else camera
    path = [*file.keys, _KINDS[kind], name, *([key] if key else [])]
    if points is None:
        alone = isinstance(shape, dict) and bool(key) and len(shape) == 1
        return without_value(text, path[:-1] if alone else path)
    corners = _points(points, kind)
    return with_value(text, path, {"from": corners[0], "to": corners[1]} if kind == "line" else corners)


def _points(given: Any, kind: str) -> Sequence[Sequence[float]]:
    """The points as fractions of the frame. Raises UserError."""
    most = 2 if kind == "line" else _MOST_CORNERS
    if not isinstance(given, list) or not _LEAST[kind] <= len(given) <= most:
        raise UserError(
            f"a {kind} has {'2 ends' if kind == 'line' else f'from {_LEAST[kind]} to {most} corners'}",
            error_id="request-value",
        )
    points = []
    for point in given:
        match point:
            case [float() | int() as x, float() | int() as y] if 0 <= x <= 1 and 0 <= y <= 1:
                points.append([round(float(x), _DIGITS), round(float(y), _DIGITS)])
            case _:
                raise UserError(
                    "expected points [x, y] in fractions of the frame, from 0 to 1", error_id="request-value"
                )
    return points


def _version(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _diff(before: str, after: str, name: str) -> str:
    """Only the lines that differ: a graph file may have a password in the lines around them."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), name, name, n=0, lineterm="")
    return redact_urls("\n".join(lines))


def _restored(path: Path, backup: Path) -> str:
    """Put the backup back in its place; returns in words what the file is now."""
    try:
        backup.replace(path)
    except OSError as error:
        return f"{path.name} could not be put back ({_why(error)}): {backup.name} is how it was"
    return "the file is as it was"


def _remove_old(path: Path) -> None:
    """Remove all backups but the last ones."""
    with suppress(OSError):
        for old in sorted(path.parent.glob(f"{glob.escape(path.name)}.*Z.backup"))[:-_BACKUPS]:
            old.unlink()


def _why(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)
