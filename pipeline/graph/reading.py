"""Validates a part of a graph file against its definition and, where it is wrong, goes on with what is right."""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from pydantic import ValidationError

from pipeline.graph.definition import GraphFile
from pipeline.graph.explain import Found, explain
from pipeline.graph.report import Report
from pipeline.graph.yaml_reader import Path
from pipeline.stage import Definition

M = TypeVar("M", bound=Definition)
StandIns = Mapping[tuple[str, ...], Any]

MAX_CAMERAS = 10_000
MAX_STAGES = 1_000
_LIMITS = {"cameras": MAX_CAMERAS, "stages": MAX_STAGES}
_ROUNDS = 16
"""More than a definition is deep: each round may take out what is around that which the last one took out."""


def same(path: Path) -> Path:
    """The origin of data that is a whole file."""
    return path


def validated(model: type[M], data: Any, report: Report, origin: Callable[[Path], Path] = same) -> M | None:
    """`data` as a `model`. What is wrong is reported, and left out; None where nothing is left.

    So the checks that come after see all that is right, and nothing has to be mended before they can tell more.
    """
    whole = _Pruned(data, model.stand_ins)
    for _ in range(_ROUNDS):
        remaining = whole.remaining()
        try:
            return model.model_validate(remaining)
        except ValidationError as error:
            found = explain(
                error,
                model,
                remaining,
                report,
                lambda path: origin(whole.written(path)),
                follows=whole.follows_from_a_cut,
            )
            if not whole.cut(found):
                return None
    return None


def read_graph_file(report: Report) -> GraphFile | None:
    """The file as far as it can be understood; None where there is nothing to go on with."""
    if not isinstance(report.source.data, dict):
        report.add((), "expected `key: value` lines: version, cameras and stages")
        return None
    too_many = [(key, most) for key, most in _LIMITS.items() if len(report.source.mapping(key)) > most]
    for key, most in too_many:
        text = f"{key}: {len(report.source.mapping(key)):,}, expected at most {most:,}: make several graphs of it"
        report.add((key,), text, at_key=True)
    if too_many:
        return None
    return validated(GraphFile, report.source.data, report)


class _Pruned:
    """Data from which the wrong parts are cut, with the way back from a place in the rest to that in the whole."""

    def __init__(self, data: Any, stand_ins: StandIns) -> None:
        self._data = data
        self._stand_ins = stand_ins
        self._gone: set[Path] = set()
        self._added: dict[Path, Any] = {}
        """What stands there instead of what was wrong or missing."""
        self._new_keys: dict[Path, dict[str, Any]] = defaultdict(dict)
        """Mapping -> of these what it does not have by itself."""
        self._left: dict[Path, list[int]] = {}
        """List -> the indices of its items that are left, where some are gone."""

    def remaining(self) -> Any:
        """A copy of what is left."""
        self._left.clear()
        return self._kept(self._data, ())

    def _kept(self, value: Any, path: Path) -> Any:
        if path in self._added:
            return copy.deepcopy(self._added[path])
        if isinstance(value, dict):
            kept = {key: self._kept(own, (*path, key)) for key, own in value.items() if (*path, key) not in self._gone}
            return kept | copy.deepcopy(self._new_keys.get(path, {}))
        if isinstance(value, list):
            left = [index for index in range(len(value)) if (*path, index) not in self._gone]
            if len(left) < len(value):
                self._left[path] = left
            return [self._kept(value[index], (*path, index)) for index in left]
        return value

    def written(self, path: Path) -> Path:
        """Where in the whole stands what is at `path` in the rest."""
        found: Path = ()
        for part in path:
            left = self._left.get(found)
            found = (*found, part if left is None or not isinstance(part, int) else _index(left, part))
        return found

    def cut(self, found: Iterable[Found]) -> bool:
        """Take out what these errors are about, or put a placeholder in; False where there is nothing to take."""
        before = len(self._gone) + len(self._added)
        for path in dict.fromkeys(path for one in found for path in self._guilty(one)):
            self._cut(path)
        return len(self._gone) + len(self._added) > before

    def _guilty(self, one: Found) -> list[Path]:
        """What an error is about; of values that do not go together those that it names."""
        path = self.written(one.about)
        return [(*path, key) for key in one.named(_at(self._data, path))] or [path]

    def _cut(self, path: Path) -> None:
        """What is wrong goes, or gives way to its stand-in; what must not be missing takes its holder along."""
        if path not in self._added and (stand_in := self._stand_in(path)) is not None:
            self._added[path] = stand_in
            if not _exists(self._data, path):
                self._new_keys[path[:-1]][str(path[-1])] = stand_in
        elif path in self._gone or not _exists(self._data, path):
            if len(path) > 1:
                self._cut(path[:-1])
        else:
            self._gone.add(path)

    def _stand_in(self, path: Path) -> Any:
        for pattern, value in self._stand_ins.items():
            if len(pattern) == len(path) and all(part in ("*", at) for part, at in zip(pattern, path, strict=True)):
                return value(_at(self._data, path)) if callable(value) else value
        return None

    def follows_from_a_cut(self, one: Found) -> bool:
        """Whether an error is there only because something was taken out, which has been told."""
        path = self.written(one.about)
        if any(path[:end] in self._added for end in range(len(path) + 1)) or path in self._gone:
            return True
        if one.kind == "too_short":
            return any(gone[:-1] == path for gone in self._gone)
        if one.kind in ("value_error", "assertion_error"):
            # What is said of several values together, and names none that is gone, would be said with them too.
            gone = {part for gone in self._gone if gone[: len(path)] == path for part in gone[len(path) :]}
            return any(isinstance(part, int) or part in one.words for part in gone)
        return False


def _index(left: list[int], index: int) -> int:
    """Of an item of what is left; an item that is missing there is the first one that went."""
    if index < len(left):
        return left[index]
    return next((at for at, kept in enumerate(left) if at != kept), len(left))


def _exists(data: Any, path: Path) -> bool:
    for part in path:
        is_item = isinstance(data, list) and isinstance(part, int) and part < len(data)
        if not (is_item or (isinstance(data, dict) and part in data)):
            return False
        data = data[part]
    return True


def _at(data: Any, path: Path) -> Any:
    """What stands there, None where nothing does."""
    return _walked(data, path) if _exists(data, path) else None


def _walked(data: Any, path: Path) -> Any:
    for part in path:
        data = data[part]
    return data
