"""Runs an ONNX model on pictures of many cameras at once, or on windows of keypoints.

    items of one call  ──inference.batches──>  rows of each  ──>  one Tensor each: its own rows, fit and owner

The outputs for an item do not depend on the other items of its batch.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from camgraph.pipeline.errors import BadItem, EnvironmentProblem, ProblemText, SettingError, Unavailable, UserError
from camgraph.pipeline.messages import Array
from camgraph.pipeline.stage import Counts, FrameSize, Stage, Upstream
from camgraph.stages.facts import Facts
from camgraph.stages.messages import Tensor
from camgraph.stages.people.inference.batches import BatchRuns, Given, Row
from camgraph.stages.people.inference.contracts import check_kind, check_size, pixel_doubts
from camgraph.stages.people.inference.engines import onnxruntime_engine
from camgraph.stages.people.inference.engines.devices import device_of
from camgraph.stages.people.inference.engines.engine import WrongOutput
from camgraph.stages.people.inference.infer_settings import InferSettings
from camgraph.stages.people.inference.model.candidate_selection import Selection
from camgraph.stages.people.inference.model.model_files import find_libraries, find_model, sha256_of, verify_model
from camgraph.stages.people.inference.model.model_memory import ModelMemory, beyond, most_of
from camgraph.stages.people.inference.model_inputs import (
    first_size,
    inputs_of,
    memory_problems,
    reading_problems,
    signature_of,
    size_in_words,
    size_problems,
    wanted_picture,
)
from camgraph.stages.people.inference.model_service import NAME as SOCKET_NAME
from camgraph.stages.people.inference.model_service import ModelService
from camgraph.stages.people.inference.output_checks import WRONG_NUMBERS, WRONG_SHAPES, WrongShapes, check_numbers
from camgraph.stages.people.inference.readiness import ReadyModel, ready_model, shares_of_operations, usual_threads
from camgraph.stages.people.inference.signatures import signature_of_file, why_not_analysed
from camgraph.stages.vision.letterbox import Size
from camgraph.stages.vision.run_sizes import engine_order

__all__ = ["Infer", "InferSettings"]

IMAGE = "image"
# Below this a copy into the message is cheaper than a slot.
LARGE_BYTES = 64 * 1024
_MOST = 0.5
"""Of a model's operations; whoever runs fewer of them is not the one who runs it."""
_BUILD_S = 1800.0
"""The limit for building one engine of TensorRT, which usually takes minutes."""
_ENGINES = 2
"""How many of them all sizes of batches need."""


