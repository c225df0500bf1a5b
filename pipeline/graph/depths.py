"""How many frames of one camera a graph and its queues hold.

window   of a graph that blocks: how many frames of a camera may be on their way at once, from the source to the sinks;
         each process keeps to it by itself. Twice what its busiest stage works on and gathers, and two more, so that
         this stage always finds the next batch waiting; at least 6.
depth    of an edge: 1 if it drops. If it blocks, 6 as the least window, or more if the reader's batches need it: a
         credit comes back when the message has been processed, so the depth bounds what a batch can hold of one
         camera. With fewer, a sender would run out of credits before it runs out of places in the window, and readers
         would have to return credits apart from acknowledgements. A port of a join is as deep as the frames that can
         be on the other way meanwhile: the window if edges block, else the frames that the stages on the longest way
         hold (`lags_of`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from pipeline.graph.arrows import Arrow
from pipeline.graph.nodes import Node
from pipeline.plan import Policy, frames_at_work

MIN_WINDOW = 6
DEPTH_BLOCK = MIN_WINDOW
DEPTH_DROP = 1
_SPARE = 2
"""Frames on their way in and out of a stage."""


def at_work_of(node: Node, cameras: int) -> int:
    """How many frames of one camera a busy stage holds, in the worker that has the fewest of `cameras`."""
    batch_max = node.entry.batch.max if node.entry.batch else 1
    return frames_at_work(node.threads, batch_max, cameras_of_worker(node, cameras))


def cameras_of_worker(node: Node, cameras: int) -> int:
    """How many cameras the least busy worker of a stage has."""
    return 1 if node.source else cameras // (node.entry.workers or 1)


def window_of(nodes: Iterable[Node], cameras: int) -> int:
    """How many frames of one camera may be on their way at once. Event sinks are behind the outbox and do not count."""
    busy = [node for node in nodes if not (node.source or node.takes_events)]
    held = [2 * at_work_of(node, cameras) + _SPARE for node in busy]
    return max([MIN_WINDOW, *held])


def lags_of(nodes: Mapping[str, Node], order: Iterable[str], arrows: Sequence[Arrow], cameras: int) -> dict[str, int]:
    """Stage -> how many frames of one camera the stages on the longest way from the source to its output hold."""
    lags: dict[str, int] = {}
    senders: dict[str, list[str]] = defaultdict(list)
    for arrow in arrows:
        senders[arrow.reader].append(arrow.sender)
    for name in order:
        node = nodes[name]
        held = 0 if node.source else at_work_of(node, cameras) + _SPARE
        lags[name] = held + max((lags[sender] for sender in senders[name]), default=0)
    return lags


def depth_of(arrow: Arrow, policy: Policy, *, at_work: int, window: int, behind: int) -> int:
    """The depth of an edge: the graph's own, or else enough for its reader (`at_work`) and for its join."""
    if arrow.depth:
        return arrow.depth
    if policy == "block":
        return max(DEPTH_BLOCK, at_work, window if arrow.port else 0)
    return DEPTH_DROP + (behind if arrow.port else 0)
