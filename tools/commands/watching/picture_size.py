"""The size of the model's picture in a graph that leaves it open: by a look at its files, as `camgraph watch` does.

prepare: {use: preprocess, from: capture}        MultiPose takes any size -> `size: auto`
                                                 a look at the files      -> `max_side: 384`, or one for each camera
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from camgraph.pipeline.plan import ProcessPlan, RunPlan, StagePlan
from camgraph.pipeline.system.paths import resolve
from camgraph.stages.video.addresses import file_of

if TYPE_CHECKING:
    from camgraph.tools.commands.watching.size import Choice

MOST_SHOWN = 8
LOOKING = "looking at how large people are in these pictures"


def with_picture_sizes(plan: RunPlan, show: Callable[[str], None]) -> RunPlan:
    """The plan with a `max_side` for each stage that makes pictures of `size: auto` and has none.

    `say` is called before anything that takes a while. A plan that leaves nothing open stays as it is.
    """
    sides: dict[tuple[str, ...], int | dict[str, int] | None] = {}

    def chosen(stage: StagePlan) -> StagePlan:
        if stage.settings.get("size") != "auto" or "max_side" in stage.settings:
            return stage
        models = _models_behind(stage.name, plan)
        if not models:
            return stage
        if models not in sides:
            sides[models] = _side(Path(plan.base_folder), models, plan, show)
        side = sides[models]
        return stage if side is None else replace(stage, settings={**stage.settings, "max_side": side})

    return replace(plan, processes=tuple(_each(process, chosen) for process in plan.processes))


def _each(process: ProcessPlan, change: Callable[[StagePlan], StagePlan]) -> ProcessPlan:
    return replace(process, stages=tuple(map(change, process.stages)))


def _models_behind(stage: str, plan: RunPlan) -> tuple[str, ...]:
    """The files of the models that are given this stage's pictures."""
    readers = {edge.reader for process in plan.processes for edge in process.edges if edge.sender == stage}
    behind = {one.name: one.settings for process in plan.processes for one in process.stages if one.name in readers}
    return tuple(sorted({str(settings["model"]) for settings in behind.values() if settings.get("model")}))


def _side(
    folder: Path, models: Sequence[str], plan: RunPlan, show: Callable[[str], None]
) -> int | dict[str, int] | None:
    """One for all cameras, or one for each; None if nothing is known of the frames beforehand."""
    urls = {camera: str(settings.get("url", "")) for camera, settings in plan.camera_settings.items()}
    if not all(urls.values()):  # cameras of a source that reads no files
        return None
    if plan.live_cameras:
        return None
    # ONNX Runtime takes a while to import.
    from camgraph.tools.commands.watching.size import choose_sides, of_files  # noqa: PLC0415

    show(LOOKING)
    frames = of_files({camera: resolve(file_of(url), folder) for camera, url in urls.items()})
    by_model = [choose_sides(resolve(model, folder), frames) for model in models]
    for line in in_words(by_model[0]):
        show(line)
    return one_for_all({camera: max(choices[camera].side for choices in by_model) for camera in frames})


def one_for_all(sides: Mapping[str, int]) -> int | dict[str, int]:
    """A single side if all cameras have the same."""
    return next(iter(sides.values())) if len(set(sides.values())) == 1 else dict(sides)


def in_words(choices: Mapping[str, Choice]) -> Iterator[str]:
    """A line for each camera, of at most `MOST_SHOWN`: which size was chosen for it, and why."""
    for camera, choice in list(choices.items())[:MOST_SHOWN]:
        sides = f"{choice.side} pixels" if choice.near is None else f"{choice.near} and {choice.side} pixels would fit"
        yield f"  {camera}: {sides}: {choice.why}"
    if len(choices) > MOST_SHOWN:
        yield f"  and {len(choices) - MOST_SHOWN} more cameras"
