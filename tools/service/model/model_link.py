"""Asks the models of the run about pictures that a client sends.

    a picture ──the run's `preprocess`──> Tensor ──socket of `infer`──> Tensor ──the run's decoder──> People

The stages before and behind the model are opened here, with the settings that they have in the run: only the model
itself, which is what costs memory and time, is that of the run.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from camgraph.pipeline.errors import EnvironmentProblem, UserError
from camgraph.pipeline.foreign_text import shown
from camgraph.pipeline.messages import Message, Stamp
from camgraph.pipeline.monitoring.run_status import StageStatus
from camgraph.pipeline.registry import find_stage
from camgraph.pipeline.single_stage import feed, opened
from camgraph.pipeline.stage import Stage
from camgraph.stages.messages import Frame, People, Tensor
from camgraph.stages.people.inference.model_service import NAMES, ModelAnswer, ask_model
from camgraph.tools.service.run.run_link import RunLink

FORMATS = ("JPEG", "PNG", "WEBP")
MOST_PIXELS = 50_000_000
_STAMP = Stamp("", 0, 0, 0, 0, 0, alone=True)
_NO_MODEL = "this run has no model that takes pictures and finds people"


@dataclass(frozen=True, slots=True)
class ModelWay:
    """The stages that a frame goes through: before the model, the model, behind it."""

    prepare: str
    model: str
    decode: str


@dataclass(frozen=True, slots=True)
class Looked:
    """`people` of a picture; `seconds`: how long the model took."""

    people: People
    seconds: float


def ways_of(graph: Mapping[str, Any]) -> list[ModelWay]:
    """The ways of all models that see whole frames, in the order of the graph (`pipeline.plan.outline`)."""
    kinds = {one["name"]: find_stage(one["use"]) for one in graph["stages"]}
    edges = [(one["from"], one["to"]) for one in graph["edges"]]
    found: dict[str, ModelWay] = {}
    for prepare, model in edges:
        for sender, decode in edges:
            of_people = sender == model and _is(kinds[prepare], Frame, Tensor) and _is(kinds[decode], Tensor, People)
            if of_people and model not in found:
                found[model] = ModelWay(prepare, model, decode)
    return list(found.values())


def _is(kind: Any, takes: type, gives: type) -> bool:
    """Whether the stage is of this kind."""
    return issubclass(kind, Stage) and kind.inputs is takes and kind.outputs == (gives,)


class ModelLink:
    """Finds people in pictures of clients, by the models of one run."""

    def __init__(self, run: RunLink) -> None:
        self._run = run

    def way(self, model: str | None) -> ModelWay:
        """The way of the stage with this name, or the first way. Raises UserError if there is none."""
        ways = ways_of(self._run.graph())
        for way in ways:
            if model in (None, way.model):
                return way
        known = f"; expected one of {', '.join(shown(way.model) for way in ways)}" if ways else ""
        raise UserError(
            f"{_NO_MODEL}{f' in a stage {shown(model)[:60]}' if model else ''}{known}", error_id="name-unknown"
        )

    def facts(self, way: ModelWay) -> Mapping[str, Any]:
        """The facts that the stage of the model reports about itself."""
        return self._run.status().stages.get(way.model, StageStatus()).facts

    @property
    def cameras_need_it(self) -> bool:
        """Whether cameras send frames now, so that requests have to give way."""
        return any(one.fps for one in self._run.status().cameras.values())

    def find_people(self, way: ModelWay, coded: bytes) -> Looked:
        """Find the people in a picture. Raises UserError if it is none, or none for the model."""
        frame = read_picture(coded)
        of_stages = self._run.settings([way.prepare, way.decode])
        folder, settings = Path(of_stages["base_folder"]), of_stages["settings"]
        uses = {one["name"]: one["use"] for one in self._run.graph()["stages"]}

        def made(name: str, item: Message) -> Message:
            kind = find_stage(uses[name])
            assert issubclass(kind, Stage)
            with opened(kind, settings[name], folder=folder, stage=name) as stage:
                [output] = feed(stage, [item])
            return output

        asked = made(way.prepare, frame)
        assert isinstance(asked, Tensor)
        answer = self._asked(way, asked)
        people = made(way.decode, answer.tensor)
        assert isinstance(people, People)
        return Looked(people, answer.seconds)

    def _asked(self, way: ModelWay, asked: Tensor) -> ModelAnswer:
        """The answer of the first process of the stage that answers. Raises as `ask_model`."""
        sockets: Sequence[Path] = [path for path in self._run.sockets(NAMES) if path.parent.name == way.model]
        problem = EnvironmentProblem(
            f"the model of {way.model} is not open yet: try again", error_id="model-does-not-run"
        )
        for path in sockets:
            try:
                return ask_model(path, asked)
            except EnvironmentProblem as error:  # that process has died, or has just been started
                problem = error
        raise problem


def check_picture(coded: bytes) -> None:
    """Look at the head of a picture. Raises UserError as `read_picture`, as far as the head shows it."""
    with _in_words(), _opened(coded):
        pass


def read_picture(coded: bytes) -> Frame:
    """A JPEG, PNG or WebP, turned upright. Raises UserError if it is none, or has more than `MOST_PIXELS`."""
    import numpy as np  # noqa: PLC0415 - a run without such requests does without

    with _in_words(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about damaged EXIF: such pictures must not fill the log
        upright = np.asarray(_upright(coded))
    return Frame.of_bgr(_STAMP, np.ascontiguousarray(upright[:, :, ::-1]))


@contextmanager
def _in_words() -> Iterator[None]:
    """Turn errors of Pillow into a UserError."""
    from PIL import Image, UnidentifiedImageError  # noqa: PLC0415

    try:
        yield
    except Image.DecompressionBombError:
        most = MOST_PIXELS // 1_000_000
        raise UserError(f"expected a picture of at most {most} megapixels", error_id="too-large") from None
    except UnidentifiedImageError:
        raise UserError(f"expected a picture: {', '.join(FORMATS)}", error_id="request-value") from None
    except (OSError, ValueError, SyntaxError) as error:  # SyntaxError: Pillow's for a broken PNG
        raise UserError(f"the picture is damaged: {error}", error_id="request-value") from None


@contextmanager
def _opened(coded: bytes) -> Iterator[Any]:
    """The picture of Pillow, of which only the head has been read. Raises the errors of Pillow."""
    from PIL import Image  # noqa: PLC0415

    with Image.open(io.BytesIO(coded), formats=FORMATS) as image:
        width, height = image.size
        if width * height > MOST_PIXELS:
            raise Image.DecompressionBombError
        yield image


def _upright(coded: bytes) -> Any:
    """The picture of Pillow, upright and in RGB. Raises the errors of Pillow."""
    from PIL import ImageOps  # noqa: PLC0415

    with _opened(coded) as image:
        upright = ImageOps.exif_transpose(image)
    if upright.mode.startswith("I"):  # 16 bits a pixel, as PNGs of thermal cameras have; Pillow would cut them to 255
        upright = upright.point(lambda value: value * (1 / 256)).convert("L")
    return upright.convert("RGB")
