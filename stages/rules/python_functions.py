"""The conditions in Python that installed packages bring, and all that can go wrong in them.

    [project.entry-points."camgraph.conditions"]
    limps = "my_rules.limping:limps"

A rules file names conditions and never modules, so it can import nothing that nobody has installed. An error in a
function costs one answer, which is unknown then; a function that hangs or crashes its process is not asked any more
after the second time (`watch_calls`).
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import json
import math
import mmap
import re
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, Literal

import numpy as np

from camgraph.pipeline.registry import distribution_of, registered, remedy
from camgraph.pipeline.system.disk import write_whole
from camgraph.stages.events import digest
from camgraph.stages.rules.conditions import DECLARED, MOST_CHARACTERS, MOST_REPORTED, Answer, Declared, Past
from camgraph.stages.rules.language.code_cell import NOTHING, Reported
from camgraph.stages.rules.language.vocabulary import NAMES

GROUP = "camgraph.conditions"
SLOW_S = 0.1
"""An answer that takes longer is reported: at ten frames a second with one person, nothing else would be done."""
MOST_DEATHS = 2
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Failure:
    """Something that went wrong in a function: `at` is its place in Python, as file:line."""

    name: str
    package: str
    kind: Literal["failed", "slow"]
    error: str
    at: str


MOST_KEPT = 10_000
_failures: list[Failure] = []
"""Of all functions of this process, since they were last taken; where nobody takes them, the first ones."""


def taken_failures() -> list[Failure]:
    """The failures since the last call."""
    found = _failures[:]
    _failures.clear()
    return found


@dataclass(unsafe_hash=True, slots=True)
class PythonFunction:
    """A function that a package brings. `ask` raises nothing.

    Functions of the same name and code are equal, and so are the cells that ask them.
    """

    name: str
    package: str = field(compare=False)
    hash: str
    declared: Declared = field(compare=False)
    function: Callable[..., Any] = field(compare=False)
    given_up: bool = field(default=False, compare=False)

    def ask(self, past: Past, *parameters: Any) -> tuple[Any, Reported]:
        """The answer, and the values that explain it. Unknown if it fails, or is no answer."""
        if self.given_up:
            return self._unknown, NOTHING
        began = time.perf_counter()
        _calls.enter(self.name)
        try:
            answer = self.function(past, *parameters)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a function of others does costs its answer
            self._note("failed", f"{type(error).__name__}: {error}", _place(error, self.function))
            return self._unknown, NOTHING
        finally:
            _calls.leave()
        took_s = time.perf_counter() - began
        if took_s > SLOW_S:
            self._note("slow", f"an answer took {took_s:.2f} s", _beginning(self.function))
        return self._checked(answer)

    @property
    def _unknown(self) -> Any:
        return None if self.declared.gives == "truth" else math.nan

    def _checked(self, answer: Any) -> tuple[Any, Reported]:
        value, reported = (answer.value, answer.reported) if isinstance(answer, Answer) else (answer, NOTHING)
        try:
            found = _truth(value) if self.declared.gives == "truth" else _number(value)
        except TypeError as error:
            self._note("failed", str(error), _beginning(self.function))
            return self._unknown, NOTHING
        try:
            return found, _plain(reported)
        except TypeError as error:
            self._note("failed", str(error), _beginning(self.function))
            return found, NOTHING

    def _note(self, kind: Literal["failed", "slow"], error: str, at: str) -> None:
        if len(_failures) < MOST_KEPT:
            _failures.append(Failure(self.name, self.package, kind, error[:MOST_CHARACTERS], at))


def _truth(value: Any) -> bool | None:
    if value is None or isinstance(value, bool | np.bool_):
        return None if value is None else bool(value)
    raise TypeError(f"expected True, False or None (unknown), got {_shown(value)}")


def _number(value: Any) -> float:
    if value is None:
        return math.nan
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
        raise TypeError(f"expected a number or None (unknown), got {_shown(value)}")
    if math.isinf(value):
        raise TypeError(f"expected a finite number or None (unknown), got {value}")
    return float(value)


def _plain(reported: Mapping[str, Any]) -> Reported:
    """The values for an event. Raises TypeError for those that it cannot have."""
    if len(reported) > MOST_REPORTED:
        raise TypeError(f"expected at most {MOST_REPORTED} reported values, got {len(reported)}")
    return {name: _plain_value(name, value) for name, value in reported.items()}


def _plain_value(name: str, value: Any) -> float | str | bool:
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, str) and len(value) <= MOST_CHARACTERS:
        return value
    if isinstance(value, int | float | np.integer | np.floating) and math.isfinite(value):
        return float(value)
    raise TypeError(
        f"reported `{name[:40]}`: expected a finite number, a truth or at most {MOST_CHARACTERS} characters, got "
        f"{_shown(value)}"
    )


def _shown(value: Any) -> str:
    try:
        return f"{type(value).__name__} {value!r}"[:80]
    except Exception:  # noqa: BLE001 - a `repr` of others
        return type(value).__name__


def _place(error: BaseException, function: Callable[..., Any]) -> str:
    """The innermost line of the function's own file, else of any."""
    steps = traceback.extract_tb(error.__traceback__)
    own = [step for step in steps if step.filename == function.__code__.co_filename] if _has_code(function) else []
    last = (own or list(steps))[-1]
    return f"{last.filename}:{last.lineno}"


