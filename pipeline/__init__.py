"""Moves typed messages between processes. It knows nothing of pictures.

Start with `stage.py` and `messages.py`: authors of stages need no more. The rest, each row importing only from rows
below it:

    testing                                     a stage or a plan, run by hand
    supervision | worker | local | graph        the parent, a child, a run without children, graph file -> plan
    transport                                   messages between processes
    execution                                   running stages
    outbox | shm                                durable events, shared memory
    monitoring                                  counters, reports, status
    boot | single_stage
    registry | items | wanted
    stage | plan
    dead_letters | traces                       events that a sink has given up, the steps of an event
    messages
    system                                      the machine
    errors
    foreign_text

To follow a frame, read `worker/worker.py`; to follow a run, `supervision/supervisor.py`.

Some libraries report to their makers unless this is turned off before they are loaded. This package turns it off,
because every process of ours imports it first: those of a run, of the commands, and of trials of a model.
"""

import os
import sys

if __name__ == "pipeline":  # beside the package, in a checkout: a second copy of each class would come of that
    raise ModuleNotFoundError("this package is `camgraph.pipeline`", name=__name__)

# ONNX Runtime (1.29 and later): an identifier on the disk and reports to Microsoft. Its own `disable_telemetry_events`
# comes too late, and stops a part only.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"
# OpenVINO: the same to Google Analytics, on every import. It has no variable for this, but does without the package.
sys.modules["openvino_telemetry"] = None  # type: ignore[assignment]
