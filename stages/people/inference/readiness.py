"""The model of a stage, ready to run: opened by the provider that works.

settings ── a file ──> its format, its hash ──> the providers asked for, or those that `auto` finds by trying ──┐
         ── a server ──> the server's facts about it ───────────────────────────────────────────────────────────┤
                                                                       its inputs, and how to run it <──────────┘
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import get_args

from camgraph.pipeline.errors import UserError
from camgraph.pipeline.messages import Array
from camgraph.pipeline.stage import Context
from camgraph.pipeline.system.cores import usable_cores
from camgraph.pipeline.system.paths import asset_folder
from camgraph.stages.people.inference.contracts import reading_of
from camgraph.stages.people.inference.engines import onnxruntime_engine
from camgraph.stages.people.inference.engines.devices import ON_PROCESSOR, device_of, on_device
from camgraph.stages.people.inference.engines.engine import Engine, ProviderName, Source
from camgraph.stages.people.inference.engines.nvidia import why_no_cuda
from camgraph.stages.people.inference.engines.options import with_caches
from camgraph.stages.people.inference.engines.served_models import open_served
from camgraph.stages.people.inference.feeds import Feeds
from camgraph.stages.people.inference.folded_models import (
    CannotFold,
    FoldedModel,
    Folds,
    folded_contract,
    folded_model,
    why_no_pixels,
)
from camgraph.stages.people.inference.infer_settings import InferSettings
from camgraph.stages.people.inference.model.candidate_selection import CannotSelect, Selection, selection_of
from camgraph.stages.people.inference.model.flops import work_of
from camgraph.stages.people.inference.model.model_files import (
    find_libraries,
    find_model,
    sha256_of,
    unchanged,
    verify_model,
)
from camgraph.stages.people.inference.model.model_memory import ModelMemory
from camgraph.stages.people.inference.model.model_safety import checked_model
from camgraph.stages.people.inference.model_inputs import (
    first_size,
    inputs_of,
    reading_problems,
    sample,
    signature_of,
)
from camgraph.stages.people.inference.selection.automatic import choose_once
from camgraph.stages.people.inference.selection.opening import AS_IT_IS, Asked, Made, open_model
from camgraph.stages.people.inference.selection.placed_work import work_shares
from camgraph.stages.vision.model_contract import InputContract
from camgraph.stages.vision.recognition import Signature
from camgraph.stages.vision.run_sizes import buckets

_MOST_THREADS = 16
"""Each holds a batch and its outputs: memory for which more cores than these hardly bring anything."""
_ON_THE_WAY = 2
"""Batches of a device: one travels while another is calculated."""
_MOST_BYTES_COUNTED = 512 * 1024**2
"""Reading a larger file once more only to tell of it takes too long, and too much memory."""


@dataclass(frozen=True)
class ReadyModel:
    """``passed_over``: provider -> why it does not run the model.

    ``contract``: the input of the engine; ``contract_of_file``: that of the model's file, whose preprocessing may be
    folded. ``sizes``: pictures of one run, ascending; any number if there are none. ``selection``: of the model's
    candidates, if the engine gives no others. ``threads``: of one run on the processor.
    """

    engine: Engine
    passed_over: Mapping[str, str]
    contract: InputContract
    contract_of_file: InputContract
    feeds: Feeds
    sizes: Sequence[int]
    selection: Selection | None
    threads: int


@dataclass(frozen=True)
class _Opened:
    """``folds``: the steps folded into the copy that the engine runs."""

    engine: Engine
    passed_over: Mapping[str, str]
    folds: Folds | None = None
    threads: int = 1


def usual_threads(settings: InferSettings, workers: int) -> int:
    """How many threads of each of ``workers`` processes run the model, if the graph does not say it.

    On the processor one for each core, together with the threads of each run; on a device, `_ON_THE_WAY`.
    """
    if _runs_on_device(settings):
        return _ON_THE_WAY
    return max(1, _cores(workers) // (settings.intra_op_threads or 1))


def _cores(workers: int) -> int:
    return max(1, min(_MOST_THREADS, usable_cores() // workers))


def _runs_on_device(settings: InferSettings) -> bool:
    """Whether something else than this machine's processor will run the model, as far as that shows beforehand."""
    if settings.server:
        return True
    hopeful = (
        name
        for name in settings.providers
        if name == "auto" or name in ON_PROCESSOR or onnxruntime_engine.may_work(name)
    )
    return next(hopeful, "") not in ("auto", *ON_PROCESSOR)


