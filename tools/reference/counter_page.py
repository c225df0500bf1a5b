"""The counters of a run. The names are held against the code by a test; the exit status comes from the code itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pipeline.errors import EXIT_DONE
from pipeline.monitoring.outcome import Outcome
from pipeline.stage import DROPPED
from tools.reference.markdown import code, table

DROPS: Mapping[str, str] = {
    "queue_full": "A newer frame took its place. The machine is too slow for all frames of its live cameras, or an "
    "edge of the graph drops.",
    "damaged": "The picture could not be decoded, or only with parts that were lost before it. Look at the network.",
    "reader_lost": "The process that had the frame died, on an edge that drops.",
    "stale": "The frame's shared memory was used again before the frame was read.",
    "no_slot": "No shared memory was left for the frame: a stage makes more large messages of a frame "
    "than it declares.",
    "torn": "The frame's shared memory changed while it was read.",
    "wire": "A message between two processes was damaged.",
    "quarantined": "Processes died while they worked on this frame, so it was set aside.",
    "error": "A stage failed on the frame; the log has the traceback.",
    "unpaired": "A join got only a part of the frame, on edges that do not drop.",
    "shape": "A model gave outputs of another shape than it promised; the log has the details.",
    "skeletons": "The people that `combine_people` got of the frame have different keypoints.",
    "nonfinite": "A model's output contained NaN or infinity.",
    "model_failed": "The model failed on this frame, or had too little memory for it.",
    "too_large": "A stage made a message that is too large to be sent.",
    "too_many": "A stage made more messages of one frame than there can be.",
    "invalid_event": "A stage made an event that is not valid JSON of the right form. This counts events, not frames.",
    "refused": "The other side of a sink refused this event for good: it is a dead letter (`camgraph outbox`).",
    "expired": "A sink could not deliver this event within `expires`: it is a dead letter.",
    "write_failed": "A video could not be written.",
    "file_gone": "A file of tracks was taken away while it was written.",
}
"""Reason -> meaning, of `dropped.<reason>`."""

SKIPS: Mapping[str, str] = {
    "rate": "The camera brings more frames than its `max_fps`.",
    "queue_full": "A join of live cameras did without the frame: a newer one took its place at one port.",
    "unpaired": "A join of live cameras did without the frame, because its partner was dropped.",
    "candidates": "More candidates of a picture scored enough than leave the GPU: people may be missing. This counts "
    "pictures; they go on.",
    "crops": "There were more people in a frame than `max_people` of `crop`. This counts people, not frames.",
    "nonfinite": "A person lay nowhere: the numbers were not finite. This counts people, not frames.",
    "not_read": "A program that reads live cameras from Python had not asked yet: a newer frame took its place.",
}
"""Reason -> meaning, of `skipped.<reason>`."""

OTHERS: Mapping[str, str] = {
    "frames": "Frames that a camera brought.",
    "repeated": "Messages that came a second time after a process died, and were recognised.",
    "events": "Events that the outbox has committed.",
    "late": "Events that came when the outbox had already ended their incident, because their stage had died; they are "
    "left out.",
    "written": "Events that a sink has written.",
    "spans_sent": "Spans of [traces](../traces.md) that the collector has taken.",
    "spans_lost": "Spans of traces that it has not taken, or that did not fit into the queue.",
    "letters_discarded": "Dead letters of a sink that gave way to newer ones: its file was full.",
    "filtered": "Events that a sink has left out, because its `only` or `never` says so.",
    "merged": "Ends of incidents that a sink with `merge` has left out, because others of their camera went on.",
    "cooldown": "Events that a sink with `cooldown` has left out.",
    "recipients_refused": "Addresses that a mail server has refused; the others got the mail.",
    "not_recorded": "Times that a recording of `sink_footage` could not go on, because its disk refused it.",
    "failed": "Incidents of which `sink_footage` could not keep pictures and clips, because its folder refused them.",
    "removed": "Incidents that `sink_footage` removed, because they were too old or too much.",
    "reports_too_large": "Reports of a process that were too large to be read.",
    "reports_refused": "Reports of a process that did not have the right form.",
}
"""Counters without a reason."""


def counter_page() -> Iterator[str]:
    yield "# Reference: counters"
    yield ""
    yield "`camgraph status --json` has every counter under `counts`, as `[name, camera, count]`. Drops and skips"
    yield "also stand with each camera, as `drops_by_reason` and `skipped_by_reason`."
    yield from ("", "## Drops", "")
    yield "`dropped.REASON`: a frame came and was not processed. A drop costs that frame only. The log reports"
    yield "the first, and the counter has the rest. *Status* is the exit status of a run in which it happens."
    yield ""
    yield from table(
        ("reason", "status", "meaning"), ((code(name), _status(name), text) for name, text in DROPS.items())
    )
    yield ""
    yield "A stage of your own may add reasons. They end the run with status 1."
    yield from ("", "## Skips", "")
    yield "`skipped.REASON`: the graph asks for this to be left out. Skips never change the exit status."
    yield ""
    yield from table(("reason", "meaning"), ((code(name), text) for name, text in SKIPS.items()))
    yield from ("", "## Other counters", "")
    yield from table(("name", "meaning"), ((code(name), text) for name, text in OTHERS.items()))
    yield ""
    yield "`given_up.SINK` counts events that waited for a sink and were given up, because there were too many, or they"
    yield "waited for too long (`camgraph help outbox`). A run in which that happens ends with status 1."
    yield ""
    yield "`failed.STAGE` counts frames that a stage failed on. `unsent.REASON` counts events that `sink_socket` or"
    yield "`sink_zmq` could not send to anybody."


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
