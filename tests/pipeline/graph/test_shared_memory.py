"""What `check` says of shared memory."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from camgraph.pipeline.graph import Graph, shared_memory
from camgraph.pipeline.graph.planning import plan_of
from camgraph.pipeline.graph.shared_memory import in_words, memory_need
from camgraph.pipeline.plan import slots_of
from camgraph.pipeline.shm.segments import segments_bytes
from camgraph.pipeline.shm.slots import SlotRing

Parse = Callable[..., Graph]

GRAPH = """\
version: 1
processes: separate
cameras: {a: {bytes: 1000000}, b: {bytes: 500000}}
stages:
  count: {use: count_source}
  twice: {use: double, from: count}
  end: {use: collect, from: twice, with: {path: x}}
"""


def test_slots_are_window_plus_two_per_camera(parse: Parse) -> None:
    graph = parse(GRAPH)
    need = memory_need(graph)
    assert graph.window == 6
    assert (need.slots, need.known_bytes) == (16, 8 * (1_003_520 + 503_808) + 2 * 4096)
    assert need.free_bytes == shared_memory.free_shared_memory() > 0
    assert next(iter(in_words(need))) == "shared memory of the sources: 12.1 MB in 16 slots"


@pytest.mark.parametrize("live", ["", ", live: true"])
def test_the_need_is_what_the_processes_take(parse: Parse, live: str) -> None:
    graph = parse(GRAPH.replace("000000", f"000000{live}").replace("500000", f"500000{live}"))
    prefix = f"camgraph-{os.getuid()}-memory-{os.getpid()}"
    processes = [process for process in plan_of(graph).processes if process.sources]
    rings = [SlotRing(f"{prefix}-{process.name}", slots_of(process)) for process in processes]
    try:
        for ring, size in zip(rings, (1_000_000, 500_000), strict=True):
            ring.allocate(size)
        taken = sum(segments_bytes(f"{prefix}-{process.name}") for process in processes)
    finally:
        for ring in rings:
            ring.close()
    assert memory_need(graph).known_bytes == taken


BATCHES = "batch: {max: 8}, from: count"


@pytest.mark.parametrize(
    ("reads", "slots"),
    [
        ("from: count", 1 + 3 + 2 + 2),
        (BATCHES, 1 + 3 + 2 + 2),
        ("from: {stage: count, depth: 5}", 5 + 3 + 2 + 2),
        ("from: {stage: count, policy: block}", 6 + 1 + 1),
    ],
    ids=["usual", "batches", "depth", "blocks"],
)
def test_live_camera_needs_window_only_if_edge_blocks(parse: Parse, reads: str, slots: int) -> None:
    """However many frames the stages behind it work on: they have freed the slots of these."""
    text = GRAPH.replace("000000", "000000, live: true").replace("500000", "500000, live: true")
    graph = parse(text.replace("use: double, from: count", f"use: double, {reads}"))
    processes = [process for process in plan_of(graph).processes if process.sources]
    assert [slots_of(process) for process in processes] == [slots, slots]
    assert graph.window == (6 if reads is not BATCHES else 18)


@pytest.mark.parametrize("processes", ["one", "compact"])
def test_frames_that_never_leave_their_process_need_none(parse: Parse, processes: str) -> None:
    need = memory_need(parse(GRAPH.replace("separate", processes)))
    assert (need.slots, need.known_bytes, need.unknown, need.fits) == (0, 0, (), True)
    assert list(in_words(need)) == []


def test_what_only_opening_would_tell_is_said_to_be_unknown(parse: Parse, monkeypatch: pytest.MonkeyPatch) -> None:
    from camgraph_test_stages.source import CountSource

    monkeypatch.setattr(CountSource, "slot_bytes", classmethod(lambda cls, settings, folder: None))
    need = memory_need(parse(GRAPH))
    assert need.unknown == ("a", "b")
    assert "  not known before it is opened: a, b" in list(in_words(need))


def test_without_shared_memory_nothing_fits(parse: Parse, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(shared_memory, "SHARED_MEMORY", tmp_path / "none")
    assert not memory_need(parse(GRAPH)).fits