def _beginning(function: Callable[..., Any]) -> str:
    if not _has_code(function):
        return repr(function)
    return f"{function.__code__.co_filename}:{function.__code__.co_firstlineno}"


def _has_code(function: Callable[..., Any]) -> bool:
    return hasattr(function, "__code__")


# ---- finding them


class InstalledFunctions:
    """Those of the installed packages. A package is imported when a condition uses one of its functions."""

    def names(self) -> Iterator[str]:
        """All that rules can call, imported or not: names of the language stay as they are."""
        yield from (name for name in registered(GROUP) if name not in NAMES and _NAME.fullmatch(name))

    def find(self, name: str) -> PythonFunction | None:
        """None if no package has it. Raises LookupError, in words, if it cannot be used."""
        points = registered(GROUP).get(name, ())
        if len(points) > 1:
            owners = " and ".join(sorted(map(distribution_of, points)))
            raise LookupError(f"the condition `{name}` is provided by {owners}: uninstall one of them")
        return _loaded(points[0]) if points else None


INSTALLED = InstalledFunctions()


@functools.cache
def _loaded(point: EntryPoint) -> PythonFunction:
    package = distribution_of(point)
    provided = f"the condition `{point.name}` of {package} ({point.value})"
    try:
        function = point.load()
    except (Exception, SystemExit) as error:
        raise LookupError(f"{provided} cannot be loaded: {type(error).__name__}: {error}; {remedy(error)}") from error
    declared = getattr(function, DECLARED, None)
    if not callable(function) or not isinstance(declared, Declared):
        raise LookupError(
            f"{provided} is no condition: expected a function with `@condition(past_s=...)` "
            "of camgraph.stages.rules.conditions"
        )
    return PythonFunction(point.name, package, _hash(point, function), declared, function)


def _hash(point: EntryPoint, function: Callable[..., Any]) -> str:
    """Of the package's version and of the file that holds the function; not of others that it imports."""
    version = point.dist.version if point.dist else ""
    try:
        code = hashlib.sha256(Path(inspect.getfile(inspect.unwrap(function))).read_bytes()).hexdigest()
    except (OSError, TypeError):  # built in, or in an archive
        code = ""
    return digest(distribution_of(point), version, point.value, code)[:16]


# ---- those that end their process


class _Calls:
    """Notes in a file which function is being asked, so that a successor knows in which one the process ended."""

    _ROOM = 64

    def __init__(self) -> None:
        self._memory: mmap.mmap | None = None

    def open(self, path: Path) -> str:
        """Note it in this file from now on; returns the function in which a process before this one has ended."""
        self.close()
        before = path.read_bytes()[: self._ROOM].rstrip(b"\0").decode("ascii", "ignore") if path.exists() else ""
        path.write_bytes(bytes(self._ROOM))
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), self._ROOM)
        return before

    def enter(self, name: str) -> None:
        if self._memory is not None:
            self._memory[: len(name)] = name.encode()

    def leave(self) -> None:
        if self._memory is not None:
            self._memory[: self._ROOM] = _NO_CALL

    def close(self) -> None:
        if self._memory is not None:
            self._memory.close()
            self._memory = None


_NO_CALL = bytes(_Calls._ROOM)
_calls = _Calls()


def _deaths_in(path: Path) -> dict[str, int]:
    """Function -> how many processes have ended in it. Of a damaged file they are counted anew: no start may fail."""
    try:
        return {str(name): int(count) for name, count in json.loads(path.read_bytes()).items()}
    except (FileNotFoundError, ValueError, TypeError, AttributeError):
        return {}


def watch_calls(folder: Path, worker: int) -> list[str]:
    """Note in a folder which function is asked. Functions in which processes of this stage have ended again and again
    are not asked any more: these are returned.
    """
    deaths_path = folder / f"conditions.{worker}.json"
    deaths = _deaths_in(deaths_path)
    ended_in = _calls.open(folder / f"condition.{worker}")
    if ended_in:
        deaths[ended_in] = deaths.get(ended_in, 0) + 1
        write_whole(deaths_path, json.dumps(deaths).encode())
    given_up = sorted(name for name, count in deaths.items() if count >= MOST_DEATHS)
    for name in given_up:
        try:
            function = INSTALLED.find(name)
        except LookupError:
            continue
        if function is not None:
            function.given_up = True
    return given_up
