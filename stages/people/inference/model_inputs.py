"""The inputs that the `infer` stage gives its model, by its settings and by the model's metadata."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from camgraph.pipeline.errors import ProblemText, UserError
from camgraph.pipeline.messages import Array
from camgraph.stages.people.inference.contracts import read_contract, reading_of, usual_feeds
from camgraph.stages.people.inference.feeds import Feeds, read_feeds
from camgraph.stages.people.inference.infer_settings import InferSettings
from camgraph.stages.people.inference.model.flops import largest_value
from camgraph.stages.people.inference.model.model_files import find_libraries
from camgraph.stages.people.inference.model.model_memory import most_of
from camgraph.stages.people.inference.model.model_safety import checked_model
from camgraph.stages.people.inference.signatures import read_signature, signature_of_file
from camgraph.stages.vision.foreign_text import shown
from camgraph.stages.vision.model_contract import InputContract, declared_size
from camgraph.stages.vision.recognition import Signature
from camgraph.stages.vision.recognition.reading import without_effect
from camgraph.stages.vision.sample_pictures import sample_pictures
from camgraph.stages.vision.window_contract import USUAL_SIZE, WindowContract, converter_of

_FIND_BY_HEIGHT = frozenset({"movenet_multipose"})
"""Formats whose models take any size and find only people of some heights in it: no size is right for all frames."""
WARM_UP_SIZE = (256, 256)
_MOST_BYTES_LOOKED_AT = 512 * 1024**2
"""Reading a larger file once more takes too long, and too much memory."""


def first_size(contract: InputContract, signature: Signature, settings: InferSettings) -> tuple[int, int]:
    """Width and height of a picture to begin with: the size that will come, as far as that is known."""
    usual = USUAL_SIZE if isinstance(contract, WindowContract) else WARM_UP_SIZE
    likely = settings.picture_size or declared_size(signature.metadata) or usual
    return contract.width or likely[0], contract.height or likely[1]


def size_in_words(contract: InputContract, size: tuple[int, int], settings: InferSettings) -> str:
    """The size of a picture to begin with, for people, marked if it is a guess."""
    text = f"{size[0]} x {size[1]}"
    if settings.picture_size is not None or None not in (contract.width, contract.height):
        return text
    return f"{text} to begin with; their size is known when they arrive, unless `picture_size` gives it"


def wanted_picture(signature: Signature, settings: InferSettings) -> Mapping[str, Any]:
    """The settings that the model wants of the stage that makes its pictures, as far as known."""
    if windows := _windows_of(signature, settings):
        wanted = {"steps": windows.height, "skeleton": windows.skeleton, "coordinates": windows.coordinates}
        return {key: value for key, value in wanted.items() if value is not None}
    reading = reading_of(signature, settings.declared)
    size = signature.picture_size() or declared_size(signature.metadata)
    found: dict[str, Any] = {} if size is None else {"size": size}
    if size is None and reading is not None and reading.format in _FIND_BY_HEIGHT:
        found["size"] = "auto"
    if reading is not None:
        picture = reading.picture
        found |= {"fit": picture.fit, "align": picture.align, "pad": picture.pad}
    return found


def _windows_of(signature: Signature, settings: InferSettings) -> WindowContract | None:
    """The windows of keypoints that the model wants, if it wants any; whatever is wrong with it is for `check`."""
    try:
        contract, _ = inputs_of(signature, settings)
    except UserError:
        return None
    return contract if isinstance(contract, WindowContract) else None


def sample(contract: InputContract, feeds: Feeds, rows: int, size: tuple[int, int]) -> Mapping[str, Array]:
    """A model's inputs for this many pictures of this size (width, height), which look a little like frames."""
    pictures = sample_pictures(rows, size)
    windows = isinstance(contract, WindowContract)
    picture = converter_of(contract).batch([pictures.astype(np.float32) / 255 if windows else pictures])
    return {contract.name: picture, **feeds.of_black(rows, size), **feeds.of_run(rows)}


def inputs_of(signature: Signature, settings: InferSettings) -> tuple[InputContract, Feeds]:
    """The picture that the model wants, and the feeds of its other inputs. Raises UserError."""
    feeds = {**usual_feeds(signature, settings.declared), **settings.feeds}
    contract = read_contract(signature, settings.shown_model, settings.input, feeds, settings.declared)
    return read_feeds(signature, contract, settings.shown_model, feeds)


def reading_problems(signature: Signature, settings: InferSettings) -> Iterator[tuple[tuple[str, ...], str]]:
    """Contradictions between the model and the settings: ((path of the key), text)."""
    declared = settings.declared.facts()
    if found := without_effect(settings.declared):
        setting, why = found
        yield (setting,), why
        return
    try:
        if declared:
            read_signature(signature, settings.shown_model, settings.declared)
    except UserError as error:
        yield (next(iter(declared)),), ProblemText.of(error)


def size_problems(contract: InputContract, settings: InferSettings) -> Iterator[tuple[tuple[str, ...], str]]:
    """Declared sizes of pictures that the model does not take: ((path of the key), text)."""
    if settings.picture_size is not None and not contract.accepts(*settings.picture_size):
        wanted = f"{contract.width or 'any'} x {contract.height or 'any'}"
        width, height = settings.picture_size
        yield (
            ("picture_size",),
            f"{settings.shown_model} takes pictures of {wanted} (width x height), got {width} x {height}: remove it; "
            "it is meant for models that take any size",
        )


def memory_problems(
    path: Path, contract: InputContract, settings: InferSettings
) -> Iterator[tuple[tuple[str, ...], str]]:
    """Limits of memory that the model would exceed, as far as that shows: ((path of the key), text)."""
    most = most_of(settings.memory_mb)
    width, height = settings.picture_size or (contract.width, contract.height)
    if most is None or path.stat().st_size > _MOST_BYTES_LOOKED_AT:
        return
    sizes = {contract.name: contract.shape(contract.batch or 1, height, width)} if width and height else {}
    try:
        name, wanted = largest_value(checked_model(path, custom_ops=bool(settings.custom_ops)), sizes)
    except Exception:  # noqa: BLE001 - whatever ONNX makes of a model: what it wants shows when it is opened
        return
    if wanted > most:
        yield (
            ("model",) if settings.memory_mb is None else ("memory_mb",),
            f"{settings.shown_model} wants {wanted >> 20:,} MB for the value `{shown(name)}` alone, and it may take "
            f"{most >> 20:,} MB of memory: set a larger `memory_mb` if you trust the model and the machine has as much",
        )


def signature_of(path: Path, settings: InferSettings, base_folder: Path) -> Signature:
    """The model's signature. Raises UserError if it is none, or one that must not be opened."""
    return signature_of_file(path, find_libraries(settings.custom_ops, base_folder))