def ready_model(settings: InferSettings, context: Context, memory: ModelMemory) -> ReadyModel:
    """Holds ``memory`` if this machine's processor runs the model.

    Raises UserError if the model contradicts the settings, EnvironmentProblem if nothing here runs it.
    """
    if settings.server:
        return _ready(settings, context, memory)
    with unchanged(find_model(settings.file, context.base_folder)):
        return _ready(settings, context, memory)


def _ready(settings: InferSettings, context: Context, memory: ModelMemory) -> ReadyModel:
    opened = _open_served(settings, context) if settings.server else _open_file(settings, context, memory)
    signature = opened.engine.signature
    for _, text in reading_problems(signature, settings):
        raise UserError(f"stage {context.stage}: {text}", error_id="model-does-not-fit")
    contract, feeds = inputs_of(signature, settings)
    folds = opened.folds
    return ReadyModel(
        opened.engine,
        opened.passed_over,
        folded_contract(contract) if folds and folds.pixels else contract,
        contract,
        feeds,
        (contract.batch,) if contract.batch else settings.batch_sizes or _usual_sizes(opened.engine, settings, context),
        folds.selection if folds else None,
        opened.threads,
    )


def _usual_sizes(engine: Engine, settings: InferSettings, context: Context) -> Sequence[int]:
    """If the graph gives none: none on a CPU, which takes any number of pictures; on a GPU, buckets."""
    if engine.provider not in onnxruntime_engine.with_devices():
        return ()
    return buckets(min(context.batch_max, settings.max_rows))


def shares_of_operations(ready: ReadyModel, settings: InferSettings, base_folder: Path) -> Mapping[str, float] | None:
    """Each provider's share of the model's calculations, 0 to 1; None if it is not known.

    The file is read for it only if several share the nodes, and it is not very large.
    """
    placement = ready.engine.placement
    if len(placement.nodes) < 2:
        return dict.fromkeys(placement.nodes, 1.0) or None
    contract = ready.contract_of_file
    width, height = first_size(contract, ready.engine.signature, settings)
    pictures = contract.shape(contract.batch or 1, height, width)
    try:
        path = find_model(settings.file, base_folder)
        if path.stat().st_size > _MOST_BYTES_COUNTED:
            return None
        model = checked_model(path, custom_ops=bool(settings.custom_ops))
        return work_shares(work_of(model, {contract.name: pictures}), placement)
    except Exception:  # noqa: BLE001 - whatever ONNX makes of a model that runs: no line of the log is worth a start
        return None


def _open_served(settings: InferSettings, context: Context) -> _Opened:
    assert settings.server is not None
    return _Opened(open_served(settings.server, context.base_folder), {})


def _open_file(settings: InferSettings, context: Context, memory: ModelMemory) -> _Opened:
    path = find_model(settings.file, context.base_folder)
    verify_model(path, settings.sha256)
    first = settings.providers[0]
    memory.hold("cpu" if first == "auto" else first)
    asked, not_chosen = _asked(path, settings, context)
    memory.hold(asked.providers[0])
    folding = _Folding(path, settings, context)
    engine, passed_over = open_model(path, asked, folding.made)
    runs_on = asked.providers[len(passed_over)]
    memory.hold(runs_on)
    folds = folding.taken(engine) if engine.provider == onnxruntime_engine.PROVIDERS["cuda"] else None
    return _Opened(engine, {**not_chosen, **passed_over}, folds, asked.threads_with(runs_on))


