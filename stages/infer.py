"""Runs an ONNX model on pictures of many cameras at once.

    items of one call  ──stages.inference.batches──>  rows of each  ──>  one Tensor each: its own rows, fit and owner

What comes out for an item does not depend on what it shared a batch with.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np

from pipeline.cores import usable_cores
from pipeline.errors import BadItem, EnvironmentProblem, Unavailable, UserError
from pipeline.messages import Array
from pipeline.stage import Stage, Upstream
from stages.inference import onnxruntime_engine
from stages.inference.automatic import choose_once
from stages.inference.batches import BatchRuns, Given, Row
from stages.inference.contracts import check_size
from stages.inference.devices import device_of, on_device
from stages.inference.engine import Engine, Opened, ProviderName
from stages.inference.feeds import FeedError
from stages.inference.infer_settings import InferSettings
from stages.inference.model_files import find_libraries, find_model, sha256_of, verify_model
from stages.inference.model_inputs import (
    black,
    first_size,
    inputs_of,
    reading_problems,
    signature_of,
    wanted_picture,
)
from stages.inference.opening import Asked, open_model
from stages.inference.served_models import open_served
from stages.inference.server_settings import ServerSettings
from stages.inference.tuner import Task, tuned
from stages.inference.tuning import Tuned, rows_worth_trying
from stages.messages import Tensor
from stages.vision.foreign_text import shown

__all__ = ["Infer", "InferSettings"]

IMAGE = "image"
# Below this a copy into the message is cheaper than a slot.
LARGE_BYTES = 64 * 1024
_MOST_TUNED = 16


class Infer(Stage[InferSettings]):
    """Tensor of pictures (`image`) -> Tensor of the model's outputs, by their names."""

    settings_type = InferSettings
    inputs = Tensor
    outputs = (Tensor,)
    own_thread = True
    thread_safe = True
    adapts = ("format", "keypoints")

    @classmethod
    def check(cls, settings: InferSettings, base_folder: Path) -> Iterable[tuple[tuple[str, ...], str]]:
        if settings.server:
            yield from settings.server_problems(settings.server, base_folder)
            return
        try:
            path = find_model(settings.file, base_folder)
            signature = signature_of(path, settings, base_folder)
            inputs_of(signature, settings)
            verify_model(path, settings.sha256)
        except FeedError as error:
            yield ("feeds", error.name), str(error)
        except UserError as error:
            yield ("model",), str(error)
        else:
            yield from reading_problems(signature, settings)
        yield from settings.problems()

    @classmethod
    def least_workers(cls, settings: InferSettings) -> int:
        return max(1, len(settings.devices))

    @classmethod
    def usual_threads(cls, settings: InferSettings, workers: int) -> int:
        """With `tune: auto` as many as could be worth it: which of them run the model at once is measured."""
        return max(1, min(_MOST_TUNED, usable_cores() // workers)) if settings.tune and not settings.server else 1

    @classmethod
    def wants(cls, settings: InferSettings, base_folder: Path) -> Mapping[str, Any]:
        if settings.server:
            return {}
        return wanted_picture(signature_of(find_model(settings.file, base_folder), settings, base_folder), settings)

    @classmethod
    def follow(cls, settings: InferSettings, base_folder: Path, upstream: Upstream) -> Mapping[str, Any]:
        pictures = [(name, said["picture"]["size"]) for name, said in upstream.stages.items() if "picture" in said]
        found: dict[str, Any] = {}
        if pictures and not isinstance(size := pictures[-1][1], str):
            found["picture_size"] = settings.picture_size or size
        if settings.server:
            return found
        path = find_model(settings.file, base_folder)
        if pictures:
            signature = signature_of(path, settings, base_folder)
            check_size(inputs_of(signature, settings)[0], settings.file, *pictures[-1])
        return found if settings.sha256 else {**found, "sha256": sha256_of(path)}

    @classmethod
    def describe(cls, settings: InferSettings) -> Mapping[str, Any]:
        return settings.facts()

    def open(self) -> None:
        began = time.monotonic()
        s = self.settings
        self._engine, passed_over = self._open_server(s.server) if s.server else self._open_file(s.file)
        signature = self._engine.signature
        for _, text in reading_problems(signature, s):
            raise UserError(self._say(text))
        self._contract, self._feeds = inputs_of(signature, s)
        sizes = (self._contract.batch,) if self._contract.batch else s.batch_sizes
        fastest = self._tuned(sizes, time.monotonic() - began) if s.tune else Tuned()
        most = min(fastest.rows or s.max_rows, self._engine.most_rows or s.max_rows)
        if sizes and sizes[-1] > (self._engine.most_rows or sizes[-1]):
            raise UserError(
                self._say(f"{s.shown_model} takes at most {most} pictures at once, got batches of {sizes[-1]}")
            )
        self._runs = BatchRuns(
            self._engine,
            self._contract,
            self._feeds,
            sizes=sizes,
            most=most,
            at_once=fastest.at_once,
            stated=s.stated,
        )
        self._nothing = {name: row[:0] for name, row in self._warm_up(sizes).items()}
        for provider, why in passed_over.items():
            self.context.log.warning("provider_unavailable", wanted=provider, runs_on=self._engine.provider, why=why)
        self._say_what_was_opened(round(time.monotonic() - began, 3))

    def _open_server(self, server: ServerSettings) -> Opened:
        return Opened(open_served(server, self.context.base_folder), {})

    def _open_file(self, name: str) -> Opened:
        path = find_model(name, self.context.base_folder)
        verify_model(path, self.settings.sha256)
        asked, not_chosen = self._asked(path)
        self._found = path, asked
        engine, passed_over = open_model(path, asked)
        return Opened(engine, {**not_chosen, **passed_over})

    def _asked(self, path: Path) -> tuple[Asked, Mapping[str, str]]:
        """How the model is to be opened, and which providers have been tried in vain: provider -> why."""
        s, folder = self.settings, self.context.base_folder
        device = device_of(s.devices, self.context.worker)
        options = {name: on_device(s.options.of(name, folder), name, device) for name in get_args(ProviderName)}
        names = tuple(name for name in s.providers if name != "auto")
        asked = Asked(
            names,
            s.intra_op_threads,
            s.precision,
            options,
            find_libraries(s.custom_ops, folder),
            s.io_binding,
            self.context.threads,
        )
        if names:
            return asked, {}
        file = self.context.state_folder / f"provider.{self.context.worker}.json"
        choice = choose_once(file, path, asked, self._black(path))
        return replace(asked, providers=choice.providers), choice.passed_over

    def _tuned(self, sizes: Sequence[int], open_s: float) -> Tuned:
        """The engine becomes the fastest on this CPU; how it is to be run."""
        path, asked = self._found
        if self._engine.provider != onnxruntime_engine.CPU:
            self.context.log.info("model_not_tuned", why=f"{self._engine.provider} runs it, and only the CPU is tuned")
            return Tuned()
        s, usual = self.settings, self._engine
        width, height = size = first_size(self._contract, usual.signature, s)

        def engine(threads: int) -> Engine:
            on_cpu = replace(asked, providers=("cpu",), threads=threads)
            return usual if threads == asked.threads else open_model(path, on_cpu).engine

        def pictures(rows: int) -> Mapping[str, Array]:
            return black(self._contract, self._feeds, rows, size)

        sha256 = s.sha256 or sha256_of(path)
        key = {"model": sha256, "picture": [width, height], "onnxruntime": onnxruntime_engine.version()}
        rows = rows_worth_trying(sizes, s.max_rows)
        task = Task(key, engine, open_s, pictures, self.context.threads, rows)
        found = tuned(task, self.context.log, first_start=self.context.incarnation == 1)
        self._engine = engine(found.threads)
        return found

    def _black(self, path: Path) -> Mapping[str, Array]:
        """The model's inputs for black pictures."""
        signature = signature_of(path, self.settings, self.context.base_folder)
        contract, feeds = inputs_of(signature, self.settings)
        rows = contract.batch or min(self.settings.batch_sizes, default=1)
        return black(contract, feeds, rows, first_size(contract, signature, self.settings))

    def _say_what_was_opened(self, seconds: float) -> None:
        nodes = ", ".join(f"{name} {share:.0%}" for name, share in self._engine.placement.shares().items())
        facts: dict[str, Any] = {"provider": self._engine.provider, "nodes": nodes, "seconds": seconds}
        device = device_of(self.settings.devices, self.context.worker)
        if device is not None:
            there = self._engine.provider in onnxruntime_engine.with_devices()
            facts |= {"worker": self.context.worker, "device" if there else "device_wanted": device}
        self.context.log.info("model_opened", model=self.settings.shown_model, **facts)
        if self.settings.precision != "f32" and not self._engine.provider.startswith("OpenVINO"):
            self.context.log.warning(
                "precision_not_used",
                wanted=self.settings.precision,
                why=f"{self._engine.provider} runs the model, and only OpenVINO calculates in a precision of choice",
            )

    def close(self) -> None:
        self.__dict__.pop("_runs", None)
        self.__dict__.pop("_engine", None)

    def process(self, items: Sequence[Tensor]) -> Iterable[Tensor]:
        pictures = [self._picture(item) for item in items]
        try:
            given = [Given(picture, self._feeds.of_item(item)) for item, picture in zip(items, pictures, strict=True)]
            rows = self._runs.rows(given)
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
                    f"{self.settings.shown_model} takes pictures of {wanted} (width x height), got {width} x {height}; "
                    f"set `size` of the preprocess stage to what the model takes"
                )
            )
        return picture

    def _result(self, item: Tensor, rows: Sequence[Row]) -> Tensor:
        """One item's message. Raises BadItem where a value is not finite: nothing behind could judge it."""
        outputs: Mapping[str, Array] = rows[0] if len(rows) == 1 else self._joined(rows)
        for name, output in outputs.items():
            if output.dtype.kind == "f" and not np.isfinite(output).all():
                raise BadItem("nonfinite", f"output `{shown(name)}` holds a value that is no number")
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

    def _warm_up(self, sizes: Sequence[int]) -> Row:
        """First runs, so that no frame waits for what providers put off until then (TensorRT its engines)."""
        width, height = size = first_size(self._contract, self._engine.signature, self.settings)
        try:
            for count in sizes or (1,):
                nobody = Given(np.zeros((count, height, width, 3), np.uint8), self._feeds.of_black(count, size))
                [rows] = self._runs.rows([nobody])
        except UserError as error:
            raise UserError(self._say(str(error))) from None
        except Unavailable as error:
            raise EnvironmentProblem(self._say(str(error))) from None
        except BadItem as error:
            raise UserError(self._say(f"{self.settings.shown_model} does not run on a picture: {error}")) from None
        return rows[0]

    def _say(self, text: str) -> str:
        return f"stage {self.context.stage}: {text}"
