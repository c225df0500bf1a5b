"""Makes docs/live_faults.md of a proof: each sentence reports a result, good or bad. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from camgraph.tools.lab.proofs.live_faults.cameras import CLIP, FPS
from camgraph.tools.lab.proofs.live_faults.cases import BACK_S, CASES, DETECTED_S, Case
from camgraph.tools.lab.proofs.live_faults.proof import LEAST_PERCENT, MEMORY_MB, FaultProof
from camgraph.tools.lab.proofs.live_faults.rates import Others
from camgraph.tools.lab.proofs.live_faults.rounds import MUCH_OTHER
from camgraph.tools.measuring.load import MOST_BUSY, MOST_OTHER
from camgraph.tools.measuring.processes import Sample
from camgraph.tools.measuring.processor_time import others_line


def report(proof: FaultProof) -> str:
    """The part between the marks, but for the command and the machine."""
    parts = [_head(proof), _faults(proof) if proof.others else [], _stays(proof), _passwords(proof)]
    return "\n".join([line for part in parts for line in part]).rstrip() + "\n"


def _head(proof: FaultProof) -> list[str]:
    verdict = [*proof.problems, *proof.not_judged]
    return [
        f"{others_line(proof.work)} {proof.seconds:.0f} s in all.",
        "",
        f"One graph in real processes (capture for each camera, prepare, infer with a model that always sees somebody, "
        f"decode, track, rules, outbox, sink; `processes: {proof.processes}`) with {proof.cameras} cameras of the "
        f"[farm](farm.md), one more whose password is wrong, and one of GStreamer's server where that is installed; "
        f"{CLIP.width}x{CLIP.height}, {FPS} frames a second, digest. It went on running through all faults. Every "
        "frame that comes out of all stages is an event in a file: that is where frames are counted.",
        "",
        "**Not all is proven:**" if verdict else "**All of this is proven.**",
        "",
        *[f"- {what}" for what in verdict],
        "",
    ]


def _faults(proof: FaultProof) -> list[str]:
    cases = [one for case in CASES for one in (case, case.then) if one]
    longer = ", ".join(f"{case.name} {case.back_within_s:g} s" for case in cases if case.back_within_s != BACK_S)
    again = sum(bool(one.excused) for one in proof.results)
    lines = [
        f"- *told*: from the fault until log, status and the event `camgraph.camera.lost` had told of it; at most "
        f"{DETECTED_S:g} s. *last state*: until the log had told the last of its states.",
        f"- *back*: from the camera's return until log, status and `camgraph.camera.back` had told it and a frame had "
        f"come out at the sink; at most {BACK_S:g} s ({longer}, for these are tried less often). For faults that "
        "nobody can see the end of (half open, codec), from when the last state was told.",
        f"- *others' rate*: of the cameras to which nothing was done around the fault (10 s at least), the one with "
        "the fewest frames that came out of all stages, of as many as it had before any fault; at least "
        f"{LEAST_PERCENT:g} %. It is judged where other processes took at most {MOST_OTHER:.0%} of the cores, before "
        f"and meanwhile, and the machine was at most {MOST_BUSY:.0%} busy before.",
        "- *accounted for*: the frames that came out and those that status counts as `queue_full` (a newer one was "
        f"taken), of as many as were filmed; at least {LEAST_PERCENT:g} %. This is no rate: it says that nothing was "
        "lost unseen, and that no other camera lost its connection.",
        _base_line(proof),
        f"- Tried again because other processes took more than {MUCH_OTHER:.0%} of the cores while it was late: "
        f"{again} (these are not in the table).",
        "",
        "| fault | times | states | told after, worst (s) | last state, worst (s) | back after, worst (s) "
        "| others' rate, lowest (%) | accounted for, lowest (%) |",
        "|---|---|---|---|---|---|---|---|",
    ]
    return [*lines, *[row for case in cases if (row := _row(case, proof))], ""]


def _base_line(proof: FaultProof) -> str:
    if proof.base is None:
        return "- Before any fault nothing was measured."
    fps, load = proof.base.fps.values(), proof.base.load
    return (
        f"- Before any fault {min(fps):.1f} to {max(fps):.1f} frames/s of a camera came out, and the machine was "
        f"{load.busy:.0%} busy: this run, its cameras and what looks at it took {load.own:.2f} of {load.cores} cores, "
        f"other processes {load.other:.2f}."
    )


def _row(case: Case, proof: FaultProof) -> str:
    tried = [(one, share) for one, share in zip(proof.results, proof.others, strict=False) if one.case == case.name]
    found = [(one, share) for one, share in tried if not one.excused]
    if not found:
        return ""
    reported = _worst([one.reported_s for one, _ in found])
    last = _worst([one.last_s for one, _ in found]) if len(case.states) > 1 else ""
    back = _worst([one.back_s for one, _ in found])
    states = ", ".join(case.states) or ("live, or lost for a moment" if case.may_be_lost else "live")
    others = [share for _, share in found]
    accounted = min(one.accounted for one in others)
    times = f"{len(found)} | {states} | {reported} | {last} | {back}"
    return f"| {case.name} | {times} | {lowest_rate(others)} | {accounted:.1f} |"


def lowest_rate(others: Sequence[Others]) -> str:
    """The lowest rate that was judged, and how many were not judged."""
    judged = [one.rate for one in others if not one.not_judged]
    left_out = len(others) - len(judged)
    if not judged:
        return "not judged"
    return f"{min(judged):.1f}" + (f" ({left_out} not judged)" if left_out else "")


def _worst(seconds: Sequence[float | None]) -> str:
    known = [s for s in seconds if s is not None]
    return f"{max(known):.1f}" if known else ""


def _stays(proof: FaultProof) -> list[str]:
    rows = [_sampled("before" if n == 0 else f"after round {n}", one) for n, one in enumerate(proof.samples)]
    more = "descriptors, threads, segments, zombies, or memory by more than " + f"{MEMORY_MB:g} MB"
    lost = "; ".join([*proof.unpaired, *proof.hurt])
    return [
        "## What stays",
        "",
        "| | processes | descriptors | threads | zombies | segments in /dev/shm | memory (MB) |",
        "|---|---|---|---|---|---|---|",
        *rows,
        "",
        f"- What a process, or the whole run, had more of than before ({more}): {'; '.join(proof.grown) or 'nothing'}.",
        f"- Losses that were not one `camgraph.camera.lost` and one `camgraph.camera.back`, or of a camera to which "
        f"nothing was done: {lost or 'none'}.",
        f"- Processes that died: {'; '.join(proof.died) or 'none'}. Left over after the end of the run (processes, its "
        f"folder with the sockets, segments): {'; '.join(proof.left) or 'nothing'}.",
        "",
    ]


def _sampled(name: str, one: Sample) -> str:
    return (
        f"| {name} | {len(one.living)} | {one.total('descriptors'):.0f} | {one.total('threads'):.0f} "
        f"| {len(one.zombies)} | {one.shm_files} | {one.total('own_kb') / 1000:.0f} |"
    )


def _passwords(proof: FaultProof) -> list[str]:
    places = ", ".join(f"{place} ({n} texts)" for place, n in sorted(proof.searched.items()))
    found = f"found: {proof.disclosed}" if proof.disclosed else "none was found"
    wrong = "never" if proof.wrong_reported_s is None else f"after {proof.wrong_reported_s:.1f} s"
    return [
        "## An absent camera, a wrong password",
        "",
        f"While one camera refused from the start, frames of all others came out {proof.others_began_s:.1f} s after "
        "the graph was ready.",
        f"That a password is wrong was told {wrong}; the camera was connected to {proof.wrong_tries} times in all.",
        f"Both passwords were looked for, as they are and percent-encoded: {places or 'nowhere'}; {found}.",
    ]
