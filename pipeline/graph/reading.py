"""Validates a part of a graph file against its definition; if it has mistakes, goes on with the correct rest."""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from pydantic import ValidationError

from camgraph.pipeline.graph.definition import GraphFile
from camgraph.pipeline.graph.explain import ValidationProblem, explain
from camgraph.pipeline.graph.report import Report
from camgraph.pipeline.graph.yaml_reader import Path
from camgraph.pipeline.stage import Definition

M = TypeVar("M", bound=Definition)
StandIns = Mapping[tuple[str, ...], Any]

MAX_CAMERAS = 10_000
MAX_STAGES = 1_000
_LIMITS = {"cameras": MAX_CAMERAS, "stages": MAX_STAGES}
_ROUNDS = 16
"""More than the depth of any definition: each round may remove the container of a value that the last one removed."""


def same(path: Path) -> Path:
    """The origin of data that is a whole file."""
    return path


def validated(model: type[M], data: Any, report: Report, origin: Callable[[Path], Path] = same) -> M | None:
    """Validate `data` as a `model`. Wrong parts are reported and left out; None if nothing is left.

    So later checks see all correct parts, and report their mistakes at the same time.
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
    """Return the readable part of the file; None if there is none."""
    if not isinstance(report.source.data, dict):
        report.add((), "expected `key: value` lines: version, cameras and stages", error_id="setting-value")
        return None
    too_many = [(key, most) for key, most in _LIMITS.items() if len(report.source.mapping(key)) > most]
    for key, most in too_many:
        text = f"{key}: {len(report.source.mapping(key)):,}, expected at most {most:,}: make several graphs of it"
        report.add((key,), text, at_key=True, error_id="setting-value")
    if too_many:
        return None
    return validated(GraphFile, report.source.data, report)


class _Pruned:
    """Data without its wrong parts; translates a path in the rest to the path in the whole."""

    def __init__(self, data: Any, stand_ins: StandIns) -> None:
        self._data = data
        self._stand_ins = stand_ins
        self._gone: set[Path] = set()
        self._added: dict[Path, Any] = {}
        """The values that replace wrong or missing ones."""
        self._untried: set[Path] = set()
        """Those of these that came with the last errors: nobody knows yet whether they are right."""
        self._new_keys: dict[Path, dict[str, Any]] = defaultdict(dict)
        """Mapping -> those of these keys that it does not have itself."""
        self._left: dict[Path, list[int]] = {}
        """List -> the indices of its remaining items, if some were removed."""

    def remaining(self) -> Any:
        """A copy of the rest."""
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
        """Translates `path` in the rest to its path in the whole."""
        found: Path = ()
        for part in path:
            left = self._left.get(found)
            found = (*found, part if left is None or not isinstance(part, int) else _index(left, part))
        return found

    def cut(self, found: Iterable[ValidationProblem]) -> bool:
        """Remove the values that these errors name, or put in a placeholder; False if there is nothing to remove."""
        before = len(self._gone) + len(self._added)
        self._untried.clear()
        for path in dict.fromkeys(path for one in found for path in self._wrong_paths(one)):
            self._cut(path)
        return len(self._gone) + len(self._added) > before

    def _wrong_paths(self, one: ValidationProblem) -> list[Path]:
        """Return the paths of an error; if values contradict each other, all of them."""
        path = self.written(one.about)
        return [(*path, key) for key in one.named(_at(self._data, path))] or [path]

    def _cut(self, path: Path) -> None:
        """Remove a wrong value or replace it by a placeholder; if it is required, remove its container too."""
        if path in self._untried:
            return
        if path not in self._added and (stand_in := self._stand_in(path)) is not None:
            self._added[path] = stand_in
            self._untried.add(path)
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

    def follows_from_a_cut(self, one: ValidationProblem) -> bool:
        """Whether an error appears only because a value was removed, which has been reported."""
        path = self.written(one.about)
        if any(path[:end] in self._added for end in range(len(path) + 1)) or path in self._gone:
            return True
        if one.kind == "too_short":
            return any(gone[:-1] == path for gone in self._gone)
        if one.kind in ("value_error", "assertion_error"):
            # An error about several values that names none of the removed ones would appear with those present, too.
            gone = {part for gone in self._gone if gone[: len(path)] == path for part in gone[len(path) :]}
            return any(isinstance(part, int) or part in one.words for part in gone)
        return False


def _index(left: list[int], index: int) -> int:
    """For an item of the rest: a missing item is the first one that was removed."""
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
    """The value there, None if there is none."""
    return _walked(data, path) if _exists(data, path) else None


def _walked(data: Any, path: Path) -> Any:
    for part in path:
        data = data[part]
    return data
