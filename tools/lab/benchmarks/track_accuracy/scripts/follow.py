"""Other packages' trackers over detections: run by path, in an environment that has them.

python follow.py JOB.npz ANSWER.npz        (see tools/lab/benchmarks/track_accuracy/peers.py)
"""

from __future__ import annotations

import json
import sys
import warnings

import numpy as np
import supervision

NOBODY = 0


def bytetrack_of_supervision(parameters: dict):
    """ByteTrack of supervision, which counts lost frames in units of 30 frames a second."""
    tracker = supervision.ByteTrack(**parameters)
    return lambda found, _: tracker.update_with_detections(found)


def of_trackers(name: str):
    """A tracker of the package `trackers`; `timed`: it is told the frames' times."""

    def made(parameters: dict):
        import trackers  # noqa: PLC0415 - one environment has it, the other has not

        timed = parameters.pop("timed", False)
        tracker = getattr(trackers, name)(**parameters)
        return lambda found, time_s: tracker.update(found, timestamp=time_s if timed else None)

    return made


MADE = {
    "ByteTrack of supervision": bytetrack_of_supervision,
    "ByteTrack": of_trackers("ByteTrackTracker"),
    "SORT": of_trackers("SORTTracker"),
    "OC-SORT": of_trackers("OCSORTTracker"),
    "BoT-SORT": of_trackers("BoTSORTTracker"),
    "C-BIoU": of_trackers("CBIoUTracker"),
}


def followed(run: dict, scene: dict) -> np.ndarray:
    """The ids of a scene's detections, 0 for those without one."""
    update = MADE[run["tracker"]](dict(run["parameters"]))
    ends = np.cumsum(scene["counts"])
    ids = np.zeros(len(scene["boxes"]), np.int64)
    for time_ns, end, count in zip(scene["times_ns"], ends, scene["counts"], strict=True):
        rows = np.arange(end - count, end)
        rows = rows[scene["scores"][rows] >= run["min_score"]]
        found = supervision.Detections(
            xyxy=scene["boxes"][rows].astype(np.float32).reshape(-1, 4),
            confidence=scene["scores"][rows].astype(np.float32),
            class_id=np.zeros(len(rows), int),
            data={"row": rows},
        )
        seen = update(found, time_ns / 1e9)
        if len(seen):
            # Their ids begin at 0 or 1; -1 stands for nobody.
            ids[seen.data["row"]] = np.maximum(np.asarray(seen.tracker_id) + 1, NOBODY)
    return ids


def main(job_file: str, answer_file: str) -> None:
    """Each run with each of its scenes."""
    warnings.simplefilter("ignore")
    with np.load(job_file) as job:
        runs = json.loads(str(job["runs"]))
        names = ("times_ns", "counts", "boxes", "scores")
        scenes = [{name: job[f"{number}.{name}"] for name in names} for number in range(int(job["scenes"]))]
    answers = {
        f"{number}.{scene}": followed(run, scenes[scene]) for number, run in enumerate(runs) for scene in run["scenes"]
    }
    np.savez(answer_file, **answers)


if __name__ == "__main__":
    main(*sys.argv[1:])
