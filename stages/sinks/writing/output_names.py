"""Chooses the file for a camera's video or tracks: the first free one of its name.

    videos/{camera}/{date}_{time}.mp4  ->  videos/front/2026-11-22_10-44-39.mp4, if that is taken ..._10-44-39.2.mp4

A name is taken by a file, and by the unfinished file (`.part`) of a present or killed writer.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count
from pathlib import Path, PurePath
from typing import Any, Self

from camgraph.pipeline.system.names import ascii_form
from camgraph.pipeline.system.paths import resolve_output, resolve_output_path, why_no_output, why_no_path
from camgraph.pipeline.system.spelling import did_you_mean

PART = ".part"
_FORMS = {"date": "%Y-%m-%d", "time": "%H-%M-%S"}
_PATTERNS = {"date": r"\d{4}-\d\d-\d\d", "time": r"\d\d-\d\d-\d\d"}
PLACEHOLDERS = ("camera", "run", *_FORMS)
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")


def safe_name(text: str) -> str:
    """A file name of a name. Two names never become one: a changed one ends with its checksum."""
    name = re.sub(r"[^A-Za-z0-9_.-]", "_", text).lstrip(".")[:100]
    return name if name and name == text else f"{name}-{zlib.crc32(text.encode()):08x}"


def what_is_wrong(template: str, example: str, *, names_camera: bool = True) -> str:
    """Why this cannot be the path of files of cameras, "" if it can.

    `example`: a right one, to show. `names_camera`: it has to hold {camera}.
    """
    address = why_no_path(template)
    if address:
        return address
    names = _PLACEHOLDER.findall(template)
    expected = f"expected a path such as {example}"
    for name in names:
        if name not in PLACEHOLDERS:
            known = ", ".join(f"{{{each}}}" for each in PLACEHOLDERS)
            return f"there is no {{{name}}}: expected {known}{did_you_mean(name, PLACEHOLDERS)}"
    if names_camera and "camera" not in names:
        return f"without {{camera}} all cameras would write one file: {expected}"
    if not set("{}").isdisjoint(_PLACEHOLDER.sub("", template)):
        return f"braces stand around a placeholder only: {expected}"
    return ""


@dataclass(frozen=True, slots=True)
class OutputNames:
    """The names of the files of one run. `template` is in order (`what_is_wrong`) and ends with a suffix."""

    template: str
    run: str
    base_folder: Path

    def folder(self) -> Path:
        """The folder in front of the first placeholder, made if `resolve_output` makes one. Raises as that does."""
        return self._resolved(self._fixed(), "file")

    def place(self) -> Path:
        """That folder; looks only."""
        return resolve_output_path(str(PurePath(*self._fixed(), "file")), self.base_folder).parent

    @property
    def suffix(self) -> str:
        """The end of each name: `.mp4`."""
        return PurePath(self.template).suffix

    def why_not_writable(self) -> str:
        """Why no file can be made in that folder, "" if one can. Looks only. Raises UserError."""
        return why_no_output(str(PurePath(*self._fixed(), f"file{self.suffix}")), self.base_folder, grows=False)

    def first(self, camera: str, at: datetime) -> Path:
        """The camera's file for one that begins now, without a number. Raises as `folder` does."""
        values = {"camera": safe_name(ascii_form(camera)), "run": safe_name(self.run)}
        values |= {name: at.strftime(form) for name, form in _FORMS.items()}
        rest = "/".join(PurePath(self.template).parts[len(self._fixed()) :])
        return self.folder() / _PLACEHOLDER.sub(lambda found: values[found[1]], rest)

    def unfinished(self, cameras: Iterable[str]) -> Iterator[tuple[str, Path]]:
        """(camera, target) of each unfinished file of these cameras, which does not have its final name yet."""
        folder = self.folder()
        rest = "/".join(PurePath(self.template).parts[len(self._fixed()) :])
        for camera in cameras:
            values = {"camera": re.escape(safe_name(ascii_form(camera))), "run": "[^/]+", **_PATTERNS}
            named = _patterned(rest.removesuffix(self.suffix), values)
            pattern = re.compile(rf"{named}(\.\d+)?{re.escape(self.suffix + PART)}")
            for part in sorted(folder.glob("*/" * rest.count("/") + f"*{self.suffix}{PART}")):
                if pattern.fullmatch(part.relative_to(folder).as_posix()):
                    yield camera, part.with_name(part.name.removesuffix(PART))

    def _fixed(self) -> tuple[str, ...]:
        """The folders in front of the first placeholder."""
        parts = PurePath(self.template).parts[:-1]
        return parts[: next((i for i, part in enumerate(parts) if "{" in part), len(parts))]

    def _resolved(self, folders: tuple[str, ...], name: str) -> Path:
        return resolve_output(str(PurePath(*folders, name)), self.base_folder).parent


