"""The tree of errors, and the exit status that each stands for.

    CamgraphError
    ├── UserError            2  the user's input is wrong
    │   ├── GraphError          a graph file; holds every problem found, with its place
    │   └── SettingError        one setting of a stage; names it, so that its place can be shown
    ├── EnvironmentProblem   3  the machine lacks something: memory, a library, a permission, a network
    │   └── Shortage            it may give this later: a live camera waits for it
    ├── NeedsNewProcess      3  this process is stuck for good, but a new one may work: it ends and is restarted
    ├── Unavailable          -  the outside does not respond now; the same items are processed again later
    ├── BadItem              -  one item cannot be processed; it is dropped and counted, the rest goes on
    └── WireError            -  a message that must not be believed

A message says where the problem is, what was expected and found, and a way out. It never holds a secret.

The kind of mistake has an id that stays the same while messages change: `camgraph explain ID` says more about it
(`tools.commands.explaining`). Where an error is raised, the id is given, unless its class has one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Self

from camgraph.pipeline.foreign_text import shown

EXIT_DONE = 0
EXIT_GAVE_UP = 1
EXIT_USER = 2
EXIT_ENVIRONMENT = 3
EXIT_SIGINT = 130


class CamgraphError(Exception):
    """Base of all errors that camgraph raises on purpose. `error_id`: of its kind, "" if it has none."""

    exit_status = EXIT_GAVE_UP
    error_id: str = ""

    def __init__(self, *args: object, error_id: str = "") -> None:
        super().__init__(*args)
        if error_id:
            self.error_id = error_id

    @property
    def error_ids(self) -> tuple[str, ...]:
        """The kinds of all mistakes that it tells of."""
        return (self.error_id,) if self.error_id else ()


class UserError(CamgraphError):
    """The person's mistake: shown without a traceback."""

    exit_status = EXIT_USER


class SettingError(UserError):
    """One setting does not fit the graph around its stage. `path`: its key, within the stage's settings."""

    error_id = "setting-value"

    def __init__(self, path: tuple[str, ...], text: str, *, error_id: str = "") -> None:
        self.path = path
        super().__init__(text, error_id=error_id)


class ProblemText(str):
    """What is wrong, with the id of that kind of mistake ("" if it has none): wherever a text alone would do."""

    error_id: str

    def __new__(cls, text: str, *, error_id: str) -> Self:
        made = super().__new__(cls, text)
        made.error_id = error_id
        return made

    @classmethod
    def of(cls, error: CamgraphError) -> Self:
        """The text of this error, with its id."""
        return cls(str(error), error_id=error.error_id)


def id_of(problem: str | CamgraphError) -> str:
    """The kind of mistake in a setting, of a text or an error."""
    return getattr(problem, "error_id", "") or "setting-value"


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with a graph file. Lines and columns count from 1; 0 means the file as a whole."""

    file: str
    line: int
    column: int
    text: str
    excerpt: str = field(default="", compare=False, repr=False)
    """The line of the file with a caret under the place, in two lines; "" if it is not known or may hold a secret."""
    error_id: str = field(default="graph-mistake", compare=False, repr=False)
    """The kind of mistake: see `CamgraphError`."""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        return shown(f"{place}: {self.text}")  # one line, even if a key or a value holds line breaks


MOST_REPORTED = 50


class GraphError(UserError):
    """A graph file that cannot be run. Its problems are sorted by place; its text shows the first 50, in a line each.

    `more`: how many further problems there are, of which only the number is known. Its `error_id` is that of its
    problems if they share one.
    """

    error_id = "graph-mistake"

    def __init__(self, problems: Sequence[Problem], more: int = 0) -> None:
        self.problems = tuple(sorted(problems, key=lambda p: (p.file, p.line, p.column)))
        listed = [str(problem) for problem in self.problems[:MOST_REPORTED]]
        left = len(self.problems) - len(listed) + more
        self._more = [f"and {left:,} more"] if left else []
        ids = self.error_ids
        super().__init__("\n".join(listed + self._more), error_id=ids[0] if len(ids) == 1 else "")

    @property
    def error_ids(self) -> tuple[str, ...]:
        """The ids of its problems, each once, in the order of the file."""
        return tuple(dict.fromkeys(problem.error_id for problem in self.problems))

    @property
    def with_excerpts(self) -> str:
        """Its text for people: below each problem, the line of the file with a caret."""
        listed = (
            f"{problem}\n{problem.excerpt}" if problem.excerpt else str(problem)
            for problem in self.problems[:MOST_REPORTED]
        )
        return "\n".join([*listed, *self._more])


class EnvironmentProblem(CamgraphError):
    """The machine lacks something that the graph needs."""

    exit_status = EXIT_ENVIRONMENT


class Shortage(EnvironmentProblem):
    """The machine refuses now something that it may give later. `is_over`: whether to try again; asked now and then."""

    def __init__(self, text: str, *, is_over: Callable[[], bool], error_id: str = "") -> None:
        self.is_over = is_over
        super().__init__(text, error_id=error_id)


class NeedsNewProcess(CamgraphError):
    """This process can do no more of its work, and a new one may: a GPU that is lost is lost until the process ends."""

    exit_status = EXIT_ENVIRONMENT
    error_id = "new-process"


class Unavailable(CamgraphError):
    """The outside is not there now; the runtime keeps the items and calls again later with the same ones.

    `patient`: the outside is there and takes the time that it needs, as a program does that handles one event after
    the other. That is no trouble, and a graph of files waits for it without limit.

    `error_id`: that of its class fits all but those who know more. Stages of others raise it, mostly without one.
    """

    error_id = "outside-away"

    def __init__(self, text: str, *, patient: bool = False, error_id: str = "") -> None:
        self.patient = patient
        super().__init__(text, error_id=error_id)


class BadItem(CamgraphError):
    """One item that a stage cannot process. The runtime drops it, counts it under `reason` and goes on.

    `logged`: the stage has logged it already, so the runtime does not log each item.
    """

    error_id = "frames-dropped"

    def __init__(self, reason: str, detail: str = "", *, logged: bool = False) -> None:
        self.reason = reason
        self.logged = logged
        super().__init__(f"{reason}: {detail}" if detail else reason)


class WireError(CamgraphError):
    """A received message breaks its format or its bounds."""
