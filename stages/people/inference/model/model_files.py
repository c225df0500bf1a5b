"""Model files: their paths and their identity."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from camgraph.pipeline.errors import SettingError, UserError
from camgraph.pipeline.system.paths import ASSET_PREFIX, instead_of_file, resolve
from camgraph.stages.assets import MODELS, how_to_get
from camgraph.stages.people.inference.model.model_safety import weight_files

_PIECE = 1 << 20


def find_model(text: str, base_folder: Path) -> Path:
    """The model's file. Raises UserError if there is none."""
    path = resolve(text, base_folder)
    other = instead_of_file(path)
    if path.is_file() and not other:
        return path
    if text.startswith(ASSET_PREFIX):
        raise UserError(
            f"the model {text} is not on this machine ({path}); {how_to_get(text, MODELS)}", error_id="asset-missing"
        )
    raise UserError(
        f"{path} is {other}, expected an ONNX file" if other else f"no such model file: {path}",
        error_id="model-missing",
    )


def find_libraries(names: Iterable[str], base_folder: Path) -> tuple[Path, ...]:
    """Shared libraries with operators. Raises UserError if one is missing."""
    found = tuple(resolve(name, base_folder) for name in names)
    missing = [str(path) for path in found if not path.is_file() or instead_of_file(path)]
    if missing:
        text = f"no such library of operators: {', '.join(missing)}"
        raise SettingError(("custom_ops",), text, error_id="file-missing")
    return found


def stored_bytes(path: Path) -> int:
    """Of the file, and of the files beside it that hold its weights. Raises UserError if it is no model."""
    return sum(part.stat().st_size for part in (path, *weight_files(path)))


def sha256_of(path: Path) -> str:
    """Hash of the file and, if its weights lie in files beside it, of these too, one after the other by name.

    Raises UserError if one cannot be read.
    """
    digest = hashlib.sha256()
    for part in (path, *weight_files(path)):
        try:
            with part.open("rb") as file:
                while piece := file.read(_PIECE):
                    digest.update(piece)
        except OSError as error:
            raise UserError(
                f"{part}: cannot be read: {error.strerror}; expected an ONNX file", error_id="model-unreadable"
            ) from None
    return digest.hexdigest()


@contextmanager
def unchanged(path: Path) -> Iterator[None]:
    """Refuse, with a UserError, a model whose files are replaced or written to meanwhile.

    Holds while a model is verified and then opened, perhaps several times: the verified file is the opened one.
    """
    parts = (path, *weight_files(path))
    before = [_identity_of(part) for part in parts]
    yield
    if [_identity_of(part) for part in parts] != before:
        raise UserError(
            f"{path}: it was changed while it was being opened; leave it as it is, and open it again",
            error_id="model-changed",
        )


def _identity_of(part: Path) -> tuple[int, ...]:
    """Another one if the file is another, or was written to; () while it is away."""
    try:
        found = part.stat()
    except OSError:
        return ()
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


def verify_model(path: Path, sha256: str | None) -> None:
    """Refuse, with a UserError, a file of another hash than this one, if any: events name the model by it."""
    found = sha256_of(path) if sha256 else None
    if found != sha256:
        raise SettingError(
            ("sha256",),
            f"{path}: its sha256 is {found}, expected {sha256}: it is another model, or has been changed since; "
            "run the graph anew, or correct `sha256`",
            error_id="model-changed",
        )
