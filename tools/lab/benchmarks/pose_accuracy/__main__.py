"""`python -m camgraph.tools.lab.benchmarks.pose_accuracy`: measures and writes most of docs/accuracy.md."""

from __future__ import annotations

from pathlib import Path

import click

from camgraph.pipeline.errors import CamgraphError, UserError
from camgraph.tools.assets import asset_path
from camgraph.tools.assets.movenet.tfjs import read_graph
from camgraph.tools.lab.benchmarks.pose_accuracy import report
from camgraph.tools.lab.benchmarks.pose_accuracy.conversion import (
    decode_ms,
    decoder_agreement,
    head_differences,
    speed_ratio,
)
from camgraph.tools.lab.benchmarks.pose_accuracy.sizes import by_size, frames
from camgraph.tools.lab.figure import Figure, figure_command
from camgraph.tools.models.pose_estimators import U8, Estimator, multipose, session, yolo
from camgraph.tools.models.pose_truth import Truth, coco_truth, precision, yolo_truth

LONG_SIDES = (256, 384, 512, 640, 768)
# Low, since average precision counts people of all scores.
LEAST_SCORE = 0.01
MIN_SCORE = 0.2
LEAST_COMPARED = 0.05
EVERY = 15
# Of the enlarged frame: those with people.
SHOWN_ROWS = slice(200, 640)
_OUT = Path("out/accuracy")
CLIP = "videos/intel_one-by-one-person-detection.mp4"


@figure_command("benchmarks.pose_accuracy")
@click.option("--data", type=click.Path(exists=True, file_okay=False, path_type=Path), required=True, help="Test data.")
def main(figure: Figure, data: Path) -> None:
    """Measure how right the keypoints are."""
    try:
        measured = _measure(data, (figure.page.parent if figure.page else _OUT) / "pictures")
    except CamgraphError as error:
        raise click.ClickException(str(error)) from error
    figure.publish(report.page(measured))


def _measure(data: Path, pictures: Path) -> report.Measured:
    truths = [coco_truth(data / "images" / "coco"), yolo_truth(data / "images" / "coco8-pose")]
    files = [asset_path("movenet-multipose.onnx").with_suffix(ending) for ending in (".onnx", ".json", ".bin")]
    if not all(file.is_file() for file in files):
        raise UserError(f"{files[0]} is not there; run: camgraph assets pull")
    ours, graph = session(files[0]), read_graph(files[1].read_bytes(), files[2].read_bytes())
    reference = data / "models" / "multipose_heads.onnx"
    known = [picture for truth in truths for _, picture in truth.pictures()]
    clip = frames(asset_path("vtest.avi"), 300)
    _draw(ours, truths[0], clip[1], pictures, _OUT)
    return report.Measured(
        sets=_about(truths),
        rows=[row for truth in truths for row in _rows(truth, _estimators(data, ours))],
        difference=head_differences(ours, session(reference), known),
        agreement=decoder_agreement(ours, graph, known + clip, LEAST_COMPARED),
        speed=speed_ratio(session(files[0], threads=1), session(reference, threads=1), clip[1]),
        decoding=decode_ms(ours, clip[1], MIN_SCORE),
        by_size=by_size(ours, frames(data / CLIP, EVERY), MIN_SCORE),
        every=EVERY,
        min_score=MIN_SCORE,
        least_compared=LEAST_COMPARED,
    )


def _estimators(data: Path, ours: object) -> dict[tuple[str, str], Estimator]:
    """(model, size) -> estimator."""
    known: dict[tuple[str, str], Estimator] = {
        ("MoveNet MultiPose", f"long side {side}"): multipose(ours, side, LEAST_SCORE) for side in LONG_SIDES
    }
    for name, file in (("YOLOv8n-pose", "yolov8n-pose_float.onnx"), ("YOLO11n-pose", "yolo11n-pose_640.onnx")):
        known[name, "640 x 640"] = yolo(session(data / "models" / file), LEAST_SCORE)
    return known


def _rows(truth: Truth, estimators: dict[tuple[str, str], Estimator]) -> list[report.Row]:
    return [report.Row(truth.name, model, size, precision(truth, e)) for (model, size), e in estimators.items()]


def _about(truths: list[Truth]) -> str:
    return " ".join(f"{t.name}: {len(t.paths)} pictures with {t.people} people." for t in truths)


def _draw(ours: object, truth: Truth, frame: U8, shown: Path, kept_back: Path) -> None:
    for image_id, picture in truth.pictures():
        people = report.drawn(picture, multipose(ours, 512, MIN_SCORE))
        report.write_jpeg(kept_back / f"{image_id}.jpg", people)
    large = report.drawn(frame, multipose(ours, 768, MIN_SCORE), enlarge=2)
    report.write_jpeg(shown / "accuracy-clip.jpg", large[SHOWN_ROWS])


if __name__ == "__main__":
    main()
