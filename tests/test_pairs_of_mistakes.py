"""No mistake hides another: of each two that are made in one graph, both are told, as each is when it is alone."""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import yaml

from camgraph.pipeline.errors import GraphError
from camgraph.pipeline.graph import parse_graph
from camgraph.tools.lab.proofs.fuzz_check import GRAPH, RULES, make_folder

pytestmark = [pytest.mark.slow, pytest.mark.processes]

Key = tuple[str | int, ...]
GONE = object()
MISTAKES: list[tuple[str, Key, Any]] = [
    ("graph", ("version",), 2),
    ("graph", ("nmae",), "x"),
    ("graph", ("processes",), "seperate"),
    ("graph", ("hang_s",), "long"),
    ("graph", ("cameras", "front", "url"), GONE),
    ("graph", ("cameras", "front", "max_fps"), "ten"),
    ("graph", ("cameras", "front", "max_fsp"), 10),
    ("graph", ("cameras", "front", "stalled_s"), 5),
    ("graph", ("cameras", "front", "start_s"), -1),
    ("graph", ("cameras", "yard", "url"), "none.mp4"),
    ("graph", ("cameras", "yard", "transport"), "udp"),
    ("graph", ("cameras", "yard", "priority"), 0),
    ("graph", ("camera_defaults", "realtime"), "perhaps"),
    ("graph", ("camera_defaults", "fps"), 0),
    ("graph", ("stages", "prepare", "with", "size"), "big"),
    ("graph", ("stages", "prepare", "with", "sise"), [1, 2]),
    ("graph", ("stages", "prepare", "workers"), 0),
    ("graph", ("stages", "prepare", "each"), "cameras"),
    ("graph", ("stages", "infer", "batch", "max"), 0),
    ("graph", ("stages", "infer", "batch", "wait_ms"), -1),
    ("graph", ("stages", "infer", "with", "model"), "none.onnx"),
    ("graph", ("stages", "infer", "with", "providers"), ["cpuu"]),
    ("graph", ("stages", "infer", "with", "sha256"), "abc"),
    ("graph", ("stages", "infer", "with", "custom_ops"), ["none.so"]),
    ("graph", ("stages", "people", "with", "min_score"), 7),
    ("graph", ("stages", "people", "with", "iou"), "high"),
    ("graph", ("stages", "tracks", "threads"), 4),
    ("graph", ("stages", "tracks", "use"), "trakc"),
    ("graph", ("stages", "actions", "with", "clocks"), {"frnt": "ntp"}),
    ("graph", ("stages", "actions", "with", "min_confidence"), 0.5),
    ("graph", ("stages", "more", "with", "rules", 0, "when"), "in dor"),
    ("graph", ("stages", "more", "with", "rules", 0, "for"), "2 s"),
    ("graph", ("stages", "more", "with", "rules", 0, "cameras"), ["frnt"]),
    ("graph", ("stages", "more", "with", "zones", "lane"), [[0, 0], [1, 1]]),
    ("graph", ("stages", "log", "from"), "evnets"),
    ("graph", ("stages", "log", "workers"), 2),
    ("graph", ("stages", "log", "with", "order"), "tiem"),
    ("graph", ("stages", "log", "with", "path"), GONE),
    ("graph", ("stages", "alarm", "with", "address"), "tcp//x"),
    ("graph", ("stages", "alarm", "with", "wait"), 1),
    ("graph", ("stages", "films", "from", "frmes"), "capture"),
    ("rules", ("version",), 2),
    ("rules", ("min_confidence",), 2),
    ("rules", ("zones", "door"), [[0, 0], [1, 0]]),
    ("rules", ("zones", "till", "frnt"), [[0, 0], [1, 0], [1, 1]]),
    ("rules", ("zones", "till", "front"), [[10, 10], [600, 10], [600, 40]]),
    ("rules", ("lines", "gate", "to"), [2]),
    ("rules", ("lines", "gate", "form"), [0, 0]),
    ("rules", ("rules", 4, "id"), GONE),
    ("rules", ("rules", 4, "for"), 1),
    ("rules", ("rules", 4, "when"), "left_hand.y < nose.y"),
    ("rules", ("rules", 4, "cameras"), ["frnt"]),
    ("rules", ("rules", 4, "hold"), "9" * 400 + "s"),
    ("rules", ("rules", 4, "who"), "in till"),
    ("rules", ("rules", 5, "wen"), "x"),
    ("rules", ("rules", 5, "when"), GONE),
    ("rules", ("rules", 6, "scope"), "pairs"),
    ("rules", ("rules", 6, "when"), "distance(a.foot, b.feet) < 1h"),
    ("rules", ("rules", 7, "id"), "waits"),
    ("rules", ("rules", 7, "who"), "in tll"),
    ("rules", ("rules", 7, "gap"), "long"),
    ("rules", ("rules", 8, "min_visible"), 3),
]
HIDES = {
    # What a stage is, is not known, and so neither what it can.
    (("stages", "tracks", "use"), ("stages", "tracks", "threads")),
    # Where the camera is, is not known, and so neither what goes with it, nor how large its pictures are.
    (("cameras", "front", "url"), ("cameras", "front", "stalled_s")),
    (("cameras", "front", "url"), ("zones", "till", "front")),
    # A wrong patience is none that is in vain.
    (("stages", "infer", "batch", "wait_ms"), ("stages", "infer", "batch", "max")),
}
"""(one mistake, the other one that cannot be told beside it)."""
_ONE_IN = 8
DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pairs")
    make_folder(folder)
    return folder


