"""A mutant: a piece of source text, what takes its place, and the tests that must fail with it.

A mutant is known by its text and not by a line number, so it outlives changes around it. If the text has moved to
another file, `place_of` finds it there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import yaml

MUTANTS = Path(__file__).with_name("mutants.yaml")


@dataclass(frozen=True, slots=True)
class Mutant:
    """One fault. `breaks`: what a user notices of it. `find` stands exactly once in `file`; `replace` takes its place.

    `file`: from the top of the checkout. `tests`: node ids of pytest, of which at least one fails with the fault.
    """

    id: str
    area: str
    breaks: str
    file: str
    find: str
    replace: str
    tests: tuple[str, ...]


class Place(NamedTuple):
    """The file that holds the text of a mutant, from the top of the checkout; or the `problem`, if there is none."""

    file: str
    problem: str = ""


def read_mutants(path: Path = MUTANTS) -> list[Mutant]:
    """Read the file of mutants. Raises ValueError for one without an effect, without tests, or with a taken id."""
    mutants = [Mutant(**{**row, "tests": tuple(row["tests"])}) for row in yaml.safe_load(path.read_text())]
    twice = [name for name, count in Counter(one.id for one in mutants).items() if count > 1]
    empty = [one.id for one in mutants if one.find == one.replace or not one.find or not one.tests]
    if twice or empty:
        raise ValueError(f"{path}: ids that stand twice: {twice}; mutants without an effect or tests: {empty}")
    return mutants


def place_of(mutant: Mutant, root: Path) -> Place:
    """Find the text of a mutant below `root`: in its file, or else in the only other module that has it once."""
    count = _count(root / mutant.file, mutant.find)
    if count == 1:
        return Place(mutant.file)
    if count > 1:
        return Place("", f"its text stands {count} times in {mutant.file}, expected once: make `find` longer")
    others = [path for path in _modules(root) if _count(path, mutant.find) == 1]
    if len(others) == 1:
        return Place(str(others[0].relative_to(root)))
    if not others:
        return Place("", f"its text stands in no module any more (it was in {mutant.file}): correct `find`")
    found = ", ".join(str(path.relative_to(root)) for path in others)
    return Place("", f"its text is not in {mutant.file}, and in several others ({found}): correct `file`")


def mutated(text: str, mutant: Mutant) -> str:
    """The text of a module with the fault in it."""
    return text.replace(mutant.find, mutant.replace, 1)


def _count(path: Path, text: str) -> int:
    return path.read_text().count(text) if path.is_file() else 0


def _modules(root: Path) -> Iterator[Path]:
    """All modules of a checkout but its tests: src/camgraph links to the other packages, and links are not followed."""
    for package in sorted([*root.glob("*/__init__.py"), *root.glob("src/*/__init__.py")]):
        yield from sorted(package.parent.rglob("*.py"))
