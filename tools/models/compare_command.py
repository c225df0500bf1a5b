"""`camgraph model compare`: its options."""

from __future__ import annotations

from pathlib import Path

import click

from pipeline.errors import EXIT_GAVE_UP, UserError
from stages.inference.model_files import find_model
from tools.models.provider_names import provider_names


@click.command()
@click.argument("files", nargs=-1, required=True)
@click.option(
    "--frames", "sources", multiple=True, help="A video, a folder of pictures, a picture; repeatable. Or --labels."
)
@click.option(
    "--labels",
    type=click.Path(path_type=Path),
    help="People's known keypoints: COCO's JSON, or a folder with images and labels as YOLO has them.",
)
@click.option(
    "--pictures", type=click.Path(path_type=Path), help="The folder of COCO's pictures, if not beside the JSON."
)
@click.option(
    "--count",
    type=click.IntRange(1, 100_000),
    default=500,
    show_default=True,
    help="Frames of all sources together, spread over them, and labelled pictures.",
)
@click.option(
    "--least",
    type=click.FloatRange(0, 1),
    default=0.95,
    show_default=True,
    help="How far the others must agree with the first: in people (F1), joints (OKS) and their confidences (F1).",
)
@click.option(
    "--least-frames",
    type=click.IntRange(1, 100_000),
    default=500,
    show_default=True,
    help="Without AP: of fewer frames than this nothing good is said.",
)
@click.option(
    "--most-lost",
    type=click.FloatRange(0, 1),
    default=0.02,
    show_default=True,
    help="With --labels: how much less average precision (AP) than the first the others may have.",
)
@click.option("--providers", default="cpu", show_default=True, help="Who may run them, the best first, with commas.")
@click.pass_context
def compare(
    ctx: click.Context,
    *,
    files: tuple[str, ...],
    sources: tuple[str, ...],
    labels: Path | None,
    pictures: Path | None,
    count: int,
    least: float,
    least_frames: int,
    most_lost: float,
    providers: str,
) -> None:
    """Run the models FILES on the same frames: how far they agree with the first, how right they are, what they take.

    Exit status 1 where one lost more than is allowed, or where too little was seen to say that it did not.
    """
    # With them comes ONNX Runtime.
    from tools.models import accuracy, comparison, comparison_table, verdict  # noqa: PLC0415

    if len(files) < 2:
        raise UserError("expected two models or more; the first is what the others are compared with")
    if not sources and labels is None:
        raise UserError("expected --frames with what your cameras see, or --labels with pictures that are labelled")
    truth = None if labels is None else accuracy.read_labels(labels, pictures, count)
    paths = [find_model(file, Path.cwd()) for file in files]
    limits = verdict.Limits(least, most_lost, least_frames)
    compared = comparison.compare(paths, sources, count, truth=truth, providers=provider_names(providers))
    click.echo("\n".join(comparison_table.table(compared, limits)))
    if not all(verdict.is_blessed(one, compared[0], limits) for one in compared[1:]):
        ctx.exit(EXIT_GAVE_UP)
