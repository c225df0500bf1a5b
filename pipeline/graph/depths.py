"""How many frames of one camera a graph and its queues hold.

window   of a graph that blocks: how many frames of a camera may be on their way at once, from the source to the sinks;
         each process keeps to it by itself. Twice what its busiest stage works on and gathers, and two more, so that
         this stage always finds the next batch waiting; at least 6.
depth    of an edge: 1 if it drops. If it blocks, one more than the window: credits need not come back before
         acknowledgements do (`pipeline/transport/pending_acks.py`), and a batch can hold whatever the window does.
         An edge of events to the outbox, for which no window counts, has 6, or more if the reader's batches need it.
         From the outbox to a sink it has 64, or two batches of the sink and one event more. If an edge drops, a
         port of a join is as deep as the frames that can be on the other way meanwhile: those that the stages on the
         longest way hold (`lags_of`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import ceil

from camgraph.pipeline.graph.arrows import Arrow
from camgraph.pipeline.graph.nodes import Node
from camgraph.pipeline.messages import Event
from camgraph.pipeline.plan import Policy

MIN_WINDOW = 6
_DEPTH_TO_OUTBOX = 6
DEPTH_TO_SINK = 64
"""Enough for a sink to have the next batch at hand."""
DEPTH_DROP = 1
_SPARE = 2
"""Frames on their way in and out of a stage."""


def frames_at_work(node: Node, cameras_of_worker: int) -> int:
    """How many frames of one camera a busy stage works on or gathers: a batch for each thread and one more.

    ceil((threads + 1) x batch.max / cameras of one worker).
    """
    batch = node.entry.batch.max if node.entry.batch else 1
    return ceil((node.threads + 1) * batch / max(1, cameras_of_worker))


def events_at_work(node: Node) -> int:
    """How many events a busy event sink works on or gathers. Those of all cameras come under one name."""
    return frames_at_work(node, 1)


def cameras_of_worker(node: Node, cameras: int) -> int:
    """How many cameras the least busy worker of a stage has."""
    return 1 if node.source else cameras // (node.entry.workers or 1)


def window_of(nodes: Iterable[Node], cameras: int) -> int:
    """How many frames of one camera may be on their way at once. Event sinks are behind the outbox and do not count."""
    busy = [node for node in nodes if not (node.source or node.takes_events)]
    held = [2 * frames_at_work(node, cameras_of_worker(node, cameras)) + _SPARE for node in busy]
    return max([MIN_WINDOW, *held])


def lags_of(nodes: Mapping[str, Node], order: Iterable[str], arrows: Sequence[Arrow], cameras: int) -> dict[str, int]:
    """Stage -> how many frames of one camera the stages on the longest way from the source to its output hold."""
    lags: dict[str, int] = {}
    senders: dict[str, list[str]] = defaultdict(list)
    for arrow in arrows:
        senders[arrow.reader].append(arrow.sender)
    for name in order:
        node = nodes[name]
        held = 0 if node.source else frames_at_work(node, cameras_of_worker(node, cameras)) + _SPARE
        lags[name] = held + max((lags[sender] for sender in senders[name]), default=0)
    return lags


def depth_of(arrow: Arrow, policy: Policy, *, at_work: int, window: int, behind: int) -> int:
    """The depth of an edge: the graph's own, or else enough for its reader (`at_work`) and for its join."""
    if arrow.depth:
        return arrow.depth
    if arrow.type == Event.TYPE:
        return max(_DEPTH_TO_OUTBOX, at_work)
    if policy == "block":
        return window + 1
    return DEPTH_DROP + (behind if arrow.port else 0)
