"""Builds the stages of one process, from the settings that the supervisor sends (`pipeline.boot`)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from camgraph.pipeline.boot import Boot
from camgraph.pipeline.errors import UserError
from camgraph.pipeline.execution.context import Pulse, StageContext
from camgraph.pipeline.execution.outbox_runner import OutboxRunner
from camgraph.pipeline.execution.process_parts import ProcessParts
from camgraph.pipeline.execution.runner import Runner, StageRunner
from camgraph.pipeline.execution.stage_chain import StageChain
from camgraph.pipeline.messages import Event
from camgraph.pipeline.monitoring.tracer import SpanExporter, Tracer, TraceReports
from camgraph.pipeline.outbox.outbox import Outbox
from camgraph.pipeline.plan import StagePlan
from camgraph.pipeline.registry import find_stage
from camgraph.pipeline.stage import Source, Stage


@dataclass(frozen=True, slots=True)
class Built:
    """The stages of a process, not opened yet, and its sources, one for each camera, with their signs of life."""

    chain: StageChain
    sources: list[tuple[Source[Any], Pulse]]
    outbox: Outbox | None
    tracer: Tracer | None = None

    def close_tracer(self) -> None:
        """Send the last spans, if there are traces."""
        if self.tracer is not None:
            self.tracer.close()


class Builder:
    """Builds the stages of one process. `boot`: the settings that the process has now, which a revision changes."""

    def __init__(self, boot: Boot, parts: ProcessParts) -> None:
        self._boot = boot
        self._plan = boot.plan
        self._parts = parts

    def build(self) -> Built:
        """Find the stages of the process and make them."""
        for plan in self._plan.stages:
            os.environ.update(plan.environment)
        stages: dict[str, Stage[Any]] = {}
        for plan in self._plan.stages:
            stage_class = find_stage(plan.use)
            if not issubclass(stage_class, Source):
                settings = _settings(plan, stage_class.settings_type)
                context = StageContext(plan, self._boot, self._parts, emits=stage_class.emits)
                stages[plan.name] = stage_class(settings, context)
        sources = [self.source(camera) for camera in self._plan.cameras] if self._plan.sources else []
        outbox = next((stage for stage in stages.values() if isinstance(stage, Outbox)), None)
        if outbox:
            outbox.expects_more = self._plan.expects_more
        tracer = self._tracer()
        return Built(StageChain(self._plan, self._runners(stages, tracer), self._parts.log), sources, outbox, tracer)

    def _tracer(self) -> Tracer | None:
        wanted = self._boot.tracing
        if wanted is None or not self._plan.stages:
            return None
        deals_with_events = any(map(_deals_with_events, self._plan.stages))
        return Tracer(wanted["share"], self._exporter(wanted) if deals_with_events else None)

    def _exporter(self, wanted: Mapping[str, Any]) -> SpanExporter:
        from camgraph.pipeline.monitoring.trace_export import OtlpExporter  # noqa: PLC0415 - an extra

        report = TraceReports(self._parts.counters, self._parts.log).report
        return OtlpExporter(wanted["endpoint"], wanted["headers"], self._boot.graph, self._plan.name, report)

    def source(self, camera: str) -> tuple[Source[Any], Pulse]:
        """The source of one of its cameras, with its signs of life; for a process that has a source stage."""
        plan = next(plan for plan in self._plan.stages if plan.name in self._plan.sources)
        stage_class = find_stage(plan.use)
        assert issubclass(stage_class, Source)
        settings = _settings(plan, stage_class.settings_type)
        pulse = Pulse()
        camera_settings = stage_class.camera_type.model_validate(dict(self._boot.camera_settings[camera]))
        context = StageContext(plan, self._boot, self._parts, pulse=pulse)
        return stage_class(settings, camera, camera_settings, context), pulse

    def _runners(self, stages: Mapping[str, Stage[Any]], tracer: Tracer | None) -> dict[str, Runner]:
        plans = {plan.name: plan for plan in self._plan.stages}
        usual = {
            name: StageRunner(plans[name], stage, self._parts, tracer=tracer)
            for name, stage in stages.items()
            if not isinstance(stage, Outbox)
        }
        runners: dict[str, Runner] = dict(usual)
        for name, stage in stages.items():
            if isinstance(stage, Outbox):
                sinks = {e.reader: usual[e.reader] for e in self._plan.edges if e.inner and e.sender == name}
                runners[name] = OutboxRunner(plans[name], stage, sinks=sinks, retry=self._parts.retry, tracer=tracer)
        return {name: runners[name] for name in stages}


def _deals_with_events(plan: StagePlan) -> bool:
    """Whether it makes or takes events, so that there is something to tell about their traces."""
    kind = find_stage(plan.use)
    return issubclass(kind, Stage) and (kind.inputs is Event or Event in kind.outputs)


def _settings(plan: StagePlan, settings_type: type[Any]) -> Any:
    try:
        return settings_type.model_validate(dict(plan.settings))
    except ValueError as error:
        raise UserError(f"stage {plan.name}: {error}", error_id="setting-value") from None
