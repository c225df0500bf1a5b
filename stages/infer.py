"""Runs an ONNX model on pictures of many cameras at once.

    items of one call        a@640x640  b@640x640  c@768x576  d@640x640
    one run for each size    [a b d]    [c]                                 a model of static batch: in steps of it
    one Tensor for each item a  b  c  d                                     its own rows, fit and owner

What comes out for an item does not depend on what it shared a batch with.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from pydantic import Field

from pipeline.errors import BadItem, UserError
from pipeline.messages import Array
from pipeline.paths import ASSET_PREFIX
from pipeline.stage import Context, Settings, Stage, Upstream
from stages.inference.sessions import (
    ORT_ERRORS,
    ModelInput,
    ProviderName,
    find_model,
    inspect_model,
    model_inputs,
    one_line,
    open_session,
    sha256_of,
)
from stages.messages import Tensor
from stages.vision.model_contract import (
    ContractError,
    Converter,
    InputContract,
    Layout,
    Order,
    Overrides,
    derive_contract,
    stated_size,
)

IMAGE = "image"
# Below this a copy into the message is cheaper than a slot.
LARGE_BYTES = 64 * 1024
WARM_UP_SIZE = (256, 256)

Row = dict[str, Array]
"""The model's outputs for one picture, each with a leading axis of 1."""


class InputSettings(Settings):
    """What the model's input is, where the model does not say it."""

    layout: Layout | None = Field(default=None, description="nchw or nhwc; by default where the 3 channels are")
    order: Order | None = Field(default=None, description="rgb or bgr; rgb by default")
    scale: float | None = Field(
        default=None,
        gt=0,
        description="The model's value of a pixel is pixel * scale; by default 1/255 for floats, else 1",
    )


class InferSettings(Settings):
    """Which model, and where it runs."""

    model: str = Field(min_length=1, description="An ONNX file (relative to the graph file, or asset:NAME)")
    providers: tuple[ProviderName, ...] = Field(
        ("cpu",), min_length=1, description="Where it may run, the best first: cuda, tensorrt, openvino, cpu"
    )
    intra_op_threads: int = Field(
        1, ge=1, le=256, description="Threads of one run on the CPU; more of the stage's own `threads` bring more"
    )
    sha256: str | None = Field(
        None,
        pattern="^[0-9a-f]{64}$",
        description="Of the model's file: any other is refused; by default what it is when the run starts",
    )
    input: InputSettings = Field(InputSettings(), description="What the model's input is, where it does not say so")


