"""Roboflow's InferencePipeline on several videos: its threads and buffers, and the model as its custom logic.

    python roboflow_pipeline.py JOB     (in an environment with inference-cpu; JOB: JSON, see `peers/job.py`)

Its own models come from its own host; with `init_with_custom_logic` a local ONNX file is run on the batches that it
hands over, by the same code as in the plain loop.
"""

from __future__ import annotations

import json
import os
import sys

os.environ |= {"METRICS_ENABLED": "False", "TELEMETRY_OPT_OUT": "True", "DISABLE_VERSION_CHECK": "True"}

from inference import InferencePipeline
from pose_model import PoseModel, Results


def main(job: dict) -> None:
    """All frames of all videos, in the batches that the pipeline makes of them."""
    model = PoseModel(job)
    cameras = len(job["clips"])
    results = Results(cameras)

    def infer(frames: list) -> list:
        return [{"people": n} for n in model.people([frame.image for frame in frames])]

    def take(predictions: object, frames: object) -> None:
        # One source gives single values, several give lists with holes.
        several = isinstance(frames, list)
        for prediction, frame in zip(*((predictions, frames) if several else ([predictions], [frames])), strict=True):
            # A file's `frame_timestamp` is a place in the film, and says nothing of when the frame was decoded.
            if frame is not None:
                results.add(frame.source_id or 0, prediction["people"])

    pipeline = InferencePipeline.init_with_custom_logic(
        video_reference=job["clips"], on_video_frame=infer, on_prediction=take
    )
    pipeline.start()
    pipeline.execution.join()
    results.answer("inference-cpu", "onnxruntime", "opencv-python")


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
