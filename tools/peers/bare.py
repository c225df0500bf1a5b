"""The limit as a contestant: `python -m tools.peers.bare JOB` (JSON, see tools/peers/job.py).

Nothing but `session.run` on tensors that are ready, with a thread a core on one session: `tools.bench_graph.bare_fps`.
"""

from __future__ import annotations

import sys
import time

import click
import onnxruntime as ort

from tools.bench_graph import Subject, bare_fps
from tools.peers.job import Answer, Job


def run(job: Job) -> Answer:
    """As many frames as there are of all cameras (rounded down to whole threads); nobody looks for people."""
    subject = Subject(job.model, "", "", "", 0.0, job.threads)
    each = job.all_frames // job.threads * job.threads
    took_s = each / bare_fps(subject, (1, 3, job.size[1], job.size[0]), each)
    ended_ns = time.monotonic_ns()
    return Answer(ended_ns - round(took_s * 1e9), ended_ns, [each], [0], versions={"onnxruntime": ort.__version__})


if __name__ == "__main__":
    click.echo(run(Job.from_json(sys.argv[1])).to_json())
