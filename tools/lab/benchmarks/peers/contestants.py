"""The contestants: a name, and the command that does a job."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from camgraph.tools.lab.benchmarks.peers.environments import python_of
from camgraph.tools.lab.benchmarks.peers.job import Job

BARE = "bare loop"
LIGHT = "camgraph, bf16"
OURS = ("camgraph, separate", "camgraph, compact")
_SCRIPTS = Path(__file__).parent / "scripts"
_GRAPH = (sys.executable, "-P", "-m", "camgraph.tools.lab.benchmarks.peers.graph")


@dataclass(frozen=True, slots=True)
class Contestant:
    """`words` of the command before the job. `counts`: it says how many people it found; `light`: on a model that
    calculates less precisely, so that it is compared with nobody but by the mark of its own.
    """

    name: str
    words: Sequence[str]
    counts: bool = True
    light: bool = False

    def command(self, job: Job) -> list[str]:
        """All of it."""
        return [*self.words, job.to_json()]


@dataclass(frozen=True, slots=True)
class Peer:
    """A script that an environment of its own runs; `on_gpu`: its requirements if models run on a GPU."""

    script: str
    environment: str
    requirements: Sequence[str]
    on_gpu: Sequence[str]


PEERS: Mapping[str, Peer] = {
    "Ultralytics, .streams": Peer(
        "ultralytics_streams.py",
        "ultralytics",
        ("ultralytics", "onnx", "onnxruntime"),
        ("ultralytics", "onnx", "onnxruntime-gpu[cuda,cudnn]"),
    ),
    "Roboflow InferencePipeline": Peer("roboflow_pipeline.py", "roboflow", ("inference-cpu",), ("inference-gpu",)),
}
OWN: Mapping[str, Contestant] = {
    one.name: one
    for one in (
        Contestant(BARE, (sys.executable, "-P", "-m", "camgraph.tools.lab.benchmarks.peers.bare"), counts=False),
        *(Contestant(f"camgraph, {name}", (*_GRAPH, name)) for name in ("separate", "compact")),
        Contestant(LIGHT, (*_GRAPH, "bf16"), light=True),
        Contestant("OpenCV + ONNX Runtime loop", (sys.executable, str(_SCRIPTS / "plain_loop.py"))),
    )
}  # fmt: skip
NAMES = (*OWN, *PEERS)


def find(name: str, *, install: bool, gpu: bool = False) -> Contestant:
    """The contestant of this name (one of `NAMES`), its environment made if it needs one. Raises NotToBeHad."""
    if name in OWN:
        return OWN[name]
    peer = PEERS[name]
    environment = f"{peer.environment}-gpu" if gpu else peer.environment
    python = python_of(environment, peer.on_gpu if gpu else peer.requirements, install=install)
    return Contestant(name, (str(python), str(_SCRIPTS / peer.script)))
