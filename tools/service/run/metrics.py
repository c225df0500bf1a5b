"""The state of a run in Prometheus' words: pure, from its `RunStatus`.

Counters end in `_total`, times are seconds, shares are 0 to 1, memory is bytes. A value that is not known is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from camgraph.pipeline.foreign_text import shown
from camgraph.pipeline.monitoring.run_status import (
    AllDurations,
    BacklogStatus,
    CameraStatus,
    DurationsStatus,
    ProcessStatus,
    RunStatus,
    StageStatus,
)
from camgraph.tools.measuring.nvidia_smi import GpuLoad

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
LEVELS = ("healthy", "degraded", "down")
STATES = ("starting", "queued", "waiting", "connecting", "live", "running", "stalled", "lost", "unauthorised", "gone",
          "paused", "done", "stopped", "failed")  # fmt: skip
"""Of a camera (docs/operations.md)."""

Rows = Iterable[tuple[tuple[str, ...], float | None]]
"""Values of labels -> value."""


def exposition(status: RunStatus | None, gpus: Sequence[GpuLoad] = ()) -> bytes:
    """All metrics of a run, and of the machine's GPUs, for Prometheus; None: the run does not answer."""
    registry = CollectorRegistry()
    registry.register(_Status(status, gpus))
    return generate_latest(registry)


class _Status(Collector):
    def __init__(self, status: RunStatus | None, gpus: Sequence[GpuLoad]) -> None:
        self._status = status
        self._gpus = gpus

    def collect(self) -> Iterator[Metric]:
        yield _gauge("camgraph_up", "1 if the run answers", (), [((), float(self._status is not None))])
        if self._status is not None:
            yield from _of_run(self._status)
            yield from _of_cameras(self._status.cameras, self._status.actions)
            yield from _of_stages(self._status.stages)
            yield from _of_durations(self._status.durations)
            yield from _of_processes(self._status.processes)
            yield from _of_sinks(self._status.outbox)
        if self._gpus:
            yield from _of_gpus(self._gpus)


def _of_run(status: RunStatus) -> Iterator[Metric]:
    level, totals = status.health.level, status.totals
    yield _gauge(
        "camgraph_health", "1 for the present level of health", ("level",), [((x,), x == level) for x in LEVELS]
    )
    yield _gauge("camgraph_uptime_seconds", "Since the run began", (), [((), status.uptime_s)])
    yield _gauge("camgraph_memory_bytes", "Of all processes and shared memory", (), [((), status.memory_mb * 1e6)])
    yield _gauge("camgraph_troubles", "Troubles of stages and processes now", (), [((), len(status.troubles))])
    yield _counter("camgraph_events_committed", "Events that are safe in the outbox", (), [((), totals.committed)])
    counters = status.counters.items()
    rows = [
        ((camera, counter, name), n) for camera, of in counters for counter, ns in of.items() for name, n in ns.items()
    ]
    yield _gauge("camgraph_rule_value", "The counters of rules", ("camera", "counter", "name"), rows)


def _of_cameras(cameras: Mapping[str, CameraStatus], actions: Mapping[str, Mapping[str, int]]) -> Iterator[Metric]:
    every = cameras.items()

    def each(key: str, scale: float = 1.0) -> Rows:
        return [((name,), _scaled(getattr(one, key), scale)) for name, one in every]

    def by_reason(key: str) -> Rows:
        return [((name, reason), n) for name, one in every for reason, n in getattr(one, key).items()]

    one, reasons = ("camera",), ("camera", "reason")
    yield _counter("camgraph_camera_frames", "Frames that arrived", one, each("frames"))
    yield _gauge("camgraph_camera_frames_per_second", "Over the last two seconds", one, each("fps"))
    yield _counter("camgraph_camera_dropped_frames", "Not processed, by reason", reasons, by_reason("drops_by_reason"))
    yield _counter("camgraph_camera_skipped_frames", "Left out on purpose", reasons, by_reason("skipped_by_reason"))
    yield _gauge(
        "camgraph_camera_frame_age_seconds", "Of the newest frame, at the end of its way", one, each("age_ms", 1e-3)
    )
    yield _gauge("camgraph_camera_last_frame_seconds", "Since a frame went all the way through", one, each("through_s"))
    yield _counter("camgraph_camera_losses", "How often it was away", one, each("losses"))
    states = [((name, state), state == of.state) for name, of in every for state in STATES]
    yield _gauge("camgraph_camera_state", "1 for its present state", ("camera", "state"), states)
    incidents = [((camera, action), n) for camera, of in actions.items() for action, n in of.items()]
    yield _counter("camgraph_incidents", "Incidents, and losses of cameras", ("camera", "action"), incidents)


