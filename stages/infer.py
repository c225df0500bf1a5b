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
from typing import Annotated, Any

import numpy as np
from pydantic import Field, field_validator

from pipeline.errors import BadItem, UserError
from pipeline.messages import Array
from pipeline.paths import ASSET_PREFIX
from pipeline.stage import Context, Settings, Stage, Upstream
from stages.inference.contracts import InputSettings, check_size, mixed_output, read_contract, reading_of
from stages.inference.engine import ProviderName, RunFailed
from stages.inference.model_files import find_libraries, find_model, sha256_of, verify_model
from stages.inference.opening import Asked, open_model
from stages.inference.openvino_engine import Precision
from stages.inference.options import ProviderOptions
from stages.inference.signatures import signature_of_file
from stages.messages import Tensor
from stages.vision.batching import runs_of
from stages.vision.decoding.end2end import joined_rows, rows_by_image
from stages.vision.model_contract import (
    Converter,
    stated_size,
)
from stages.vision.recognition import Signature

IMAGE = "image"
# Below this a copy into the message is cheaper than a slot.
LARGE_BYTES = 64 * 1024
WARM_UP_SIZE = (256, 256)

Row = dict[str, Array]
"""The model's outputs for one picture, each with a leading axis of 1."""


class InferSettings(Settings):
    """Which model, and where it runs."""

    model: str = Field(min_length=1, description="An ONNX file (relative to the graph file, or asset:NAME)")
    providers: tuple[ProviderName, ...] = Field(
        ("cpu",),
        min_length=1,
        description="Where it may run, the best first: tensorrt, cuda, openvino, directml, coreml, cpu",
    )
    intra_op_threads: int = Field(
        1, ge=1, le=256, description="Threads of one run on the CPU; more of the stage's own `threads` bring more"
    )
    precision: Precision = Field(
        "f32", description="In which OpenVINO calculates; bf16 is faster on processors that have it, and less exact"
    )
    max_rows: int = Field(
        32, ge=1, le=4096, description="At most so many pictures in one run of the model: frames may have many crops"
    )
    batch_sizes: tuple[Annotated[int, Field(ge=1, le=4096)], ...] = Field(
        (),
        description="Pictures of one run, ascending: what comes is filled up to the next of these, where each new "
        "number is expensive (TensorRT, CUDA graphs); by default any number",
    )
    options: ProviderOptions = Field(ProviderOptions(), description="What providers are told, by their names")
    custom_ops: tuple[str, ...] = Field(
        (), description="Shared libraries with operators that the model brings: their code runs in this process"
    )
    sha256: str | None = Field(
        None,
        pattern="^[0-9a-f]{64}$",
        description="Of the model's file: any other is refused; by default what it is when the run starts",
    )
    input: InputSettings = Field(InputSettings(), description="What the model's input is, where it does not say so")

    @field_validator("batch_sizes")
    @classmethod
    def _ascend(cls, sizes: tuple[int, ...]) -> tuple[int, ...]:
        if list(sizes) != sorted(set(sizes)):
            raise ValueError(f"expected different sizes in ascending order, got {', '.join(map(str, sizes))}")
        return sizes


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
            read_contract(signature_of(path, settings, base_folder), settings.model, settings.input)
            verify_model(path, settings.sha256)
        except UserError as error:
            yield ("model",), str(error)

    @classmethod
    def wants(cls, settings: InferSettings, base_folder: Path) -> Mapping[str, Any]:
        signature = signature_of(find_model(settings.model, base_folder), settings, base_folder)
        reading = reading_of(signature)
        size = signature.picture_size() or stated_size(signature.metadata)
        found: dict[str, Any] = {} if size is None else {"size": size}
        if reading is not None:
            found |= {"align": reading.picture.align, "pad": reading.picture.pad}
        return found

    @classmethod
    def follow(cls, settings: InferSettings, base_folder: Path, upstream: Upstream) -> Mapping[str, str]:
        path = find_model(settings.model, base_folder)
        pictures = [(name, said["picture"]["size"]) for name, said in upstream.stages.items() if "picture" in said]
        if pictures:
            signature = signature_of(path, settings, base_folder)
            check_size(read_contract(signature, settings.model, settings.input), settings.model, *pictures[-1])
        return {} if settings.sha256 else {"sha256": sha256_of(path)}

    @classmethod
    def describe(cls, settings: InferSettings) -> Mapping[str, Mapping[str, Any]]:
        """`model`: its name and hash; its provider only where it is the only one, for of several the best that works
        is taken when the model is opened.
        """
        model = {"name": Path(settings.model.removeprefix(ASSET_PREFIX)).name}
        if settings.sha256:
            model["sha256"] = settings.sha256
        if len(set(settings.providers)) == 1:
            model["provider"] = settings.providers[0]
        return {"model": model, "model_file": {"path": settings.model, "custom_ops": settings.custom_ops}}

    def open(self) -> None:
        path = find_model(self.settings.model, self.context.base_folder)
        verify_model(path, self.settings.sha256)
        began = time.monotonic()
        s = self.settings
        options = {name: s.options.of(name, self.context.base_folder) for name in s.providers}
        libraries = find_libraries(s.custom_ops, self.context.base_folder)
        asked = Asked(s.providers, s.intra_op_threads, s.precision, options, libraries)
        self._engine, passed_over = open_model(path, asked)
        signature = self._engine.signature
        self._contract = read_contract(signature, self.settings.model, self.settings.input)
        self._mixed = mixed_output(signature)
        self._sizes = (self._contract.batch,) if self._contract.batch else self.settings.batch_sizes
        self._names = [port.name for port in signature.outputs]
        self._nothing = {name: row[:0] for name, row in self._warm_up().items()}
        for provider, why in passed_over.items():
            self.context.log.warning("provider_unavailable", wanted=provider, runs_on=self._engine.provider, why=why)
        seconds = round(time.monotonic() - began, 3)
        provider, shares = self._engine.provider, self._engine.placement.shares()
        nodes = ", ".join(f"{name} {share:.0%}" for name, share in shares.items())
        self.context.log.info("model_opened", model=str(path), provider=provider, nodes=nodes, seconds=seconds)

    def close(self) -> None:
        self.__dict__.pop("_engine", None)

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
        """The rows of pictures of one size, in order; a run that is too small is filled up with its last row."""
        rows = sum(map(len, pictures))
        runs = list(runs_of(rows, most=self.settings.max_rows, sizes=self._sizes))
        if len(runs) == 1 and runs[0].rows == rows:
            yield from self._run_once(pictures)
            return
        singles = [picture[i : i + 1] for picture in pictures for i in range(len(picture))]
        for run in runs:
            own = singles[run.first : run.first + run.own]
            yield from self._run_once([*own, *[own[-1]] * (run.rows - run.own)])[: run.own]

    def _run_once(self, pictures: Sequence[Array]) -> list[Row]:
        count = sum(len(picture) for picture in pictures)
        if count == 0:
            return []
        batch = self._converter().batch(pictures)
        try:
            outputs = self._engine.run({self._contract.name: batch})
        except RunFailed as error:
            raise BadItem("model_failed", str(error)) from None
        each = [self._each(name, output, count) for name, output in outputs.items()]
        return [dict(zip(self._names, parts, strict=True)) for parts in zip(*each, strict=True)]

    def _each(self, name: str, output: Array, count: int) -> Sequence[Array]:
        """What an output says of each of ``count`` pictures, with a leading axis of 1."""
        if name == self._mixed:
            return rows_by_image(output, count)
        if output.ndim == 0 or len(output) != count:
            raise UserError(self._say(f"output `{name}` is {output.shape} for {count} pictures: no axis for them"))
        return [output[index : index + 1] for index in range(count)]

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
        return Tensor(item.stamp, self._placed(outputs), item.fit, item.frame_size, item.picture_size, item.owner)

    def _joined(self, rows: Sequence[Row]) -> Row:
        if not rows:
            return self._nothing
        return {name: self._stacked(name, [row[name] for row in rows]) for name in self._names}

    def _stacked(self, name: str, parts: list[Array]) -> Array:
        return joined_rows(parts) if name == self._mixed else np.concatenate(parts)

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
        stated = stated_size(self._engine.signature.metadata) or WARM_UP_SIZE
        width, height = self._contract.width or stated[0], self._contract.height or stated[1]
        try:
            [row] = self._run([np.zeros((1, height, width, 3), np.uint8)])
        except BadItem as error:
            raise UserError(self._say(f"{self.settings.model} does not run on a picture: {error}")) from None
        return row

    def _say(self, text: str) -> str:
        return f"stage {self.context.stage}: {text}"


def signature_of(path: Path, settings: InferSettings, base_folder: Path) -> Signature:
    """What the model says of itself. Raises UserError where it is none, or one that must not be opened."""
    return signature_of_file(path, find_libraries(settings.custom_ops, base_folder))