class _Folding:
    """Makes the copy of a model for CUDA as soon as that is to open it, and reports the folded steps."""

    def __init__(self, path: Path, settings: InferSettings, context: Context) -> None:
        self._path = path
        self._settings = settings
        self._context = context
        self._made: tuple[Folds, FoldedModel] | None = None

    @property
    def made(self) -> Made:
        """For `open_model`. TensorRT moves no uint8 within its engines, and CPUs share the memory of the pictures."""
        return {"cuda": self._source} if self._settings.fold == "auto" else AS_IT_IS

    def taken(self, engine: Engine) -> Folds | None:
        """The steps folded into the copy that this engine, which is on CUDA, runs; None if it runs the model as it is.

        Then the engine's own statements stand for the model's.
        """
        if self._made is None:
            return None
        folds, copy = self._made
        engine.signature = self._signature()
        if folds.pixels:
            self._log("preprocessing_folded", copy=copy.kept)
        if folds.selection:
            self._log("candidates_folded", copy=copy.kept, most=folds.selection.most, of=folds.selection.anchors)
        return folds

    def _source(self) -> Source:
        if why_no_cuda():
            return self._path  # it will not open, and nothing has to be made for it
        try:
            self._made = self._folded()
        except CannotFold as error:
            self._log("preprocessing_not_folded", why=str(error))
        return self._made[1].source if self._made else self._path

    def _folded(self) -> tuple[Folds, FoldedModel] | None:
        if self._settings.custom_ops:
            raise CannotFold("it has operators of its own (`custom_ops`)")
        signature = self._signature()
        contract, _ = inputs_of(signature, self._settings)
        if why := why_no_pixels(contract):
            self._log("preprocessing_not_folded", why=why)
        folds = Folds(contract, not why, self._selection(signature))
        sha256 = self._settings.sha256 or sha256_of(self._path)
        if folds.selection:
            try:
                return folds, folded_model(self._path, sha256, folds)
            except CannotFold as error:
                self._log("candidates_not_folded", why=str(error))
            folds = replace(folds, selection=None)
        return (folds, folded_model(self._path, sha256, folds)) if folds.pixels else None

    def _selection(self, signature: Signature) -> Selection | None:
        if self._settings.candidates is None:
            return None
        try:
            reading = reading_of(signature, self._settings.declared)
            return selection_of(signature, reading, self._settings.candidates.most)
        except CannotSelect as error:
            self._log("candidates_not_folded", why=str(error))
            return None

    def _signature(self) -> Signature:
        return signature_of(self._path, self._settings, self._context.base_folder)

    def _log(self, event: str, **facts: str | int) -> None:
        self._context.log.info(event, model=self._settings.shown_model, **facts)


def _asked(path: Path, settings: InferSettings, context: Context) -> tuple[Asked, Mapping[str, str]]:
    """How to open the model, and the providers that were tried in vain: provider -> why."""
    folder = context.base_folder
    device = device_of(settings.devices, context.worker)
    options = {name: on_device(settings.options.of(name, folder), name, device) for name in get_args(ProviderName)}
    names = tuple(name for name in settings.providers if name != "auto")
    if "tensorrt" in names:
        options["tensorrt"] = _with_caches(options["tensorrt"], settings.sha256 or sha256_of(path))
    asked = Asked(
        names,
        settings.intra_op_threads or context.cores,
        settings.precision,
        options,
        find_libraries(settings.custom_ops, folder),
        context.threads,
        settings.intra_op_threads or max(context.cores, _cores(context.workers) // context.threads),
    )
    if names:
        return asked, {}
    file = context.state_folder / f"provider.{context.worker}.json"
    sha256 = settings.sha256 or sha256_of(path)
    choice = choose_once(file, path, sha256, asked, _sample(path, settings, context))
    return replace(asked, providers=choice.providers), choice.passed_over


def _with_caches(options: Mapping[str, str], sha256: str) -> dict[str, str]:
    """The options for TensorRT, with a folder of its own for the engines of this model, if possible."""
    folder = asset_folder().parent / "tensorrt" / sha256[:16]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return dict(options)
    return with_caches(options, folder)


def _sample(path: Path, settings: InferSettings, context: Context) -> Mapping[str, Array]:
    """The model's inputs for pictures to try it on."""
    signature = signature_of(path, settings, context.base_folder)
    contract, feeds = inputs_of(signature, settings)
    rows = contract.batch or min(settings.batch_sizes, default=1)
    return sample(contract, feeds, rows, first_size(contract, signature, settings))