def _scaled(value: float | None, scale: float) -> float | None:
    return None if value is None else value * scale


def _of_stages(stages: Mapping[str, StageStatus]) -> Iterator[Metric]:
    every = stages.items()

    def each(key: str) -> Rows:
        return [((name,), getattr(one, key)) for name, one in every]

    stage = ("stage",)
    yield _counter("camgraph_stage_items", "Items that it has processed", stage, each("items"))
    yield _gauge("camgraph_stage_items_per_second", "Over the last two seconds", stage, each("fps"))
    yield _gauge("camgraph_stage_queue", "Items that wait for it", stage, each("queue"))
    yield _gauge("camgraph_stage_batch_size", "The mean of the last calls", stage, each("batch"))
    yield _gauge("camgraph_stage_busy", "Seconds of work in each second, over the last ten", stage, each("busy"))
    yield _counter("camgraph_stage_restarts", "Of its processes", stage, each("restarts"))
    facts = ((name, one.facts) for name, one in every)
    models = [((name, str(of.get("model", "")), str(of["provider"])), 1) for name, of in facts if "provider" in of]
    yield _gauge("camgraph_model_info", "1 for each stage with a model", ("stage", "model", "provider"), models)


def _of_durations(durations: AllDurations) -> Iterator[Metric]:
    bounds = [*map(str, durations.bounds_s), "+Inf"]

    def family(name: str, about: str, label: str, histograms: Mapping[str, DurationsStatus]) -> Metric:
        made = HistogramMetricFamily(name, about, labels=(label,))
        for of, one in histograms.items():
            buckets = list(zip(bounds, map(float, accumulate(one.counts)), strict=True))
            made.add_metric([shown(of)], buckets, sum_value=one.sum_s)
        return made

    yield family("camgraph_stage_call_seconds", "The calls of a stage, each with a batch", "stage", durations.stages)
    yield family(
        "camgraph_camera_frame_latency_seconds",
        "From the arrival of a frame to the end of its way",
        "camera",
        durations.cameras,
    )


def _of_processes(processes: Mapping[str, ProcessStatus]) -> Iterator[Metric]:
    cpu = [((name,), one.cpu_s) for name, one in processes.items()]
    yield _counter("camgraph_process_cpu_seconds", "Of the living process", ("process",), cpu)
    slots = [((name,), one.slots) for name, one in processes.items()]
    yield _gauge("camgraph_process_slots", "Slots of shared memory in use", ("process",), slots)


def _of_sinks(outbox: Mapping[str, BacklogStatus]) -> Iterator[Metric]:
    def each(key: str) -> Rows:
        return [((name,), getattr(one, key)) for name, one in outbox.items()]

    yield _gauge("camgraph_sink_waiting_events", "That wait in the outbox", ("sink",), each("waiting"))
    yield _gauge("camgraph_sink_oldest_event_seconds", "The age of the oldest of them", ("sink",), each("oldest_s"))
    yield _gauge("camgraph_sink_dead_letters", "That could never be delivered", ("sink",), each("dead_letters"))
    yield _counter("camgraph_sink_given_up_events", "Since the outbox began", ("sink",), each("given_up"))


def _of_gpus(gpus: Sequence[GpuLoad]) -> Iterator[Metric]:
    labels = [(str(one.number), one.name) for one in gpus]

    def gauge(name: str, about: str, values: Iterable[float | None]) -> Metric:
        return _gauge(name, about, ("gpu", "name"), zip(labels, values, strict=True))

    yield gauge("camgraph_gpu_memory_used_bytes", "By all programs", (one.used_bytes for one in gpus))
    yield gauge("camgraph_gpu_memory_bytes", "That the GPU has", (one.total_bytes for one in gpus))
    yield gauge("camgraph_gpu_busy", "Share of the last moment in which it worked", (one.busy for one in gpus))


def _gauge(name: str, about: str, labels: tuple[str, ...], rows: Rows) -> Metric:
    return _filled(GaugeMetricFamily(name, about, labels=labels), rows)


def _counter(name: str, about: str, labels: tuple[str, ...], rows: Rows) -> Metric:
    return _filled(CounterMetricFamily(name, about, labels=labels), rows)


def _filled(family: GaugeMetricFamily | CounterMetricFamily, rows: Rows) -> Metric:
    for labels, value in rows:
        if value is not None:
            family.add_metric([shown(label) for label in labels], float(value))
    return family
