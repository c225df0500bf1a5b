"""Tries mutants in a copy of the checkout: the tests pass without them, and fail with each.

checkout --files--> copy --all tests--> pass
                     |
                     '--one fault, its tests--> caught by the first that fails, or not caught --taken back--> copy
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from camgraph.tools.lab.proofs.mutants.mutant import Mutant, mutated, place_of

LONGEST_TEST_S = 60
"""A test that takes longer with a fault in the code counts as failed: it may wait for something that never comes."""
_PASSED, _FAILED = 0, 1
"""Exit statuses of pytest."""
_MISSING = ("ERROR: not found: ", "ERROR: file or directory not found: ")
_TAIL = 5
_DATA = "CAMGRAPH_TEST_DATA"


@dataclass(frozen=True, slots=True)
class Tried:
    """What became of a mutant: the test that caught it, or the `problem`. `seconds`: how long its tests took."""

    mutant: Mutant
    caught_by: str = ""
    problem: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Proof:
    """What became of all. `unsound`: named tests that are missing, or fail without a mutant; then none was tried."""

    tried: Sequence[Tried]
    unsound: Sequence[str] = ()
    tests: int = 0
    unchanged_s: float = 0.0
    """How long all tests took without a mutant."""

    @property
    def wrong(self) -> list[str]:
        """The reasons why it is no proof; empty if each mutant was caught."""
        problems = [f"{one.mutant.id}: {one.problem}" for one in self.tried if one.problem]
        return [*self.unsound, *problems]


class _Ran(NamedTuple):
    status: int
    lines: list[str]

    def named(self, *heads: str) -> list[str]:
        """The tests that the summary names behind one of these words."""
        found = [line.removeprefix(head) for line in self.lines for head in heads if line.startswith(head)]
        return [text.partition(" - ")[0].strip() for text in found]


def prove(root: Path, mutants: Sequence[Mutant], say: Callable[[Tried], object] = lambda _: None) -> Proof:
    """Try each mutant in a copy of the checkout at `root`; `say` is called with each result."""
    # A short name: sockets of tests lie below it.
    with tempfile.TemporaryDirectory(prefix="cgm") as name:
        copy = Path(name) / "copy"
        copy_checkout(root, copy)
        trial = _Trial(copy, Path(name) / "t", _environment(root, copy))
        tests = list(dict.fromkeys(test for one in mutants for test in one.tests))
        begun_s = time.monotonic()
        unsound = trial.why_unsound(tests)
        unchanged_s = time.monotonic() - begun_s
        tried: list[Tried] = []
        for mutant in () if unsound else mutants:
            tried.append(trial.of(mutant))
            say(tried[-1])
    return Proof(tried, unsound, len(tests), unchanged_s)


def copy_checkout(root: Path, copy: Path) -> None:
    """Copy all files of a checkout that git knows or does not ignore: code that was just moved is not known to git yet.

    Raises subprocess.CalledProcessError if `root` is no checkout.
    """
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=root, capture_output=True, text=True, check=True).stdout  # noqa: S603 - ours
    for name in filter(None, names.split("\0")):
        source, target = root / name, copy / name
        if source.is_symlink() or source.is_file():  # else it was removed, and git does not know that yet
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target, follow_symlinks=False)


def _environment(root: Path, copy: Path) -> dict[str, str]:
    """The variables for pytest in the copy: all processes that tests start must import the copy as well."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    data = root.parent / "shared" / "data"  # where the tests look for data beside a checkout
    beside = {_DATA: str(data)} if data.is_dir() else {}
    return {**beside, **kept, "PYTHONPATH": os.pathsep.join([str(copy / "src"), str(copy / "tests" / "plugin")])}


class _Trial:
    """Runs tests in the copy. `temporary`: the folder for files of the tests, which each run empties."""

    def __init__(self, copy: Path, temporary: Path, environment: Mapping[str, str]) -> None:
        self._copy = copy
        self._temporary = temporary
        self._environment = environment
        self._changes = 0

    def why_unsound(self, tests: Sequence[str]) -> list[str]:
        """The named tests that do not exist or do not pass, each with the reason."""
        ran = self._run(*tests)
        if ran.status == _PASSED:
            return []
        missing = [f"there is no test {name.removeprefix(f'{self._copy}/')}" for name in ran.named(*_MISSING)]
        failing = [f"without a mutant, {name} does not pass" for name in ran.named("FAILED ", "ERROR ")]
        return [*missing, *failing] or [f"pytest ended with status {ran.status}", *ran.lines[-_TAIL:]]

    def of(self, mutant: Mutant) -> Tried:
        """Put the fault in, run its tests up to the first that fails, and take the fault out again."""
        place = place_of(mutant, self._copy)
        if place.problem:
            return Tried(mutant, problem=place.problem)
        begun_s = time.monotonic()
        with self._changed(self._copy / place.file, mutant):
            ran = self._run("-x", "-o", f"timeout={LONGEST_TEST_S}", *mutant.tests)
        took_s = time.monotonic() - begun_s
        failed = ran.named("FAILED ", "ERROR ")
        if ran.status == _PASSED:
            return Tried(mutant, problem="NOT CAUGHT: its tests pass", seconds=took_s)
        if ran.status != _FAILED or not failed:  # a module that cannot be imported says nothing about its tests
            why = f"its tests did not run (status {ran.status} of pytest): {' '.join(ran.lines[-_TAIL:])}"
            return Tried(mutant, problem=why, seconds=took_s)
        return Tried(mutant, caught_by=failed[0], seconds=took_s)

    @contextmanager
    def _changed(self, path: Path, mutant: Mutant) -> Iterator[None]:
        before, found = path.read_text(), path.stat()
        path.write_text(mutated(before, mutant))
        # Python compiles a module anew if its size or its second of change differs: no two changes share a second.
        self._changes += 1
        os.utime(path, (found.st_atime, found.st_mtime + self._changes))
        try:
            yield
        finally:
            path.write_text(before)
            os.utime(path, (found.st_atime, found.st_mtime))

    def _run(self, *arguments: str) -> _Ran:
        pytest = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rfE", "--tb=no"]
        ran = subprocess.run(  # noqa: S603 - our own interpreter
            [*pytest, f"--basetemp={self._temporary}", *arguments],
            cwd=self._copy,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
        return _Ran(ran.returncode, ran.stdout.splitlines())
