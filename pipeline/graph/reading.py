"""Validates a part of a graph file against its definition and, where it is wrong, goes on with what is right."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from pipeline.graph.definition import GraphFile
from pipeline.graph.explain import explain
from pipeline.graph.report import Report
from pipeline.graph.yaml_reader import Path

M = TypeVar("M", bound=BaseModel)

UNKNOWN_USE = "?"
"""Stands for the `use` of a stage that does not say it, after that has been reported."""

_PLACEHOLDERS: Mapping[str, Any] = {"version": 1, "cameras": {}, "stages": {}, "use": UNKNOWN_USE}
_ROUNDS = 4


def same(path: Path) -> Path:
    """The origin of data that is a whole file."""
    return path


def validated(model: type[M], data: Any, report: Report, origin: Callable[[Path], Path] = same) -> M | None:
    """`data` as a `model`. What is wrong is reported, and left out; None where nothing is left.

    So the checks that come after see all that is right, and nothing has to be mended before they can tell more.
    """
    data = copy.deepcopy(data)
    for attempt in range(_ROUNDS):
        try:
            return model.model_validate(data)
        except ValidationError as error:
            if attempt == 0:
                explain(error, model, data, report, origin)
            found = error.errors(include_url=False, include_input=False)
            # All are looked for before any is made: a value that may be of several types is wrong several times.
            repairs = [_repair(data, one["loc"], missing=one["type"] == "missing") for one in found]
            for repair in repairs:
                repair()
    return None


def read_graph_file(report: Report) -> GraphFile | None:
    """The file as far as it can be understood."""
    if not isinstance(report.source.data, dict):
        report.add((), "expected `key: value` lines: version, cameras and stages")
        return None
    return validated(GraphFile, report.source.data, report)


def _repair(data: Any, loc: tuple[int | str, ...], *, missing: bool) -> Callable[[], object]:
    """Takes out the innermost key that an error is about, or puts a placeholder in for one that is missing."""
    holder, spot = data, None
    for part in loc:
        if isinstance(holder, dict) and part in holder:
            spot, holder = (holder, part), holder[part]
    if missing and isinstance(holder, dict) and loc[-1] in _PLACEHOLDERS:
        return partial(holder.__setitem__, loc[-1], copy.copy(_PLACEHOLDERS[str(loc[-1])]))
    return partial(spot[0].pop, spot[1], None) if spot else lambda: None
