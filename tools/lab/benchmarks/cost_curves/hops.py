"""Measures the cost of one hop: a message from a stage in one process to a stage in another.

    apart      src │ make │ look │ end        each in a process of its own
    together   src │ make   look   end        the last three are one process

    processor time apart - together = two hops: make -> look, with the payload, and look -> end, with next to none

With a payload of 16 bytes both hops are small, so each costs half of the difference. A hop with a large payload costs
the difference less one such small hop. With one camera few messages travel together; with `MANY` cameras several
messages and signals do. An idle hop waits `IDLE_MS` between two messages, so each message finds all threads asleep and
the caches used by others; such a run is long enough for heartbeats, and the figure includes its share of them.
`look` reads all bytes of the payload in both placements, but apart they have to come from another core's cache.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median

import numpy as np

from camgraph.pipeline.shm.mappings import Mappings
from camgraph.pipeline.shm.slots import SlotRing
from camgraph.pipeline.testing import stamp
from camgraph.pipeline.transport.wire import encode, new_arrays, read_arrays, read_header
from camgraph.stages.messages import Tensor
from camgraph.tools.lab.graph_run import run_text

SIZES = {"16 bytes": 16, "5 kB": 5000, "640 x 640 x 3": 640 * 640 * 3, "1280 x 720 x 3": 1280 * 720 * 3}
_SMALL = 16
MANY = 16
IDLE_MS = 20
_IDLE_FRAMES = 250
_GRAPH = """
version: 1
name: hops{pid}
processes: {processes}
cameras: {{{cameras}}}
stages:
  src: {{use: count_source}}
  make: {{use: double, from: src, with: {{bytes: {size}}}}}
  look: {{use: thin, from: make, with: {{every: 1}}}}
  end: {{use: sink_null, from: look}}
"""


@dataclass(slots=True)
class Hop:
    """One size of payload: the two hops' processor time in microseconds a message, a value a round."""

    name: str
    size: int
    two_us: list[float] = field(default_factory=list)
    cameras: int = 1
    pace_ms: int = 0
    """From one message to the next; 0: as fast as they are taken."""

    @property
    def both_us(self) -> float:
        """The median of the rounds; never below 0, which noise could make of it."""
        return max(0.0, median(self.two_us))


@dataclass(frozen=True, slots=True)
class Copied:
    """The work of `pipeline.transport.wire` on a picture of one size. Times in microseconds, of one message.

    ``message``: bytes that travel through the socket; ``copied``: bytes of the picture that lie somewhere else for the
    reader than where they were made, for a picture that was made in a slot, and for one that was made elsewhere.
    """

    name: str
    message: int
    copied: tuple[int, int]
    encode_us: tuple[float, float]
    read_us: float


def measure(hops: Sequence[Hop], rounds: int, frames: int) -> None:
    """Fill in the hops: real runs, in turns."""
    for _ in range(rounds):
        for hop in hops:
            made = _IDLE_FRAMES if hop.pace_ms else frames
            apart, together = (cpu_us(way, hop.size, made, hop.cameras, hop.pace_ms) for way in ("separate", "compact"))
            hop.two_us.append(apart - together)


def cpu_us(processes: str, size: int, frames: int, cameras: int = 1, pace_ms: int = 0, *, more: str = "") -> float:
    """Processor time of all processes for a message, of `frames` from all cameras, from when they were ready.

    `more`: further lines of the graph.
    """
    each = frames // cameras
    camera = f"{{frames: {each}, bytes: 16, pace_ms: {pace_ms}}}"
    listed = ", ".join(f"c{number}: {camera}" for number in range(cameras))
    text = _GRAPH.format(pid=os.getpid(), processes=processes, cameras=listed, size=size) + more
    status = run_text(text, limit_s=300)
    return 1e6 * sum(float(process["cpu_s"]) for process in status["processes"].values()) / (each * cameras)


def one_hop_us(hops: Sequence[Hop]) -> dict[str, float]:
    """Size -> what one hop with it costs, by the figures of all. One of them must be that of 16 bytes. Pure."""
    small = next(hop.both_us / 2 for hop in hops if hop.size == _SMALL and hop.cameras == 1 and not hop.pace_ms)
    return {hop.name: hop.both_us / 2 if hop.size == _SMALL else max(0.0, hop.both_us - small) for hop in hops}


def copied(name: str, shape: tuple[int, int, int], times: int) -> Copied:
    """The copied bytes of a picture of this shape on a hop, and the time of wrapping and unwrapping its message."""
    ring = SlotRing(f"camgraph-curves{os.getpid()}", 4)
    mappings = Mappings()
    try:
        _, arrays = new_arrays(ring, {"image": ((1, *shape), "|u1")})
        arrays["image"][...] = 7
        there, elsewhere = _tensor(arrays["image"]), _tensor(np.full((1, *shape), 7, np.uint8))
        body = encode(there, ring).body
        encode_us = _encode_us(there, ring, times), _encode_us(elsewhere, ring, times)
        read_us = _timed(lambda: _read(body, mappings), times)
        copies = _bytes_apart(there, ring, mappings), _bytes_apart(elsewhere, ring, mappings)
        return Copied(name, len(body), copies, encode_us, read_us)
    finally:
        ring.close()


def _tensor(image: np.ndarray) -> Tensor:
    height, width = image.shape[1:3]
    return Tensor(stamp(), {"image": image}, np.ones((1, 4), np.float32), (width, height), (width, height))


def _encode_us(tensor: Tensor, ring: SlotRing, times: int) -> float:
    def once() -> None:
        found = encode(tensor, ring)
        assert found.slot is not None
        ring.release(found.slot)

    return _timed(once, times)


def _bytes_apart(tensor: Tensor, ring: SlotRing, mappings: Mappings) -> int:
    """How many bytes of a reader's array do not change with the maker's picture: they were copied on the way."""
    found = encode(tensor, ring)
    assert found.slot is not None
    given, image = _read(found.body, mappings).arrays_by_name["image"], tensor.arrays_by_name["image"]
    np.invert(image, out=image)
    apart = int((given != image).sum())
    ring.release(found.slot)
    return apart


def _read(body: bytes, mappings: Mappings) -> Tensor:
    header = read_header(body, {Tensor.TYPE: Tensor})
    assert header.descriptor is not None
    return Tensor.build(header.stamp, header.fields, read_arrays(header, mappings.get(header.descriptor.segment)))


def _timed(work: Callable[[], object], times: int) -> float:
    """The median in microseconds."""
    spent = []
    for _ in range(times):
        began = time.perf_counter_ns()
        work()
        spent.append((time.perf_counter_ns() - began) / 1e3)
    return median(spent)
