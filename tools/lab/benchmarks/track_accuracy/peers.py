"""Other packages' trackers on the same detections, each with many settings: the best of them counts.

They run in environments of their own (`tools/lab/benchmarks/peers/environments.py`), by `scripts/follow.py`:

    JOB.npz      scenes: how many; N.times_ns, N.counts (people a frame), N.boxes, N.scores of scene N;
                 runs: JSON, a list of {tracker, parameters, min_score, scenes}
    ANSWER.npz   R.N: the ids of scene N's people by run R, one after the other, 0 for those without one
"""

from __future__ import annotations

import json
import random
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from camgraph.tools.lab.benchmarks.peers.environments import NotToBeHad, python_of
from camgraph.tools.lab.benchmarks.track_accuracy import sequences
from camgraph.tools.lab.benchmarks.track_accuracy.measures import Labelled

_SCRIPT = Path(__file__).parent / "scripts" / "follow.py"
_LIMIT_S = 3600.0
_OF_SUPERVISION = "ByteTrack of supervision"
ENVIRONMENTS: Mapping[str, tuple[Sequence[str], Sequence[str]]] = {
    "tracking-supervision": (("supervision==0.26.1",), (_OF_SUPERVISION,)),
    "tracking-trackers": (("trackers==2.6.1",), ("ByteTrack", "SORT", "OC-SORT", "BoT-SORT", "C-BIoU")),
}
"""Name -> its packages, and the trackers that they have. The newest versions that have them, at the time of writing:
ByteTrack has left supervision since."""
NAMES = tuple(name for _, names in ENVIRONMENTS.values() for name in names)
_SEED = 7


@dataclass(frozen=True)
class Run:
    """A tracker with certain parameters over some of the scenes. ``min_score``: people below are kept from it."""

    tracker: str
    parameters: Mapping[str, Any]
    min_score: float
    scenes: Sequence[int]


def settings_of(name: str, fps: float, count: int) -> list[tuple[float, Mapping[str, Any]]]:
    """``count`` settings of a tracker, drawn from a grid around its defaults: (min_score, parameters). The same again.

    Tracks of `trackers` may follow the times of frames (`timed`), or count frames.
    """
    draw = random.Random(f"{_SEED} {name}")  # noqa: S311 - no secret
    return [(draw.choice((0.05, 0.1, 0.2, 0.3)), _drawn(name, fps, draw)) for _ in range(count)]


def _drawn(name: str, fps: float, draw: random.Random) -> Mapping[str, Any]:
    begin = draw.choice((0.1, 0.2, 0.3, 0.4, 0.5))
    high = draw.choice((0.15, 0.2, 0.3, 0.4, 0.5))
    overlap = draw.choice((0.05, 0.1, 0.2, 0.3, 0.5))
    lost, frames = draw.choice((15, 30, 60, 90)), draw.choice((1, 2, 3))
    if name == _OF_SUPERVISION:
        return {
            "track_activation_threshold": begin, "lost_track_buffer": lost, "minimum_consecutive_frames": frames,
            "minimum_matching_threshold": draw.choice((0.6, 0.7, 0.8, 0.9, 0.95)), "frame_rate": round(fps),
        }  # fmt: skip
    common = {
        "lost_track_buffer": lost, "frame_rate": fps, "minimum_consecutive_frames": frames,
        "timed": draw.choice((True, False)),
    }  # fmt: skip
    if name == "SORT":
        return {**common, "track_activation_threshold": begin, "minimum_iou_threshold": overlap}
    common["high_conf_det_threshold"] = high
    if name == "OC-SORT":
        weight, steps = draw.choice((0.0, 0.2, 0.4)), draw.choice((1, 2, 3))
        return {**common, "minimum_iou_threshold": overlap, "direction_consistency_weight": weight, "delta_t": steps}
    common["track_activation_threshold"] = begin
    if name == "ByteTrack":
        return {**common, "minimum_iou_threshold": overlap}
    common |= {
        "minimum_iou_threshold_first_assoc": overlap,
        "minimum_iou_threshold_second_assoc": draw.choice((0.1, 0.3, 0.5)),
        "minimum_iou_threshold_unconfirmed_assoc": draw.choice((0.1, 0.3)),
    }
    if name == "BoT-SORT":
        return {**common, "enable_cmc": False}
    return {
        **common,
        "buffer_ratio_first": draw.choice((0.1, 0.3, 0.5)),
        "buffer_ratio_second": draw.choice((0.3, 0.5, 0.7)),
    }


def followed(
    environment: str, runs: Sequence[Run], scenes: Sequence[sequences.Sequence], *, install: bool
) -> list[list[list[Labelled]]]:
    """The tracks of each run in each of its scenes. Raises NotToBeHad if the environment cannot be made or used."""
    return _answers(python_of(environment, ENVIRONMENTS[environment][0], install=install), runs, scenes)


def _answers(python: Path, runs: Sequence[Run], scenes: Sequence[sequences.Sequence]) -> list[list[list[Labelled]]]:
    with tempfile.TemporaryDirectory(prefix="camgraph-") as folder:
        job, answer = Path(folder) / "job.npz", Path(folder) / "answer.npz"
        arrays: dict[str, Any] = {
            "scenes": len(scenes),
            "runs": json.dumps([{**asdict(run), "scenes": list(run.scenes)} for run in runs]),
        }
        for number, scene in enumerate(scenes):
            arrays |= {f"{number}.{name}": values for name, values in _arrays(scene).items()}
        np.savez(job, **arrays)
        ran = subprocess.run(  # noqa: S603 - our own command
            [str(python), str(_SCRIPT), str(job), str(answer)],
            capture_output=True, text=True, errors="replace", timeout=_LIMIT_S, check=False,
        )  # fmt: skip
        if ran.returncode:
            raise NotToBeHad(f"status {ran.returncode}: {(ran.stderr.splitlines() or ['it said nothing'])[-1]}")
        with np.load(answer) as answers:
            return [
                [_labelled(scenes[scene], answers[f"{number}.{scene}"]) for scene in run.scenes]
                for number, run in enumerate(runs)
            ]


def _arrays(scene: sequences.Sequence) -> Mapping[str, NDArray[Any]]:
    return {
        "times_ns": np.array(scene.times_ns, np.int64),
        "counts": np.array([len(one.boxes) for one in scene.found], np.int64),
        "boxes": np.concatenate([one.boxes for one in scene.found]),
        "scores": np.concatenate([one.scores for one in scene.found]),
    }


def _labelled(scene: sequences.Sequence, ids: NDArray[np.int64]) -> list[Labelled]:
    parts = np.split(ids, np.cumsum([len(one.boxes) for one in scene.found])[:-1])
    return [(part[part > 0], one.boxes[part > 0]) for part, one in zip(parts, scene.found, strict=True)]
