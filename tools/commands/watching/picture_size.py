"""The size of the model's picture in a graph that leaves it open: by a look at its files, as `camgraph watch` does.

prepare: {use: preprocess, from: capture}        MultiPose takes any size -> `size: auto`
                                                 a look at the files      -> `max_side: 384`
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from pipeline.plan import RunPlan, StagePlan, UnitPlan
from pipeline.system.paths import resolve
from stages.reading.addresses import file_of, is_device

DEVICE_SIDE = 384
"""Of the model's picture for cameras of this machine, before which people sit or stand."""
LOOKING = "looking at how large people are in these pictures"


def with_picture_sizes(plan: RunPlan, say: Callable[[str], None]) -> RunPlan:
    """The plan with a `max_side` for each stage that makes pictures of `size: auto` and has none.

    `say` is called before anything that takes a while. A plan that leaves nothing open stays as it is.
    """
    sides: dict[tuple[str, ...], int | None] = {}

    def chosen(stage: StagePlan) -> StagePlan:
        if stage.settings.get("size") != "auto" or "max_side" in stage.settings:
            return stage
        models = _models_behind(stage.name, plan)
        if not models:
            return stage
        if models not in sides:
            sides[models] = _side(Path(plan.base_folder), models, plan, say)
        side = sides[models]
        return stage if side is None else replace(stage, settings={**stage.settings, "max_side": side})

    return replace(plan, units=tuple(_each(unit, chosen) for unit in plan.units))


def _each(unit: UnitPlan, change: Callable[[StagePlan], StagePlan]) -> UnitPlan:
    return replace(unit, stages=tuple(map(change, unit.stages)))


def _models_behind(stage: str, plan: RunPlan) -> tuple[str, ...]:
    """The files of the models that are given this stage's pictures."""
    readers = {edge.reader for unit in plan.units for edge in unit.edges if edge.sender == stage}
    behind = {one.name: one.settings for unit in plan.units for one in unit.stages if one.name in readers}
    return tuple(sorted({str(settings["model"]) for settings in behind.values() if settings.get("model")}))


def _side(folder: Path, models: Sequence[str], plan: RunPlan, say: Callable[[str], None]) -> int | None:
    """None if nothing is known of the frames beforehand."""
    urls = [str(settings.get("url", "")) for settings in plan.camera_settings.values()]
    if not all(urls):  # cameras of a source that reads no files
        return None
    if plan.live_cameras:
        return DEVICE_SIDE if all(map(is_device, urls)) else None
    # ONNX Runtime takes a while to import.
    from tools.commands.watching.size import best_side  # noqa: PLC0415

    say(LOOKING)
    files = [resolve(file_of(url), folder) for url in urls]
    return max(best_side(resolve(model, folder), files) for model in models)
