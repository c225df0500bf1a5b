"""`camgraph model compare`: its options."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from camgraph.pipeline.errors import EXIT_GAVE_UP, UserError
from camgraph.tools.models.declaration_options import brings_operators, declared_models, says_what_they_are
from camgraph.tools.models.model_options import FiniteRange, provider_names
from camgraph.tools.models.saved import check_places, save

if TYPE_CHECKING:
    from camgraph.stages.people.inference.engines.engine import ProviderName
    from camgraph.tools.models.chain import Activations, Classes
    from camgraph.tools.models.declaration import DeclaredModel


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
    type=FiniteRange(0, 1),
    default=0.95,
    show_default=True,
    help="How far the others must agree with the first: in people (F1), scores, classes, joints (OKS) and their "
    "confidences (F1).",
)
@click.option(
    "--least-frames",
    type=click.IntRange(1, 100_000),
    default=500,
    show_default=True,
    help="Without AP: of fewer frames than this nothing good is said.",
)
@click.option(
    "--least-pictures",
    type=click.IntRange(1, 100_000),
    default=100,
    show_default=True,
    help="With --labels: of fewer labelled pictures than this nothing good is said,",
)
@click.option(
    "--least-people",
    type=click.IntRange(1, 1_000_000),
    default=200,
    show_default=True,
    help="nor of fewer labelled people than this on them.",
)
@click.option(
    "--most-lost",
    type=FiniteRange(0, 1),
    default=0.02,
    show_default=True,
    help="With --labels: how much less average precision (AP) than the first the others may have.",
)
@click.option("--classes", metavar="A,B|all", help="The classes to find, as in `decode`; by default people, or all.")
@click.option(
    "--activation",
    type=click.Choice(["auto", "softmax", "sigmoid", "none"]),
    default="auto",
    show_default=True,
    help="How the numbers of classifiers are read, as in `classify`.",
)
@click.option(
    "--providers",
    default="cpu",
    show_default=True,
    help="The providers that may run them, the best first, with commas; or auto: the choice for the first model.",
)
@click.option("--json", "saved", type=click.Path(path_type=Path, dir_okay=False), help="Save the figures here.")
@says_what_they_are
@brings_operators
@click.pass_context
def compare(
    ctx: click.Context,
    /,
    *,
    files: tuple[str, ...],
    sources: tuple[str, ...],
    labels: Path | None,
    pictures: Path | None,
    count: int,
    least: float,
    least_frames: int,
    least_pictures: int,
    least_people: int,
    most_lost: float,
    classes: str | None,
    activation: Activations,
    providers: str,
    saved: Path | None,
    **options: Any,
) -> None:
    """Run the models FILES on the same frames, and show how far they agree with the first, how right they are, and
    their cost.

    They find people or things, or all of them are classifiers, which call each frame something.

    A declaration about a model (--format and the like) holds for all of them, or as FILE=... for one.

    Exits with status 1 if one lost more than is allowed, or if too little was seen to judge.
    """
    # With them comes ONNX Runtime.
    from camgraph.tools.models.compare import accuracy, comparison, verdict  # noqa: PLC0415
    from camgraph.tools.models.compare import report as comparison_report  # noqa: PLC0415

    if len(files) < 2:
        raise UserError("expected two models or more; the others are compared with the first", error_id="option-value")
    if not sources and labels is None:
        raise UserError(
            "expected --frames with frames of your cameras, or --labels with labelled pictures", error_id="option-value"
        )
    check_places([saved])
    truth = None if labels is None else accuracy.read_labels(labels, pictures, count)
    models = declared_models(files, options)
    limits = verdict.Limits(least, most_lost, least_frames, least_pictures, least_people)
    names = _automatic(models[0]) if providers == "auto" else provider_names(providers)
    compared = comparison.compare(
        models, sources, count, truth=truth, classes=_classes(classes), activation=activation, providers=names
    )
    click.echo("\n".join(comparison_report.table(compared, limits)))
    if saved is not None:
        save(saved, comparison_report.as_json(compared, limits))
    if not all(verdict.is_blessed(one, compared[0], limits) for one in compared[1:]):
        ctx.exit(EXIT_GAVE_UP)


def _automatic(first: DeclaredModel) -> tuple[ProviderName, ...]:
    """The providers of `auto` for the first model; prints the reasons beside the table."""
    from camgraph.tools.models import automatic_choice  # noqa: PLC0415

    choice = automatic_choice.chosen(first)
    click.echo("\n".join(automatic_choice.lines(choice)), err=True)
    return choice.providers


def _classes(text: str | None) -> Classes:
    """Names with commas between them, or all."""
    if text is None:
        return None
    return "all" if text == "all" else tuple(name.strip() for name in text.split(","))