def part_of(target: Path) -> Path:
    """The path of `target` until it is complete."""
    return target.with_name(target.name + PART)


def numbered(first: Path, number: int) -> Path:
    """front.mp4, front.2.mp4, front.3.mp4 ..."""
    return first if number == 1 else first.with_name(f"{first.stem}.{number}{first.suffix}")


def free_names(first: Path) -> Iterator[Path]:
    """Names that nothing has, each behind the highest number that is taken, so that they are in order of time."""
    pattern = re.compile(rf"{re.escape(first.stem)}(?:\.(\d+))?{re.escape(first.suffix)}(?:{re.escape(PART)})?")
    found = (pattern.fullmatch(entry.name) for entry in first.parent.iterdir())
    highest = max((int(match[1] or 1) for match in found if match), default=0)
    return (name for number in count(highest + 1) if not taken(name := numbered(first, number)))


@dataclass(slots=True)
class GivenNames:
    """The names that the files of this run have, so that `overwrite` replaces those of earlier runs alone.

    Of each writer (a camera, say) it knows the name without a number, and the highest number behind it. What a writer
    had at another date or time does not come again.
    """

    highest: dict[str, tuple[str, int]] = field(default_factory=dict)

    @classmethod
    def restored(cls, highest: Mapping[str, Sequence[Any]]) -> Self:
        """Those of a process before this one, as `json` returns `highest`."""
        return cls({writer: (first, number) for writer, (first, number) in highest.items()})

    def following(self, writer: str, first: Path, others: Collection[Path] = ()) -> Iterator[Path]:
        """The names that no writer has had and that are not among `others`, whether files of earlier runs have them."""
        known, number = self.highest.get(writer, ("", 0))
        behind = number if known == str(first) else 0
        names = (numbered(first, number) for number in count(behind + 1))
        return (name for name in names if name not in others and not self._has(name))

    def note(self, writer: str, first: Path, name: Path) -> None:
        """`writer` has this file now."""
        self.highest[writer] = str(first), _number_of(first, name)

    def take_back(self, writer: str) -> None:
        """Its last file came to nothing, and the name is free for the next one."""
        first, number = self.highest[writer]
        self.highest[writer] = first, number - 1

    def _has(self, name: Path) -> bool:
        return any(0 < _number_of(Path(first), name) <= number for first, number in self.highest.values())


def _number_of(first: Path, name: Path) -> int:
    """1 for front.mp4, 2 for front.2.mp4; 0 for a name that `numbered` does not make of `first`."""
    number = name.stem.removeprefix(f"{first.stem}.")
    found = 1 if name == first else int(number) if number.isdecimal() else 0
    return found if name == numbered(first, found) else 0


def taken(name: Path) -> bool:
    """Whether there is such a file, finished or not."""
    return name.exists() or name.is_symlink() or part_of(name).exists()


def named(target: Path, *, replace: bool = False) -> Path:
    """Give the part of `target` its name or, if that is taken (and not to be replaced), the next free one; returns
    it. Raises OSError.
    """
    name = target if replace or not target.exists() else next(free_names(target))
    part_of(target).replace(name)
    return name


def _patterned(text: str, patterns: dict[str, str]) -> str:
    """A regular expression for this part of a template."""
    pieces = _PLACEHOLDER.split(text)
    return "".join(patterns[piece] if index % 2 else re.escape(piece) for index, piece in enumerate(pieces))
