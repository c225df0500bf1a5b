"""How many frames of one camera a stage and its queues hold.

depth    of an edge: 1 where it drops. Where it blocks 4, or more where the reader's batches need it: a credit comes
         back when the message has been processed, so the depth bounds what a batch can hold of one camera. A port
         of a join is deeper by as much as the longest way to the join is longer than its own (`lags_of`).
window   of a process: the most that one of its stages, or of those behind, works on or gathers, and two more; at
         least 4, and never less than the depth of an edge that leaves it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import ceil

from pipeline.graph.arrows import Arrow
from pipeline.graph.nodes import OUTBOX, Node
from pipeline.plan import EdgePlan, Policy

DEPTH_BLOCK = 4
DEPTH_DROP = 1
MIN_WINDOW = 4
_SPARE = 2
"""Frames on their way in and out of a stage."""


def frames_at_work(node: Node, cameras_of_worker: int) -> int:
    """How many frames of one camera a busy stage works on or gathers: a batch for each thread and one more.

    ceil((threads + 1) x batch.max / cameras of one worker).
    """
    batch = node.entry.batch.max if node.entry.batch else 1
    return ceil((node.entry.threads + 1) * batch / max(1, cameras_of_worker))


def cameras_of_worker(node: Node, cameras: int) -> int:
    """How many cameras the least busy worker of a stage has."""
    return 1 if node.source else cameras // (node.entry.workers or 1)


def lags_of(nodes: Mapping[str, Node], order: Iterable[str], arrows: Sequence[Arrow], cameras: int) -> dict[str, int]:
    """Stage -> how many frames of one camera the stages on the longest way from the source to its output hold."""
    lags: dict[str, int] = {}
    for name in order:
        node = nodes[name]
        held = 0 if node.source else frames_at_work(node, cameras_of_worker(node, cameras)) + _SPARE
        lags[name] = held + max((lags[arrow.sender] for arrow in arrows if arrow.reader == name), default=0)
    return lags


def depth_of(arrow: Arrow, policy: Policy, at_work: int, behind: int) -> int:
    """The depth of an edge: what the graph says, or else enough for its reader (`at_work`) and its join (`behind`)."""
    base = max(DEPTH_BLOCK, at_work) if policy == "block" else DEPTH_DROP
    return arrow.depth or base + behind


def window_of(
    stage: str, nodes: Sequence[Node], edges: Sequence[EdgePlan], cameras_of_workers: Mapping[str, int]
) -> int:
    """The window of a process, as far as one of its stages decides it. `nodes` and `edges` in topological order."""
    behind = {stage}
    for edge in edges:
        if edge.sender in behind:
            behind.add(edge.reader)
    busy = [node for node in nodes if node.name in behind and not node.source]
    held = [frames_at_work(node, cameras_of_workers[node.name]) + _SPARE for node in busy]
    depths = [edge.depth for edge in edges if edge.sender == stage != OUTBOX]
    return max([MIN_WINDOW, *held, *depths])
