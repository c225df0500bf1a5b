"""Collects the mistakes in a graph, so that all are reported at once and none twice."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from camgraph.pipeline.errors import MOST_REPORTED, GraphError, Problem
from camgraph.pipeline.graph.yaml_reader import Path
from camgraph.pipeline.graph.yaml_source import Source

_WORDED = 4 * MOST_REPORTED
"""They are reported in the order of the file, and found in another."""


@dataclass
class Report:
    """The problems so far, by their paths in the file."""

    source: Source
    strict: bool = False
    """Whether a camera that can never give a frame is a problem: a run goes on without it."""
    error_id: str = ""
    """The kind of all mistakes in it, as in a file of rules; "" if each has its own."""
    problems: list[Problem] = field(default_factory=list)
    more: int = 0
    """How many problems beyond the shown ones were only counted."""
    _known: set[Problem] = field(default_factory=set)
    _exact: set[Path] = field(default_factory=set)
    _around: set[Path] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.problems += map(self._of_its_kind, self.source.problems)
        self._known.update(self.problems)
        for path in self.source.broken:
            self._note(path)

    def add(
        self,
        path: Path,
        text: str,
        *,
        at_key: bool = False,
        about: Path | None = None,
        error_id: str = "graph-mistake",
    ) -> None:
        """Report a mistake in the value (or the key) at `path`; `about`: the path of a missing value."""
        self._note(about or path)
        text = self.source.redact(path, text)
        self.take([self._of_its_kind(self.source.problem(path, text, at_key=at_key, error_id=error_id))])

    def _of_its_kind(self, problem: Problem) -> Problem:
        return replace(problem, error_id=self.error_id) if self.error_id else problem

    @property
    def is_full(self) -> bool:
        """True if no more problems will be shown, so that further suggestions would be wasted work."""
        return len(self.problems) > _WORDED

    def count(self, path: Path) -> None:
        """Count one more problem without a text, once it `is_full`."""
        self._note(path)
        self.more += 1

    def error(self) -> GraphError:
        """All problems as one error."""
        return GraphError(self.problems, self.more)

    def take(self, problems: Iterable[Problem]) -> None:
        """Take over the mistakes in another file that the graph names."""
        for problem in problems:
            if problem not in self._known:
                self._known.add(problem)
                self.problems.append(problem)

    def _note(self, path: Path) -> None:
        self._exact.add(path)
        self._around.update(path[:end] for end in range(len(path) + 1))

    def touches(self, path: Path) -> bool:
        """True if a problem was reported at `path`, below it, or above it."""
        return path in self._around or self.covers(path)

    def covers(self, path: Path) -> bool:
        """True if a problem was reported at `path` or above it."""
        return any(path[:end] in self._exact for end in range(1, len(path) + 1))

    def raise_if_any(self) -> None:
        """Raises GraphError with all problems, if there are any."""
        if self.problems:
            raise self.error()


def dotted(path: Iterable[str | int]) -> str:
    """A path as people write it: `stages.infer.with.size[1]`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text