class Infer(Stage[InferSettings]):
    """Tensor of pictures (`image`) or windows (`keypoints`) -> Tensor of the model's outputs, by their names."""

    settings_type = InferSettings
    inputs = Tensor
    outputs = (Tensor,)
    counts: ClassVar[Counts] = {
        **WRONG_SHAPES,
        **WRONG_NUMBERS,
        "dropped.model_failed": "The model failed on this frame, or had too little memory for it.",
        "skipped.candidates": "More candidates of a picture scored enough than leave the GPU: people may be missing. "
        "This counts pictures; they go on.",
    }
    own_thread = True
    thread_safe = True
    lighter = "a smaller picture, `max_fps` or a lighter model"
    adapts = ("format", "keypoints", "point_values", "outputs")
    adapts_to_all = ("candidates",)

    @classmethod
    def check(cls, settings: InferSettings, base_folder: Path) -> Iterable[tuple[tuple[str, ...], str]]:
        if settings.server:
            yield from settings.server_problems(settings.server, base_folder)
            return
        try:
            find_libraries(settings.custom_ops, base_folder)
        except UserError as error:
            yield ("custom_ops",), ProblemText.of(error)
        try:
            path = find_model(settings.file, base_folder)
            signature = signature_of(path, settings, base_folder)
            contract, _ = inputs_of(signature, settings)
            verify_model(path, settings.sha256)
        except SettingError as error:
            yield error.path, ProblemText.of(error)
        except UserError as error:
            yield ("model",), ProblemText.of(error)
        else:
            yield from reading_problems(signature, settings)
            yield from size_problems(contract, settings)
            yield from memory_problems(path, contract, settings)
        yield from settings.problems()

    @classmethod
    def remarks(
        cls, settings: InferSettings, base_folder: Path, cameras: Mapping[str, FrameSize | None]
    ) -> Iterable[str]:
        """That a model was not opened to look at it, or does not show how it wants its pixels."""
        if settings.server:
            return
        path, libraries = find_model(settings.file, base_folder), find_libraries(settings.custom_ops, base_folder)
        if why := why_not_analysed(path, libraries):
            yield f"{settings.file} is {why}; its inputs and outputs are those that the file states"
        for doubt in pixel_doubts(signature_of_file(path, libraries), settings.input, settings.declared):
            yield f"{settings.file}: {doubt} (`input`)"

    @classmethod
    def least_workers(cls, settings: InferSettings) -> int:
        return max(1, len(settings.devices))

    @classmethod
    def usual_threads(cls, settings: InferSettings, workers: int) -> int:
        """See `inference.readiness`."""
        return usual_threads(settings, workers)

    @classmethod
    def wants(cls, settings: InferSettings, base_folder: Path) -> Mapping[str, Any]:
        if settings.server:
            return {}
        return wanted_picture(signature_of(find_model(settings.file, base_folder), settings, base_folder), settings)

    @classmethod
    def follow(cls, settings: InferSettings, base_folder: Path, upstream: Upstream) -> Mapping[str, Any]:
        pictures = {name: facts["picture"] for name, facts in upstream.nearest("picture").items()}
        sizes = {name: fact["size"] for name, fact in pictures.items()}
        found: dict[str, Any] = {}
        if sizes and not isinstance(size := next(iter(sizes.values())), str):
            found["picture_size"] = settings.picture_size or size
        if settings.server:
            return found
        path = find_model(settings.file, base_folder)
        for sender, fact in pictures.items():
            contract, _ = inputs_of(signature_of(path, settings, base_folder), settings)
            check_kind(contract, settings.file, sender, fact)
            check_size(contract, settings.file, sender, fact["size"])
        return found if settings.sha256 else {**found, "sha256": sha256_of(path)}

    @classmethod
    def describe(cls, settings: InferSettings) -> Facts:
        return settings.facts()

    @classmethod
    def unknown_before_run(cls, settings: InferSettings) -> str:
        server = settings.server
        return f"what {server} takes and gives, for the server is not asked by `check`" if server else ""

    @classmethod
    def environment(cls, settings: InferSettings) -> Iterable[str]:
        return [settings.server.token_env] if settings.server and settings.server.token_env else []

    def open(self) -> None:
        began = time.monotonic()
        s = self.settings
        if "tensorrt" in s.providers:  # a model of fixed sizes is built as soon as it is loaded
            self.context.opening("building an engine of TensorRT, unless it is kept from an earlier start", _BUILD_S)
        self._memory = ModelMemory(
            most_of(s.memory_mb, self.context.workers),
            cameras=len(self.context.cameras) if self.context.beside_sources else 0,
        )
        ready = ready_model(s, self.context, self._memory)
        if not self._builds(ready.engine.provider):
            self.context.opening("")
        self._engine, self._contract, self._feeds = ready.engine, ready.contract, ready.feeds
        sizes = ready.sizes
        most = min(s.max_rows, self._engine.most_rows or s.max_rows)
        if sizes and sizes[-1] > (self._engine.most_rows or sizes[-1]):
            raise UserError(
                self._named(f"{s.shown_model} takes at most {most} pictures at once, got batches of {sizes[-1]}"),
                error_id="model-does-not-fit",
            )
        self._runs = BatchRuns(
            self._engine,
            self._contract,
            self._feeds,
            sizes=sizes,
            most=most,
            declared=s.declared,
            selection=ready.selection,
            on_smaller=self._log_smaller,
        )
        self._selection = ready.selection
        self._logged_full = False
        self._wrong_shapes = WrongShapes(self.context)
        size = first_size(self._contract, self._engine.signature, s)
        self._nothing = {name: row[:0] for name, row in self._warm_up(sizes, size).items()}
        for provider, why in ready.passed_over.items():
            # nobody named these: they are merely not here
            log = self.context.log.warning if provider in s.providers else self.context.log.info
            log("provider_unavailable", wanted=provider, runs_on=self._engine.provider, why=why)
        if isinstance(self._engine, onnxruntime_engine.OnnxRuntimeEngine) and self._engine.not_recorded:
            self.context.log.warning(
                "runs_not_recorded", model=self.settings.shown_model, why=self._engine.not_recorded
            )
        self._service = ModelService(
            self.context.state_folder / SOCKET_NAME.format(worker=self.context.worker), self._outputs, self.context.log
        )
        self._service.open()
        self._log_limits()
        self._log_opened(ready, round(time.monotonic() - began, 3), size_in_words(self._contract, size, s))

    def _log_opened(self, ready: ReadyModel, seconds: float, size: str) -> None:
        operations = shares_of_operations(ready, self.settings, self.context.base_folder)
        facts: dict[str, Any] = {
            "provider": self._engine.provider,
            "nodes": _in_words(self._engine.placement.shares()),
            "operations": _in_words(operations),
            "pictures": size,
            "seconds": seconds,
        }
        if not self.settings.server and onnxruntime_engine.is_on_processor(self._engine.provider):
            facts |= {"at_once": self.context.threads, "threads_each": ready.threads}
        device = device_of(self.settings.devices, self.context.worker)
        if device is not None:
            there = self._engine.provider in onnxruntime_engine.with_devices()
            facts |= {"worker": self.context.worker, "device" if there else "device_wanted": device}
        self.context.log.info("model_opened", model=self.settings.shown_model, **facts)
        shown = {name: facts[name] for name in ("provider", "pictures", "device") if name in facts}
        if self._runs_little(operations or self._engine.placement.shares()):
            shown["provider"] = self._log_runs_little(operations)
        self.context.shows(model=self.settings.facts()["model"]["name"], **shown)
        if self.settings.precision != "f32" and not self._engine.provider.startswith("OpenVINO"):
            self.context.log.warning(
                "precision_not_used",
                wanted=self.settings.precision,
                why=f"{self._engine.provider} runs the model, and only OpenVINO calculates in a precision of choice",
            )

    def _runs_little(self, shares: Mapping[str, float]) -> bool:
        """Whether a device runs less than half of the model, and so the processor most of it."""
        here = self.settings.server or onnxruntime_engine.is_on_processor(self._engine.provider)
        return bool(shares) and not here and shares.get(self._engine.provider, 0.0) < _MOST

    def _log_runs_little(self, operations: Mapping[str, float] | None) -> str:
        """Warn; returns all providers with their shares, because the name of the first alone would be misleading."""
        shares = _in_words(operations or self._engine.placement.shares())
        self.context.log.warning(
            "provider_runs_little",
            model=self.settings.shown_model,
            provider=self._engine.provider,
            **{"operations" if operations else "nodes": shares},
            why="it lacks operators of the model, as GPUs do for many in eight bits: give it the model in floats, or "
            "name cpu alone in `providers`; `camgraph model inspect --providers cuda,cpu` lists the nodes of each",
        )
        return shares

    def _log_limits(self) -> None:
        """Warn if limits of memory add up to more than a GPU has, so that they limit nothing."""
        limits = (
            self._engine.memory_limits() if isinstance(self._engine, onnxruntime_engine.OnnxRuntimeEngine) else None
        )
        if limits is None:
            return
        devices = [device_of(self.settings.devices, worker) for worker in range(self.context.workers)]
        if why := limits.why_too_much(devices.count(devices[self.context.worker])):
            self.context.log.warning("gpu_mem_limits_exceed_gpu", model=self.settings.shown_model, why=why)

    @staticmethod
    def _builds(provider: str) -> bool:
        return provider == onnxruntime_engine.PROVIDERS["tensorrt"]

    def _log_building(self, rows: int, number: int, of: int) -> None:
        """Minutes may pass until the next line, and nothing is wrong."""
        usual = "some minutes each, unless they are kept from an earlier start"
        self.context.log.info("building_engine", pictures=rows, number=number, of=of, takes=usual)
        self.context.opening(f"building engine {number} of {of} of TensorRT, for {rows} pictures at once", _BUILD_S)

    def _log_smaller(self, rows: int, why: str) -> None:
        self.context.log.warning("batches_smaller", model=self.settings.shown_model, most=rows, why=why)

    def close(self) -> None:
        if service := self.__dict__.pop("_service", None):
            service.close()
        self.__dict__.pop("_runs", None)
        self.__dict__.pop("_engine", None)
        if memory := self.__dict__.pop("_memory", None):
            memory.release()

    def process(self, items: Sequence[Tensor]) -> Iterable[Tensor]:
        pictures = [self._picture(item) for item in items]
        try:
            given = [Given(picture, self._feeds.of_item(item)) for item, picture in zip(items, pictures, strict=True)]
            rows = self._runs.rows(given)
            return [self._result(item, own) for item, own in zip(items, rows, strict=True)]
        except UserError as error:
            raise UserError(self._named(str(error)), error_id="model-does-not-fit") from None
        except WrongOutput as error:
            raise self._wrong_shapes.dropped(error.output, str(error)) from None
        except MemoryError:
            raise BadItem("model_failed", beyond()) from None

    def _outputs(self, item: Tensor) -> Row:
        """For one picture that is of no camera. Raises as `process`."""
        [[row]] = self._runs.rows([Given(self._picture(item), self._feeds.of_item(item))])
        check_numbers(row)
        return row

    def _picture(self, item: Tensor) -> Array:
        """uint8 RGB (n, H, W, 3), or float32 windows of keypoints. Raises UserError for anything else."""
        name, dtype = self._contract.array
        picture = item.arrays_by_name.get(name)
        if picture is None or picture.ndim != 4 or picture.shape[3] != 3 or picture.dtype != dtype:
            expected = (
                f"pictures named `{name}`, {dtype} (n, H, W, 3): put `preprocess` before"
                if name == IMAGE
                else f"windows named `{name}`, {dtype} (n, steps, joints, 3): put `keypoint_windows` before"
            )
            raise UserError(self._named(f"expected {expected}"), error_id="model-does-not-fit")
        height, width = picture.shape[1:3]
        if not self._contract.accepts(width, height):
            wanted = f"{self._contract.width or 'any'} x {self._contract.height or 'any'}"
            raise UserError(
                self._named(
                    f"{self.settings.shown_model} takes pictures of {wanted} (width x height), got {width} x {height}; "
                    f"set `size` of the preprocess stage to what the model takes"
                ),
                error_id="model-does-not-fit",
            )
        return picture

    def _result(self, item: Tensor, rows: Sequence[Row]) -> Tensor:
        """One item's message. Raises BadItem if a value is not finite, WrongOutput if its rows differ."""
        outputs = rows[0] if len(rows) == 1 else self._runs.joined(rows) if rows else self._nothing
        check_numbers(outputs)
        if self._selection and rows:
            self._count_full(self._selection, item, outputs)
        return Tensor(item.stamp, self._placed(outputs), item.fit, item.frame_size, item.picture_size, item.owner)

    def _count_full(self, selection: Selection, item: Tensor, outputs: Mapping[str, Array]) -> None:
        """Count the pictures in which people may be missing, for more candidates score enough than are selected."""
        asked = self.settings.candidates
        assert asked is not None
        full = selection.full(outputs[selection.output], asked.min_score)
        if not full:
            return
        self.context.count("skipped.candidates", item.stamp.camera, full)
        if not self._logged_full:
            self._logged_full = True
            self.context.log.warning(
                "candidates_left_out",
                camera=item.stamp.camera,
                most=selection.most,
                min_score=asked.min_score,
                then="of more people than these are of, those that score least are missing; set a larger "
                "`candidates: {most}` of this stage; such pictures are counted, and this is not logged again",
            )

    def _placed(self, outputs: Mapping[str, Array]) -> Mapping[str, Array]:
        """Large outputs lie in memory that the next process reads; small ones, and those that stay in this one, are
        unchanged.
        """
        if not self.context.outputs_leave or sum(output.nbytes for output in outputs.values()) < LARGE_BYTES:
            return outputs
        placed = self.context.new_arrays({name: (a.shape, a.dtype.name) for name, a in outputs.items()})
        for name, output in outputs.items():
            np.copyto(placed[name], output)
        return placed

    def _warm_up(self, sizes: Sequence[int], size: Size) -> Row:
        """First runs, so that no frame waits for work that providers put off until then (TensorRT: its engines)."""
        width, height = size
        try:
            builds = self._builds(self._engine.provider)
            order = engine_order(sizes) if builds else tuple(sizes or (1,))
            for number, count in enumerate(order, 1):
                if builds and number <= _ENGINES:
                    self._log_building(count, number, min(_ENGINES, len(order)))
                nobody = Given(
                    np.zeros((count, height, width, 3), self._contract.array[1]), self._feeds.of_black(count, size)
                )
                [rows] = self._runs.rows([nobody])
        except (UserError, WrongOutput) as error:
            raise UserError(self._named(str(error)), error_id="model-does-not-fit") from None
        except Unavailable as error:
            raise EnvironmentProblem(self._named(str(error)), error_id="model-does-not-fit") from None
        except BadItem as error:
            size_text = size_in_words(self._contract, size, self.settings)
            raise UserError(
                self._named(f"{self.settings.shown_model} does not run on pictures of {size_text}: {error}"),
                error_id="model-does-not-run",
            ) from None
        return rows[0]

    def _named(self, text: str) -> str:
        return f"stage {self.context.stage}: {text}"


def _in_words(shares: Mapping[str, float] | None) -> str:
    """The largest first."""
    ordered = sorted((shares or {}).items(), key=lambda entry: -entry[1])
    return ", ".join(f"{name} {share:.1%}" for name, share in ordered) or "not known"
