"""The counters of a run: those of the runtime stand here, all others are declared by the stages that count them.

A test holds the names against the code; the exit status comes from the code itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from camgraph.pipeline.errors import EXIT_DONE
from camgraph.pipeline.monitoring.outcome import Outcome
from camgraph.pipeline.registry import find_stage, stage_names
from camgraph.pipeline.stage import DROPPED, SKIPPED, Counts
from camgraph.tools.lab.reference.markdown import code, table

OF_THE_RUNTIME: Counts = {
    "dropped.queue_full": "A newer frame took its place. The machine is too slow for all frames of its live cameras, "
    "or an edge of the graph drops.",
    "dropped.reader_lost": "The process that had the frame died, on an edge that drops.",
    "dropped.stale": "The frame's shared memory was used again before the frame was read.",
    "dropped.no_slot": "No shared memory was left for the frame: a stage makes more large messages of a frame "
    "than it declares.",
    "dropped.torn": "The frame's shared memory changed while it was read.",
    "dropped.wire": "A message between two processes was damaged.",
    "dropped.quarantined": "Processes died while they worked on this frame, so it was set aside.",
    "dropped.error": "A stage failed on the frame; the log has the traceback.",
    "dropped.unpaired": "A join got only a part of the frame, on edges that do not drop.",
    "dropped.too_large": "A stage made a message that is too large to be sent.",
    "dropped.too_many": "A stage made more messages of one frame than there can be.",
    "skipped.queue_full": "A join of live cameras did without the frame: a newer one took its place at one port.",
    "skipped.unpaired": "A join of live cameras did without the frame, because its partner was dropped.",
    "frames": "Frames that a camera brought.",
    "repeated": "Messages that came a second time after a process died, and were recognised.",
    "failed.STAGE": "Frames that this stage failed on.",
    "letters_discarded": "Dead letters of a sink that gave way to newer ones: its file was full.",
    "refused.attach": "Connections that a process refused: from one that it does not read from, or made a second time.",
    "refused.signal": "Answers of a reader that its sender refused: damaged, or out of place.",
    "reports_too_large": "Reports of a process that were too large to be read.",
    "reports_refused": "Reports of a process that did not have the right form.",
    "spans_sent": "Spans of [traces](../traces.md) that the collector has taken.",
    "spans_lost": "Spans of traces that it has not taken, or that did not fit into the queue.",
}


def meanings() -> Mapping[str, str]:
    """The counters of the runtime and of camgraph's stages. Where these mean different things, all meanings follow."""
    found: dict[str, dict[str, None]] = {}
    for counts in (OF_THE_RUNTIME, *(find_stage(name).counts for name in stage_names("camgraph"))):
        for name, meaning in counts.items():
            found.setdefault(name, {})[meaning] = None
    return {name: " ".join(each) for name, each in found.items()}


def counter_page() -> Iterator[str]:
    all_counters = meanings()
    drops, skips = (dict(_with_beginning(start, all_counters)) for start in (DROPPED, SKIPPED))
    yield "# Reference: counters"
    yield ""
    yield "`camgraph status --json` has every counter under `counts`, as `[name, camera, count]`. Drops and skips"
    yield "also stand with each camera, as `drops_by_reason` and `skipped_by_reason`. `camgraph stages NAME` shows the"
    yield "counters of any installed stage, also of other packages."
    yield from ("", "## Drops", "")
    yield "`dropped.REASON`: a frame came and was not processed. A drop costs that frame only. The log reports"
    yield "the first, and the counter has the rest. *Status* is the exit status of a run in which it happens."
    yield ""
    yield from table(
        ("reason", "status", "meaning"), ((code(name), _status(name), text) for name, text in drops.items())
    )
    yield ""
    yield "A stage of your own may add reasons. They end the run with status 1."
    yield from ("", "## Skips", "")
    yield "`skipped.REASON`: the graph asks for this to be left out. Skips never change the exit status."
    yield ""
    yield from table(("reason", "meaning"), ((code(name), text) for name, text in skips.items()))
    yield from ("", "## Other counters", "")
    yield "A part of a name in capitals stands for the name of a stage, a rule and the like."
    yield ""
    others = ((name, text) for name, text in all_counters.items() if not name.startswith((DROPPED, SKIPPED)))
    yield from table(("name", "meaning"), ((code(name), text) for name, text in others))


def _with_beginning(start: str, counters: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The counters that begin so, by the rest of their names."""
    return ((name.removeprefix(start), text) for name, text in counters.items() if name.startswith(start))


def _status(reason: str) -> str:
    always, if_edges_drop = (_of_run(reason, edges_drop=drops) for drops in (False, True))
    if always == if_edges_drop:
        return str(always)
    return f"{if_edges_drop} if an edge of the graph drops, else {always}"


def _of_run(reason: str, *, edges_drop: bool) -> int:
    """The status of a run that has lost one frame for this reason, and nothing else."""
    outcome = Outcome()
    outcome.add_losses({(f"{DROPPED}{reason}", "front"): 1}, edges_drop=edges_drop)
    return outcome.status if outcome.problems else EXIT_DONE
