"""The stages of a plan with their settings: for what they declare about themselves while it runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from camgraph.pipeline.plan import RunPlan
from camgraph.pipeline.registry import find_stage
from camgraph.pipeline.stage import Stage


def declaring(plan: RunPlan, hook: str) -> Iterator[Any]:
    """The answers of all stages that have a class method of this name of their own, each asked with its settings."""
    for stage in {stage.name: stage for process in plan.processes for stage in process.stages}.values():
        kind = find_stage(stage.use)
        if issubclass(kind, Stage) and getattr(kind, hook).__func__ is not getattr(Stage, hook).__func__:
            yield getattr(kind, hook)(kind.settings_type.model_validate(dict(stage.settings)))