@functools.cache
def plain(text: str) -> Any:
    return yaml.safe_load(text)


def changed(text: str, mistakes: list[tuple[Key, Any]]) -> str:
    data = copy.deepcopy(plain(text))
    for (*around, last), value in mistakes:
        holder = data
        for part in around:
            holder = holder[part]
        if value is GONE:
            del holder[last]
        else:
            holder[last] = copy.deepcopy(value)
    dumped: str = yaml.dump(data, Dumper=DUMPER, sort_keys=False, width=1000)
    return dumped


def mistakes_of(mistakes: list[tuple[str, Key, Any]], folder: Path) -> set[str]:
    """What is told of a graph with these mistakes, without places in the file."""
    texts = {
        name: changed(text, [(key, value) for where, key, value in mistakes if where == name])
        for name, text in (("graph", GRAPH), ("rules", RULES))
    }
    (folder / "rules.yaml").write_text(texts["rules"])
    try:
        parse_graph(texts["graph"], "graph.yaml", base_folder=folder, environ={})
    except GraphError as error:
        return {problem.text for problem in error.problems}
    return set()


def pairs() -> Iterator[tuple[tuple[str, Key, Any], tuple[str, Key, Any]]]:
    """All that stand near each other, and some of the others."""
    for number, (one, other) in enumerate(combinations(MISTAKES, 2)):
        near = (one[0], one[1][:2]) == (other[0], other[1][:2])
        if near or number % _ONE_IN == 0:
            yield one, other


def test_each_mistake_is_told_alone(folder: Path) -> None:
    assert mistakes_of([], folder) == set()
    silent = [mistake for mistake in MISTAKES if not mistakes_of([mistake], folder)]
    assert silent == []


def test_what_does_not_go_together_hides_nothing_else(folder: Path) -> None:
    live = [
        ("graph", ("cameras", "front", key), value)
        for key, value in (("start_s", 1), ("loop", True), ("url", "rtsp:///x"))
    ]
    found = mistakes_of(
        [*live, ("graph", ("cameras", "yard", "fps"), 5), ("graph", ("cameras", "yard", "url"), "x")], folder
    )
    for words in (
        "cameras.front: start_s is for files",
        "cameras.front: loop is for files",
        "cameras.front.url: ",
        "cameras.yard.url: no such file",
    ):
        assert any(text.startswith(words) for text in found), (words, found)


def test_of_each_two_mistakes_both_are_told(folder: Path) -> None:
    alone = {mistake[:2]: mistakes_of([mistake], folder) for mistake in MISTAKES}
    hidden = []
    for one, other in pairs():
        found = mistakes_of([one, other], folder)
        for mistake, beside in ((one, other), (other, one)):
            if (beside[1], mistake[1]) not in HIDES and not alone[mistake[:2]] <= found:
                hidden.append(f"{beside[1]} hides {mistake[1]}: {sorted(alone[mistake[:2]] - found)}")
    assert hidden == []
