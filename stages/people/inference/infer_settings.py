"""The settings of a model that is to run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Literal, Self, get_args

from pydantic import BeforeValidator, Field, WithJsonSchema, field_validator, model_validator

from camgraph.pipeline.stage import Settings
from camgraph.pipeline.system.paths import ASSET_PREFIX
from camgraph.stages.facts import Facts, ModelFact
from camgraph.stages.people.inference.contracts import InputSettings
from camgraph.stages.people.inference.engines.devices import device_problems
from camgraph.stages.people.inference.engines.engine import ProviderName
from camgraph.stages.people.inference.engines.openvino_engine import Precision
from camgraph.stages.people.inference.engines.options import Device, ProviderOptions
from camgraph.stages.people.inference.engines.served_models import MISSING, is_installed
from camgraph.stages.people.inference.engines.server_settings import ServerSettings
from camgraph.stages.people.inference.feeds import Feed
from camgraph.stages.vision.recognition import Declared, Format

Wanted = Literal["auto"] | ProviderName
_NAMES = list(get_args(ProviderName))
Side = Annotated[int, Field(ge=1, le=32768)]


def _listed(value: object) -> object:
    return ("auto",) if value == "auto" else value


Providers = Annotated[
    tuple[Wanted, ...],
    BeforeValidator(_listed),
    WithJsonSchema({"anyOf": [{"const": "auto"}, {"type": "array", "items": {"enum": _NAMES}, "minItems": 1}]}),
]
"""`auto`, or names."""

_OF_THIS_MACHINE = (
    "providers",
    "devices",
    "intra_op_threads",
    "precision",
    "memory_mb",
    "options",
    "fold",
    "custom_ops",
    "sha256",
)


class Candidates(Settings):
    """The candidates of a model that are read."""

    most: int = Field(1000, ge=1, le=1_000_000, description="The number for each picture, the best by their scores")
    min_score: float = Field(
        0.3, ge=0, le=1, description="If more candidates reach this score, the picture is counted: `skipped.candidates`"
    )


class InferSettings(Settings):
    """The model, and the device that runs it."""

    model: str | None = Field(
        None, min_length=1, description="An ONNX file (relative to the graph file, or asset:NAME)"
    )
    server: ServerSettings | None = Field(
        None, description="Instead of `model`: a model on an inference server, which may be another machine"
    )
    providers: Providers = Field(
        ("cpu",),
        min_length=1,
        description="Where it may run, the best first: tensorrt, cuda, openvino, directml, coreml, cpu; auto: the best "
        "that works on this machine",
    )
    devices: tuple[Device, ...] = Field(
        (), description="GPUs by their numbers: worker after worker gets one, and with the workers the cameras"
    )
    intra_op_threads: int | None = Field(
        None,
        ge=1,
        le=256,
        description="Threads of one run on the CPU; by default 1, because more of the stage's own `threads` are "
        "faster; with `processes: one`, which makes one run at a time, as many as these",
    )
    precision: Precision = Field(
        "f32", description="The precision of OpenVINO; bf16 is faster on processors that have it, and less exact"
    )
    fold: Literal["auto", "never"] = Field(
        "auto",
        description="auto: on `cuda`, run a copy of the model that changes layout, order and scale of the pictures "
        "itself, so that it takes uint8, a quarter of the bytes of float32, and that selects `candidates`; never: run "
        "the model as it is",
    )
    candidates: Candidates | None = Field(
        None,
        description="How many candidates of a picture leave the GPU, the best first, if `fold` is auto and the model "
        "is a YOLO on `cuda`; by default as many as the `decode` stages behind it ask for, or all if other stages read "
        "them too",
    )
    max_rows: int = Field(
        32, ge=1, le=4096, description="The most pictures in one run of the model: frames may have many crops"
    )
    batch_sizes: tuple[Annotated[int, Field(ge=1, le=4096)], ...] = Field(
        (),
        description="Numbers of pictures in one run, ascending. Batches are padded to the next of these, if each new "
        "size is expensive (TensorRT, CUDA graphs); by default any number, on a GPU 1 and `batch: {max}` of the stage "
        "divided by four again and again: of 8 there are 1, 2, 8, of 16 there are 1, 4, 16",
    )
    memory_mb: int | None = Field(
        None,
        ge=16,
        le=1 << 24,
        description="The most memory in MB that the model may use in each process on the CPU: its weights, its values "
        "and its outputs; by default half the memory of the machine or its container, divided by `workers`, and at "
        "least 1024",
    )
    options: ProviderOptions = Field(ProviderOptions(), description="Options for providers, by their names")
    custom_ops: tuple[str, ...] = Field(
        (), description="Shared libraries with operators that the model brings: their code runs in this process"
    )
    sha256: str | None = Field(
        None,
        pattern="^[0-9a-f]{64}$",
        description="The sha256 of the model's file; any other file is refused. By default that of the file at the "
        "start of the run",
    )
    format: Format | None = Field(
        None, description="The model's format, if the file does not show it; by default the stage's behind it"
    )
    keypoints: int | None = Field(
        None,
        ge=0,
        le=1000,
        description="Keypoints of a person, if the file does not show the number; by default the stage's behind it",
    )
    point_values: Literal[2, 3] | None = Field(
        None,
        description="2: x, y; 3: x, y, confidence of each keypoint, if the file does not show it; by default the "
        "stage's behind it",
    )
    outputs: tuple[str, ...] | None = Field(
        None,
        min_length=1,
        description="The names of the outputs to read, if the model has more; by default the stage's behind it",
    )
    input: InputSettings = Field(
        InputSettings(), description="The form of the model's input, if the file does not show it"
    )
    feeds: Mapping[str, Feed] = Field(
        {},
        description="Values for further inputs, by their names: numbers, a size or scale of each picture, or an array "
        "from the stage before",
    )
    picture_size: tuple[Side, Side] | None = Field(
        None,
        description="Width and height of the pictures with which a model that takes any size is warmed up and tried; "
        "by default the size that the stage before makes, else that in the model's metadata, else 256 x 256",
    )

    @field_validator("providers")
    @classmethod
    def _auto_stands_alone(cls, names: tuple[Wanted, ...]) -> tuple[Wanted, ...]:
        if "auto" in names and len(names) > 1:
            raise ValueError("expected auto alone, or names of providers")
        return names

    @field_validator("devices")
    @classmethod
    def _differ(cls, devices: tuple[int, ...]) -> tuple[int, ...]:
        if len(set(devices)) < len(devices):
            raise ValueError("expected different numbers: each GPU once")
        return devices

    @field_validator("batch_sizes")
    @classmethod
    def _ascend(cls, sizes: tuple[int, ...]) -> tuple[int, ...]:
        if list(sizes) != sorted(set(sizes)):
            raise ValueError(f"expected different sizes in ascending order, got {', '.join(map(str, sizes))}")
        return sizes

    def problems(self) -> Iterable[tuple[tuple[str, ...], str]]:
        """Settings that contradict each other: ((path of the key), text)."""
        given = self.options.model_dump(exclude_none=True)
        yield from device_problems(self.devices, self.providers, given)
        if self.precision != "f32" and not {"openvino", "auto"}.intersection(self.providers):
            yield (
                ("precision",),
                "only OpenVINO calculates in a precision of choice: name it in `providers`, or remove this",
            )
        if self.batch_sizes and "max_rows" in self.model_fields_set and self.batch_sizes[-1] > self.max_rows:
            yield ("max_rows",), f"`batch_sizes` has {self.batch_sizes[-1]}, which is more: remove one of the two"

    @model_validator(mode="after")
    def _one_model(self) -> Self:
        if (self.model is None) == (self.server is None):
            got = "neither" if self.model is None else "both"
            raise ValueError(f"expected either `model` (a file) or `server` (a model on a server), got {got}")
        return self

    @property
    def declared(self) -> Declared:
        """The facts about the model in addition to its own metadata."""
        return Declared(self.format, self.keypoints, outputs=self.outputs, point_values=self.point_values)

    @property
    def file(self) -> str:
        """The model's file; only if it is not on a server."""
        assert self.model is not None
        return self.model

    @property
    def shown_model(self) -> str:
        """The model, for people."""
        return str(self.server) if self.server else self.file

    def facts(self) -> Facts:
        """The facts that stages behind get about the model before it is opened."""
        declared: Facts = {"model_declared": self.declared.facts()}
        if self.server:
            return {
                **declared,
                "model": {"name": self.server.shown_model},
                "model_server": self.server.plain(),
            }
        model: ModelFact = {"name": Path(self.file.removeprefix(ASSET_PREFIX)).name}
        if self.sha256:
            model["sha256"] = self.sha256
        if len(set(self.providers) - {"auto"}) == 1:
            model["provider"] = self.providers[0]
        return {**declared, "model": model, "model_file": {"path": self.file, "custom_ops": self.custom_ops}}

    def server_problems(self, server: ServerSettings, base_folder: Path) -> Iterator[tuple[tuple[str, ...], str]]:
        """Mistakes in the settings for a server, which is not asked: ((path of the key), text)."""
        if not is_installed():
            yield ("server",), MISSING
        for path, text in server.problems(base_folder):
            yield ("server", *path), text
        for key in _OF_THIS_MACHINE:
            if key in self.model_fields_set:
                yield (
                    (key,),
                    f"`{key}` is for models that run on this machine, and `server` decides it itself: remove it",
                )
