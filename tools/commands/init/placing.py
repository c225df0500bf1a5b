"""Puts files into the user's folder: all of them or none. Pictures of a trial are there at once, and go if it ends."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import cv2

from camgraph.pipeline.errors import EnvironmentProblem, UserError
from camgraph.pipeline.system.file_access import kept_from_others
from camgraph.pipeline.system.names import ascii_form
from camgraph.stages.vision.planes import U8
from camgraph.tools.commands.init.texts import IGNORED, SECRETS

_KEPT_FROM_GIT = (SECRETS, "/footage/", "/events.jsonl")


class Folder:
    """The folder of a graph to be. What is put there before `place` goes again if the block ends without it."""

    def __init__(self, path: Path, *, replaces: bool) -> None:
        self.path = path
        self.replaces = replaces
        self._pictures: list[Path] = []
        self._made: list[Path] = []
        self._is_placed = False

    def present(self, names: Sequence[str]) -> list[str]:
        """Those of these files that are there already."""
        return [name for name in names if os.path.lexists(self.path / name)]

    def write_picture(self, camera: str, picture: U8) -> Path:
        """As NAME.jpg; beside the picture of somebody else, with a number."""
        self._make()
        form, number = ascii_form(camera), 1
        path = self.path / f"{form}.jpg"
        while os.path.lexists(path) and path not in self._pictures and not self.replaces:
            number += 1
            path = self.path / f"{form}-{number}.jpg"
        data = bytes(cv2.imencode(".jpg", picture)[1])
        with _understood(path), kept_from_others(), self._staged({path.name: data}) as staged:
            (staged / path.name).replace(path)
        if path not in self._pictures:
            self._pictures.append(path)
        return path

    def drop_picture(self, path: Path) -> None:
        """It shows the wrong camera."""
        path.unlink(missing_ok=True)

    @contextmanager
    def staged(self, texts: Mapping[str, str]) -> Iterator[Path]:
        """A folder beside the place of the files, which has them until the block ends: to be checked, then placed."""
        self._make()
        whole = dict(texts) | {IGNORED: self._ignored()}
        with _understood(self.path), self._staged({name: text.encode() for name, text in whole.items()}) as staged:
            yield staged

    @contextmanager
    def _staged(self, files: Mapping[str, bytes]) -> Iterator[Path]:
        with tempfile.TemporaryDirectory(prefix=".camgraph-init-", dir=self.path) as folder:
            for name, data in files.items():
                mode = 0o600 if name == SECRETS else 0o666
                descriptor = os.open(Path(folder) / name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode)
                with open(descriptor, "wb") as file:  # noqa: PTH123 - it is open already
                    file.write(data)
            yield Path(folder)

    def place(self, staged: Path) -> None:
        """Move all staged files to their places; if one cannot go there, those of before are there again."""
        with _understood(self.path), ExitStack() as undo:
            for new in sorted(staged.iterdir()):
                undo.callback(self._one_placed(new))
            undo.pop_all()
            self._is_placed = True

    def _one_placed(self, new: Path) -> _Undo:
        """Place it; the result takes that back."""
        place, kept = self.path / new.name, new.with_name(f"{new.name}.before")
        if place.is_dir() and not place.is_symlink():
            raise UserError(f"{place} is a folder: move it away, or name another folder", error_id="file-exists")
        if os.path.lexists(place):
            os.replace(place, kept)  # noqa: PTH105 - also of a link
            undo = _Undo(kept, place)
        else:
            undo = _Undo(None, place)
        try:
            new.replace(place)
        except BaseException:
            undo()
            raise
        return undo

    def _ignored(self) -> str:
        """What git shall leave alone, behind what is written there already."""
        try:
            before = (self.path / IGNORED).read_text("utf-8")
        except (OSError, UnicodeDecodeError):
            before = ""
        wanted = (*_KEPT_FROM_GIT, *(f"/{picture.name}" for picture in self._pictures if picture.exists()))
        new = [line for line in wanted if line not in before.split("\n")]
        return before + ("\n" if before and not before.endswith("\n") else "") + "".join(f"{line}\n" for line in new)

    def _make(self) -> None:
        """The folder, and those that it lies in. Raises UserError or EnvironmentProblem."""
        missing = [one for one in (self.path, *self.path.parents) if not os.path.lexists(one)]
        with _understood(self.path):
            for one in reversed(missing):
                one.mkdir()
                self._made.append(one)

    def __enter__(self) -> Folder:
        if os.path.lexists(self.path) and not self.path.is_dir():
            raise UserError(f"{self.path} is no folder: name another one", error_id="file-kind")
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_placed:
            return
        for picture in self._pictures:
            with suppress(OSError):
                picture.unlink(missing_ok=True)
        for one in reversed(self._made):
            with suppress(OSError):
                one.rmdir()


class _Undo:
    """Brings the file of before back, or takes the new one away."""

    def __init__(self, kept: Path | None, place: Path) -> None:
        self._kept, self._place = kept, place

    def __call__(self) -> None:
        if self._kept is not None:
            self._kept.replace(self._place)
        else:
            self._place.unlink(missing_ok=True)


@contextmanager
def _understood(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise EnvironmentProblem(
            f"{path} cannot be written: {error.strerror or error}", error_id="cannot-write"
        ) from None
