"""docs/live_faults.md out of a proof. Pure, but for the name of the machine."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from datetime import UTC, datetime

from tools.live_faults.cameras import CLIP, FPS
from tools.live_faults.cases import BACK_S, CASES, DETECTED_S, Case
from tools.live_faults.processes import Sample
from tools.live_faults.proof import LEAST_PERCENT, MEMORY_MB, FaultProof, is_ours
from tools.live_faults.rates import MOST_STRANGERS, Others


def report(proof: FaultProof) -> str:
    """The whole page."""
    ill = "" if proof.others else " **No fault was tried.**"
    return "\n".join([*_head(proof), *_faults(proof), *_leaks(proof), *_passwords(proof), ill]).rstrip() + "\n"


def _head(proof: FaultProof) -> list[str]:
    loads = ", ".join(f"{load:.1f}" for load in proof.loads)
    return [
        "# Faults of cameras, in a whole graph",
        "",
        f"Written by `python -m tools.live_faults --rounds {proof.rounds} --cameras {proof.cameras} "
        f"--at-once {proof.at_once} --processes {proof.processes}` on {datetime.now(UTC):%Y-%m-%d}:",
        f"{len(os.sched_getaffinity(0))} cores, {platform.machine()}, Python {platform.python_version()}, "
        f"load average after each round {loads}; {proof.seconds:.0f} s; strangers had "
        f"{min(o.strangers for o in proof.others):.0%} to {max(o.strangers for o in proof.others):.0%} of the cores.",
        "",
        f"One graph in real processes (capture for each camera, prepare, infer with a model that always sees somebody, "
        f"decode, track, rules, outbox, sink) with {proof.cameras} cameras of the [farm](farm.md), one more whose",
        f"password is wrong, and one of GStreamer's server; {CLIP.width}x{CLIP.height}, {FPS} frames a second, digest. "
        "It went on running through all faults.",
        "Every frame that comes out is an event in a file: that is where frames are counted.",
        "",
    ]


def _faults(proof: FaultProof) -> list[str]:
    lines = [
        f"- *told*: from the fault until log, status and the event `camgraph.camera.lost` had told of it; at most "
        f"{DETECTED_S:g} s. *last state*: until the log had told the last of its states.",
        f"- *back*: from the camera's return until log, status and `camgraph.camera.back` had told it and a frame had "
        f"come out at the sink; at most {BACK_S:g} s, for 401 and 404 (tried less often) 10 and 9 s.",
        "  For faults that nobody can see the end of (half open, codec), from when the last state was told.",
        f"- *others*: the lowest share of frames of any camera to which nothing was done, around the fault (10 s at "
        f"least); at least {LEAST_PERCENT:g} %.",
        "- *with those passed over*: with those for which a newer frame was taken, which is counted, and what a "
        f"machine does that is too slow. Where strangers have more than {MOST_STRANGERS:.0%} of it, this alone must be "
        f"{LEAST_PERCENT:g} % (a star), and what was late is tried again (*times*: 5 + 1) and is not in "
        "the table.",
        "",
        "| fault | times | states | told after, worst (s) | last state, worst (s) | back after, worst (s) "
        "| others, lowest (%) | with those passed over (%) |",
        "|---|---|---|---|---|---|---|---|",
    ]
    cases = [one for case in CASES for one in (case, case.then) if one]
    rows = [_row(case, proof) for case in cases]
    return [*lines, *[row for row in rows if row], ""]


def _row(case: Case, proof: FaultProof) -> str:
    tried = [(one, share) for one, share in zip(proof.results, proof.others, strict=True) if one.case == case.name]
    found = [(one, share) for one, share in tried if not one.excused]
    if not found:
        return ""
    again = f" + {len(tried) - len(found)}" if len(tried) > len(found) else ""
    told = _worst([one.told_s for one, _ in found])
    last = _worst([one.last_s for one, _ in found]) if len(case.states) > 1 else ""
    back = _worst([one.back_s for one, _ in found])
    states = ", ".join(case.states) or ("live, or lost for a moment" if case.may_be_lost else "live")
    lowest = _lowest([others for _, others in found])
    return f"| {case.name} | {len(found)}{again} | {states} | {told} | {last} | {back} | {lowest} |"


def _lowest(others: Sequence[Others]) -> str:
    """A star where what was passed over is not held against the run."""
    lowest = min(others, key=lambda one: one.came)
    star = "" if lowest.came >= LEAST_PERCENT or is_ours(lowest) else " *"
    return f"{lowest.came:.1f}{star} | {min(one.known for one in others):.1f}"


def _worst(seconds: Sequence[float | None]) -> str:
    known = [s for s in seconds if s is not None]
    return f"{max(known):.1f}" if known else ""


def _leaks(proof: FaultProof) -> list[str]:
    rows = [_sampled("before" if n == 0 else f"after round {n}", one) for n, one in enumerate(proof.samples)]
    grown = "; ".join(proof.grown) or "no process had more descriptors or threads than before"
    return [
        "## What stays",
        "",
        "| | processes | descriptors | threads | zombies | segments in /dev/shm | memory (MB) |",
        "|---|---|---|---|---|---|---|",
        *rows,
        "",
        f"By process: {grown}, and none {MEMORY_MB:g} MB more memory.",
        "Each loss was one `camgraph.camera.lost` and one `camgraph.camera.back`.",
        f"No process died; after the end of the run {'; '.join(proof.left) or 'nothing was left'}.",
        "",
    ]


def _sampled(name: str, one: Sample) -> str:
    return (
        f"| {name} | {len(one.held)} | {one.descriptors} | {one.threads} | {one.zombies} | {one.segments} "
        f"| {one.memory_mb:.0f} |"
    )


def _passwords(proof: FaultProof) -> list[str]:
    places = ", ".join(f"{place} ({n} texts)" for place, n in sorted(proof.searched.items()))
    found = f"found: {proof.disclosed}" if proof.disclosed else "none was found"
    wrong = "never" if proof.wrong_told_s is None else f"after {proof.wrong_told_s:.1f} s"
    return [
        "## An absent camera, a wrong password",
        "",
        f"While one camera refused from the start, frames of all others came out {proof.others_began_s:.1f} s after "
        "the graph was ready.",
        f"That a password is wrong was told {wrong}; the camera was connected to {proof.wrong_tries} times in all.",
        f"Both passwords were looked for, as they are and percent-encoded: {places}; {found}.",
    ]
