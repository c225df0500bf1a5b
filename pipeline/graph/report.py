"""Collects what is wrong with a graph, so that everything is told at once and nothing twice."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from pipeline.errors import GraphError, Problem
from pipeline.graph.yaml_reader import Path
from pipeline.graph.yaml_source import Source


@dataclass
class Report:
    """The problems found so far, by the path in the file that they are about."""

    source: Source
    problems: list[Problem] = field(default_factory=list)
    _known: set[Problem] = field(default_factory=set)
    _exact: set[Path] = field(default_factory=set)
    _around: set[Path] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.problems += self.source.problems
        self._known.update(self.problems)
        for path in self.source.broken:
            self._note(path)

    def add(self, path: Path, text: str, *, at_key: bool = False) -> None:
        """Complain about the value (or the key) at `path`."""
        self._note(path)
        problem = self.source.problem(path, self.source.redact(path, text), at_key=at_key)
        if problem not in self._known:
            self._known.add(problem)
            self.problems.append(problem)

    def _note(self, path: Path) -> None:
        self._exact.add(path)
        self._around.update(path[:end] for end in range(len(path) + 1))

    def touches(self, path: Path) -> bool:
        """True when something at `path`, below it, or that it is a part of, has been complained about."""
        return path in self._around or self.covers(path)

    def covers(self, path: Path) -> bool:
        """True when the value at `path`, or one that it is a part of, has been complained about."""
        return any(path[:end] in self._exact for end in range(1, len(path) + 1))

    def raise_if_any(self) -> None:
        """Raises GraphError with all problems, if there are any."""
        if self.problems:
            raise GraphError(self.problems)


def dotted(path: Iterable[str | int]) -> str:
    """A path as people write it: `stages.infer.with.size[1]`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text
