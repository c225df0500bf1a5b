"""The limit as a contestant.

    python -m camgraph.tools.lab.benchmarks.peers.bare JOB    ((JSON, see tools/lab/benchmarks/peers/job.py))

Nothing but `session.run` on tensors that are ready, with a thread a core on one session:
`tools.lab.benchmarks.graph.bare_fps`.
"""

from __future__ import annotations

import sys
import time

import click
import onnxruntime as ort

from camgraph.tools.lab.benchmarks.graph import Subject, bare_fps
from camgraph.tools.lab.benchmarks.peers.job import Answer, Job


def run(job: Job) -> Answer:
    """As many frames as there are of all cameras (in whole threads and batches); nobody looks for people."""
    subject = Subject(job.model, "", "", "", 0.0, job.threads)
    runs = max(1, job.all_frames // job.batch // job.threads) * job.threads
    provider = "CUDAExecutionProvider" if job.provider == "cuda" else "CPUExecutionProvider"
    took_s = runs / bare_fps(subject, (job.batch, 3, job.size[1], job.size[0]), runs, provider)
    ended_ns = time.monotonic_ns()
    frames, versions = runs * job.batch, {"onnxruntime": ort.__version__}
    return Answer(ended_ns - round(took_s * 1e9), ended_ns, [frames], [0], versions=versions)


if __name__ == "__main__":
    click.echo(run(Job.from_json(sys.argv[1])).to_json())
