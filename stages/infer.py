"""Runs an ONNX model on pictures of many cameras at once.

    items of one call  ──stages.inference.batches──>  rows of each  ──>  one Tensor each: its own rows, fit and owner

What comes out for an item does not depend on what it shared a batch with.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.errors import BadItem, UserError
from pipeline.messages import Array
from pipeline.paths import ASSET_PREFIX
from pipeline.stage import Stage, Upstream
from stages.inference.batches import BatchRuns, Row
from stages.inference.contracts import check_size, read_contract, reading_of
from stages.inference.infer_settings import InferSettings
from stages.inference.model_files import find_libraries, find_model, sha256_of, verify_model
from stages.inference.opening import Asked, open_model
from stages.inference.signatures import signature_of_file
from stages.messages import Tensor
from stages.vision.model_contract import stated_size
from stages.vision.recognition import Signature

__all__ = ["Infer", "InferSettings"]

IMAGE = "image"
# Below this a copy into the message is cheaper than a slot.
LARGE_BYTES = 64 * 1024
WARM_UP_SIZE = (256, 256)


class Infer(Stage[InferSettings]):
    """Tensor of pictures (`image`) -> Tensor of the model's outputs, by their names."""

    settings_type = InferSettings
    inputs = Tensor
    outputs = (Tensor,)
    own_thread = True
    thread_safe = True

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
        sizes = (self._contract.batch,) if self._contract.batch else self.settings.batch_sizes
        self._runs = BatchRuns(self._engine, self._contract, sizes=sizes, most=self.settings.max_rows)
        self._nothing = {name: row[:0] for name, row in self._warm_up().items()}
        for provider, why in passed_over.items():
            self.context.log.warning("provider_unavailable", wanted=provider, runs_on=self._engine.provider, why=why)
        seconds = round(time.monotonic() - began, 3)
        provider, shares = self._engine.provider, self._engine.placement.shares()
        nodes = ", ".join(f"{name} {share:.0%}" for name, share in shares.items())
        self.context.log.info("model_opened", model=str(path), provider=provider, nodes=nodes, seconds=seconds)

    def close(self) -> None:
        self.__dict__.pop("_runs", None)
        self.__dict__.pop("_engine", None)

    def process(self, items: Sequence[Tensor]) -> Iterable[Tensor]:
        pictures = [self._picture(item) for item in items]
        try:
            rows = self._runs.rows(pictures)
        except UserError as error:
            raise UserError(self._say(str(error))) from None
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

    def _result(self, item: Tensor, rows: Sequence[Row]) -> Tensor:
        """One item's message. Raises BadItem where a value is not finite: nothing behind could judge it."""
        outputs: Mapping[str, Array] = rows[0] if len(rows) == 1 else self._joined(rows)
        for name, output in outputs.items():
            if output.dtype.kind == "f" and not np.isfinite(output).all():
                raise BadItem("nonfinite", f"output `{name}` holds a value that is no number")
        return Tensor(item.stamp, self._placed(outputs), item.fit, item.frame_size, item.picture_size, item.owner)

    def _joined(self, rows: Sequence[Row]) -> Row:
        return self._runs.joined(rows) if rows else self._nothing

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
            [[row]] = self._runs.rows([np.zeros((1, height, width, 3), np.uint8)])
        except UserError as error:
            raise UserError(self._say(str(error))) from None
        except BadItem as error:
            raise UserError(self._say(f"{self.settings.model} does not run on a picture: {error}")) from None
        return row

    def _say(self, text: str) -> str:
        return f"stage {self.context.stage}: {text}"


def signature_of(path: Path, settings: InferSettings, base_folder: Path) -> Signature:
    """What the model says of itself. Raises UserError where it is none, or one that must not be opened."""
    return signature_of_file(path, find_libraries(settings.custom_ops, base_folder))
