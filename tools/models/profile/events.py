"""Reads ONNX Runtime's profile of some runs: the time and memory of each node. Pure.

The profile is a list of events in the format of Chrome's tracing, times in microseconds:

    Session  model_loading_uri, session_initialization      once
    Session  model_run      ts ├──────────────────────┤     each run
    Node     NAME_kernel_time  ├──┤├────┤├─┤   ├──────┤     each node of each run: op_name, provider, sizes

Sizes are in bytes: a node's outputs (`output_size`), its weights (`parameter_size`), and in newer versions the contents
of the arena meanwhile (`mem_in_use_peak`, `mem_arena_held`). Source: profiles of ONNX Runtime 1.31 on the CPU.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

_SUFFIX = "_kernel_time"
_LOADING = ("model_loading_uri", "model_loading_array", "session_initialization")
Event = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Node:
    """One node. ``ms``: of one run, the median; ``outputs`` and ``weights`` in bytes, of one run."""

    name: str
    operator: str
    provider: str
    ms: float
    outputs: int
    weights: int
    shapes: str


@dataclass(frozen=True, slots=True)
class Group:
    """Nodes that have something in common: the sums of their figures, and the ``share`` of all nodes' time."""

    name: str
    nodes: int
    ms: float
    share: float
    outputs: int
    weights: int


@dataclass(frozen=True, slots=True)
class Profile:
    """Of ``runs`` runs. ``run_ms``: of a whole run, the median; bytes at the peak of a run, 0 if unknown."""

    runs: int
    run_ms: float
    loading_ms: float
    nodes: Sequence[Node]
    peak_bytes: int
    arena_bytes: int

    @property
    def node_ms(self) -> float:
        """Of all nodes together."""
        return sum(node.ms for node in self.nodes)

    @property
    def heaviest(self) -> list[Node]:
        """The nodes, the slowest first."""
        return sorted(self.nodes, key=lambda node: -node.ms)

    def by_operator(self) -> list[Group]:
        """The slowest first."""
        return self._grouped([node.operator for node in self.nodes])

    def by_provider(self) -> list[Group]:
        """The slowest first."""
        return self._grouped([node.provider for node in self.nodes])

    def share(self, ms: float) -> float:
        """Of the time of all nodes, 0 to 1."""
        return ms / self.node_ms if self.node_ms else 0.0

    def _grouped(self, names: Sequence[str]) -> list[Group]:
        members: dict[str, list[Node]] = defaultdict(list)
        for name, node in zip(names, self.nodes, strict=True):
            members[name].append(node)
        groups = [self._group(name, nodes) for name, nodes in members.items()]
        return sorted(groups, key=lambda group: -group.ms)

    def _group(self, name: str, nodes: Sequence[Node]) -> Group:
        ms = sum(node.ms for node in nodes)
        outputs, weights = sum(node.outputs for node in nodes), sum(node.weights for node in nodes)
        return Group(name, len(nodes), ms, self.share(ms), outputs, weights)


def read_profile(events: Sequence[Event], *, warm_up: int = 0) -> Profile:
    """Sum up the events of all runs but the first ``warm_up``. Raises ValueError if there is no such run."""
    runs = sorted((event for event in events if event["name"] == "model_run"), key=lambda event: event["ts"])
    counted = runs[warm_up:]
    if not counted:
        raise ValueError(f"expected more than {warm_up} runs in the profile, got {len(runs)}")
    begin = counted[0]["ts"]
    kernels = [event for event in events if event["cat"] == "Node" and event["name"].endswith(_SUFFIX)]
    kernels = [event for event in kernels if event["ts"] >= begin]
    return Profile(
        runs=len(counted),
        run_ms=median(event["dur"] for event in counted) / 1e3,
        loading_ms=sum(event["dur"] for event in events if event["name"] in _LOADING) / 1e3,
        nodes=_nodes(kernels, len(counted)),
        peak_bytes=_most(kernels, "mem_in_use_peak"),
        arena_bytes=_most(kernels, "mem_arena_held"),
    )


def _nodes(kernels: Sequence[Event], runs: int) -> list[Node]:
    """In the order in which they first ran. A node that runs several times in a run (in a loop) counts with all."""
    times: dict[tuple[str, str, str], list[Event]] = defaultdict(list)
    for event in kernels:
        args = event["args"]
        times[event["name"].removesuffix(_SUFFIX), args["op_name"], args.get("provider", "unknown")].append(event)
    return [_node(*key, own, max(1, round(len(own) / runs))) for key, own in times.items()]


def _node(name: str, operator: str, provider: str, own: Sequence[Event], each_run: int) -> Node:
    args = own[-1]["args"]
    return Node(
        name, operator, provider, median(event["dur"] for event in own) * each_run / 1e3,
        int(args.get("output_size", 0)) * each_run, int(args.get("parameter_size", 0)),
        f"{_shapes(args.get('input_type_shape', ()))} -> {_shapes(args.get('output_type_shape', ()))}",
    )  # fmt: skip


def _shapes(rows: Sequence[Mapping[str, Sequence[int]]]) -> str:
    """Of arrays; of constants such as axes and of bias, which have one axis, nothing is said."""
    sides = [shape for one in rows for shape in one.values() if len(shape) > 1]
    return ", ".join("x".join(map(str, shape)) for shape in sides) or "-"


def _most(kernels: Sequence[Event], name: str) -> int:
    return max((int(event["args"].get(name, 0)) for event in kernels), default=0)