class Infer(Stage[InferSettings]):
    """Tensor of pictures (`image`) -> Tensor of the model's outputs, by their names."""

    settings_type = InferSettings
    inputs = Tensor
    outputs = (Tensor,)
    own_thread = True
    thread_safe = True

    def __init__(self, settings: InferSettings, context: Context) -> None:
        super().__init__(settings, context)
        self._threads = threading.local()

    @classmethod
    def check(cls, settings: InferSettings, base_folder: Path) -> Iterable[tuple[tuple[str, ...], str]]:
        try:
            path = find_model(settings.model, base_folder)
            read_contract(model_inputs(inspect_model(path)), settings)
            verify_model(path, settings)
        except UserError as error:
            yield ("model",), str(error)

    @classmethod
    def follow(cls, settings: InferSettings, base_folder: Path, upstream: Upstream) -> Mapping[str, str]:
        return {} if settings.sha256 else {"sha256": sha256_of(find_model(settings.model, base_folder))}

    @classmethod
    def describe(cls, settings: InferSettings) -> Mapping[str, Mapping[str, str]]:
        """`model`: its name and hash; its provider only where it is the only one, for of several the best that works
        is taken when the model is opened.
        """
        model = {"name": Path(settings.model.removeprefix(ASSET_PREFIX)).name}
        if settings.sha256:
            model["sha256"] = settings.sha256
        if len(set(settings.providers)) == 1:
            model["provider"] = settings.providers[0]
        return {"model": model}

    def open(self) -> None:
        path = find_model(self.settings.model, self.context.base_folder)
        verify_model(path, self.settings)
        began = time.monotonic()
        opened = open_session(path, self.settings.providers, threads=self.settings.intra_op_threads)
        self._session = opened.session
        self._contract = read_contract(model_inputs(opened.session), self.settings)
        self._names = [output.name for output in opened.session.get_outputs()]
        self._nothing = {name: row[:0] for name, row in self._warm_up().items()}
        for provider in opened.passed_over:
            self.context.log.warning("provider_unavailable", wanted=provider, runs_on=opened.provider)
        seconds = round(time.monotonic() - began, 3)
        self.context.log.info("model_opened", model=str(path), provider=opened.provider, seconds=seconds)

    def close(self) -> None:
        self.__dict__.pop("_session", None)

    def process(self, items: Sequence[Tensor]) -> Iterable[Tensor]:
        rows = self._rows([self._picture(item) for item in items])
        return [self._result(item, own) for item, own in zip(items, rows, strict=True)]

    def _picture(self, item: Tensor) -> Array:
        """uint8 RGB (n, H, W, 3). Raises UserError where the stage before makes something else."""
        picture = item.arrays_by_name.get(IMAGE)
        if picture is None or picture.ndim != 4 or picture.shape[3] != 3 or picture.dtype != np.uint8:
            raise UserError(
                self._say(f"expected pictures named `{IMAGE}`, uint8 (n, H, W, 3): put `preprocess` before")
            )
        height, width = picture.shape[1:3]
        if not self._contract.accepts(width, height):
            wanted = f"{self._contract.width or 'any'} x {self._contract.height or 'any'}"
            raise UserError(
                self._say(
                    f"{self.settings.model} takes pictures of {wanted} (width x height), got {width} x {height}; "
                    f"set `size` of the preprocess stage to what the model takes"
                )
            )
        return picture

    def _rows(self, pictures: Sequence[Array]) -> list[list[Row]]:
        """What the model says of each row of each item: pictures of one size share runs."""
        results: list[list[Row]] = [[] for _ in pictures]
        groups: dict[tuple[int, ...], list[int]] = {}
        for index, picture in enumerate(pictures):
            groups.setdefault(picture.shape[1:3], []).append(index)
        for indexes in groups.values():
            owners = [index for index in indexes for _ in range(len(pictures[index]))]
            for index, row in zip(owners, self._run([pictures[index] for index in indexes]), strict=True):
                results[index].append(row)
        return results

    def _run(self, pictures: Sequence[Array]) -> Iterator[Row]:
        """The rows of pictures of one size, in order; a static batch is filled up with its last row and cut."""
        step = self._contract.batch
        if step is None:
            yield from self._run_once(pictures)
            return
        singles = [picture[i : i + 1] for picture in pictures for i in range(len(picture))]
        for at in range(0, len(singles), step):
            part = singles[at : at + step]
            yield from self._run_once(part + [part[-1]] * (step - len(part)))[: len(part)]

    def _run_once(self, pictures: Sequence[Array]) -> list[Row]:
        count = sum(len(picture) for picture in pictures)
        if count == 0:
            return []
        batch = self._converter().batch(pictures)
        try:
            outputs = self._session.run(self._names, {self._contract.name: batch})
        except ORT_ERRORS as error:
            raise BadItem("model_failed", one_line(error)) from None
        for name, output in zip(self._names, outputs, strict=True):
            if output.ndim == 0 or len(output) != count:
                raise UserError(self._say(f"output `{name}` is {output.shape} for {count} pictures: no axis for them"))
        return [{name: a[i : i + 1] for name, a in zip(self._names, outputs, strict=True)} for i in range(count)]

    def _converter(self) -> Converter:
        """This thread's own: it holds a buffer."""
        converter: Converter | None = getattr(self._threads, "converter", None)
        if converter is None:
            converter = self._threads.converter = Converter(self._contract)
        return converter

    def _result(self, item: Tensor, rows: Sequence[Row]) -> Tensor:
        """One item's message. Raises BadItem where a value is not finite: nothing behind could judge it."""
        outputs: Mapping[str, Array] = rows[0] if len(rows) == 1 else self._joined(rows)
        for name, output in outputs.items():
            if output.dtype.kind == "f" and not np.isfinite(output).all():
                raise BadItem("nonfinite", f"output `{name}` holds a value that is no number")
        return Tensor(item.stamp, self._placed(outputs), item.fit, item.frame_size, item.owner)

    def _joined(self, rows: Sequence[Row]) -> Row:
        if not rows:
            return self._nothing
        return {name: np.concatenate([row[name] for row in rows]) for name in self._names}

    def _placed(self, outputs: Mapping[str, Array]) -> Mapping[str, Array]:
        """Large outputs where the next stage reads them, small ones as they are."""
        if sum(output.nbytes for output in outputs.values()) < LARGE_BYTES:
            return outputs
        placed = self.context.new_arrays({name: (a.shape, a.dtype.name) for name, a in outputs.items()})
        for name, output in outputs.items():
            np.copyto(placed[name], output)
        return placed

    def _warm_up(self) -> Row:
        """A first run, so that no frame waits for what ONNX Runtime puts off until then."""
        stated = stated_size(self._session.get_modelmeta().custom_metadata_map) or WARM_UP_SIZE
        width, height = self._contract.width or stated[0], self._contract.height or stated[1]
        try:
            [row] = self._run([np.zeros((1, height, width, 3), np.uint8)])
        except BadItem as error:
            raise UserError(self._say(f"{self.settings.model} does not run on a picture: {error}")) from None
        return row

    def _say(self, text: str) -> str:
        return f"stage {self.context.stage}: {text}"


def verify_model(path: Path, settings: InferSettings) -> None:
    """Refuse, with a UserError, a file that is not the one that the settings are about: events name it by its hash."""
    found = sha256_of(path) if settings.sha256 else None
    if found != settings.sha256:
        raise UserError(
            f"{path}: its sha256 is {found}, expected {settings.sha256}: it is another model, or was changed during "
            "the run; run the graph anew, or correct `sha256`"
        )


def read_contract(inputs: Sequence[ModelInput], settings: InferSettings) -> InputContract:
    """What a model with these inputs wants. Raises UserError."""
    if len(inputs) != 1:
        names = ", ".join(entry.name for entry in inputs)
        raise UserError(f"{settings.model}: expected a model with one input, a picture; this one has: {names}")
    overrides = Overrides(settings.input.layout, settings.input.order, settings.input.scale)
    try:
        return derive_contract(*inputs[0], overrides)
    except ContractError as error:
        raise UserError(f"{settings.model}: {error}") from None
