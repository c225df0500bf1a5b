"""How trained models become ONNX files that camgraph reads best: recipes around the exporters of others. Pure.

Nothing here is installed, imported or run: these are steps for the user, in an environment of its own. Sources: the
documentation of Ultralytics, super-gradients and mmdeploy; steps that were not run here are marked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from camgraph.stages.assets import MODELS

Size = tuple[int, int]
"""(width, height)."""


@dataclass(frozen=True)
class Wanted:
    """A model by its name or its file of weights, and the wanted form. ``half``: for GPUs; ``nms``: rows of people."""

    model: str
    size: Size = (640, 640)
    half: bool = False
    nms: bool = False

    @property
    def stem(self) -> str:
        """Its name without folder and ending."""
        return self.model.replace("\\", "/").rsplit("/", 1)[-1].removesuffix(".pt").removesuffix(".pth")


@dataclass(frozen=True)
class Family:
    """Models of one exporter. ``names``: a pattern of their names."""

    name: str
    names: str
    licence: str
    steps: Callable[[Wanted], Iterator[str]]
    examples: tuple[str, ...]


def family_of(model: str) -> Family | None:
    """Return the recipe by the model's name; None if it is unknown."""
    stem = Wanted(model).stem.lower()
    return next((family for family in FAMILIES if re.match(family.names, stem)), None)


def stride_of(model: str) -> int:
    """The sides of its pictures are multiples of this: so far the model makes them smaller on its way."""
    return 64 if re.search(r"[-_]?p6\b", Wanted(model).stem.lower()) else 32


def fitting_sizes(size: Size, stride: int) -> list[Size]:
    """The nearest sizes whose sides are multiples of ``stride``, the smallest first; itself if it fits."""
    widths, heights = (sorted({max(side // stride, 1) * stride, -(-side // stride) * stride}) for side in size)
    return [(width, height) for width in widths for height in heights]


def recipe(wanted: Wanted, family: Family) -> Iterator[str]:
    """The lines to type; lines that begin with # explain."""
    yield f"# {wanted.stem}: {family.name}"
    yield f"# {family.licence}"
    yield ""
    yield from family.steps(wanted)


def _ultralytics(wanted: Wanted) -> Iterator[str]:
    weights = wanted.model if wanted.model.endswith(".pt") else f"{wanted.model}.pt"
    width, height = wanted.size
    size = str(width) if width == height else f"{height},{width}"
    yield "python3 -m venv export && export/bin/pip install ultralytics onnx"
    nms = " nms=True" if wanted.nms else ""
    yield f"export/bin/yolo export model={weights} format=onnx imgsz={size} dynamic=True opset=17{nms}"
    yield "# imgsz: a side, or height,width; camgraph takes the size from the metadata, where the exporter writes it."
    yield "# dynamic=True: batches of any size. Without half: camgraph does that below, and compares the two."
    yield "# nms=True: the model gives rows of people. YOLO26 does so by itself."
    yield from _behind(f"{weights.removesuffix('.pt')}.onnx", wanted)


def _nas_pose(wanted: Wanted) -> Iterator[str]:
    width, height = wanted.size
    name = wanted.stem.lower().replace("-", "_")
    yield "python3.10 -m venv export && export/bin/pip install super-gradients==3.7.1 onnx"
    yield "export/bin/python - <<'END'"
    yield "from super_gradients.training import models"
    yield "from super_gradients.conversion import DetectionOutputFormatMode"
    yield f'model = models.get("{name}", pretrained_weights="coco_pose")'
    yield "# Your own weights instead: checkpoint_path=..., num_classes=17 (of keypoints)."
    yield f'model.export("{name}.onnx", input_image_shape=({height}, {width}), batch_size=1,'
    yield "             output_predictions_format=DetectionOutputFormatMode.BATCH_FORMAT,"
    yield "             max_predictions_per_image=100, confidence_threshold=0.3, nms_threshold=0.5)"
    yield "END"
    yield "# One picture a run. It takes uint8, and suppresses overlaps in its graph. FLAT_FORMAT is read as well."
    yield from _behind(f"{name}.onnx", wanted)


def _rtmo(wanted: Wanted) -> Iterator[str]:
    size = wanted.stem.lower()[5]
    config = {"s": "rtmo-s_8xb32", "m": "rtmo-m_16xb16", "l": "rtmo-l_16xb16"}[size]
    yield "# In an environment with mmpose and mmdeploy, and their repositories beside each other:"
    yield "python mmdeploy/tools/deploy.py mmdeploy/configs/mmpose/pose-detection_rtmo_onnxruntime_dynamic.py \\"
    yield f"    mmpose/configs/body_2d_keypoint/rtmo/coco/{config}-600e_coco-640x640.py \\"
    yield f"    rtmo-{size}.pth picture.jpg --work-dir rtmo-{size} --device cpu"
    yield "# Its size is that of the config (640 x 640), and overlaps are suppressed in its graph."
    yield from _behind(f"rtmo-{size}/end2end.onnx", wanted)


def _movenet(wanted: Wanted) -> Iterator[str]:
    asset = f"{wanted.stem.lower().removesuffix('.onnx')}.onnx"
    asset = asset if asset in MODELS else MODELS[0]
    yield f"camgraph assets pull {asset}"
    yield "# No export: camgraph converts the published weights itself, without the decoder that is held to six people."
    yield f"camgraph model inspect asset:{asset}"


def _behind(out: str, wanted: Wanted) -> Iterator[str]:
    """The steps after every export."""
    yield ""
    yield f"camgraph model inspect {out}"
    made = out
    if wanted.half:
        half = f"{out.removesuffix('.onnx')}-fp16.onnx"
        yield f"camgraph model fp16 {out} {half}                 # for GPUs; on CPUs it is no faster"
        made = half
    ready = f"{out.removesuffix('.onnx')}-ready.onnx"
    yield f"camgraph model prepare {made} {ready}"
    yield f"camgraph model compare {out} {ready} --frames evening.mp4"


_OWN_STEP = "a step of your own, outside camgraph, which neither needs nor installs it"

FAMILIES: tuple[Family, ...] = (
    Family(
        "Ultralytics' exporter",
        r"(yolov?(5|8|9|10|11|12|26)[a-z]?)",
        f"AGPL-3.0: {_OWN_STEP}.",
        _ultralytics,
        ("yolo11n-pose", "yolov8s-pose", "yolo26n-pose", "yolo11n"),
    ),
    Family(
        "super-gradients' exporter",
        r"yolo[-_]?nas[-_]?pose",
        f"Apache-2.0, its weights under a licence of their own: {_OWN_STEP}. Not run by us.",
        _nas_pose,
        ("yolo_nas_pose_s",),
    ),
    Family("mmdeploy", r"rtmo[-_][sml]", f"Apache-2.0: {_OWN_STEP}. Not run by us.", _rtmo, ("rtmo-s",)),
    Family(
        "camgraph's own conversion",
        r"movenet",
        "Apache-2.0 by the model card.",
        _movenet,
        ("movenet-multipose",),
    ),
)
EXAMPLES = tuple(name for family in FAMILIES for name in family.examples)
