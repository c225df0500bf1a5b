"""Why a run made no event of people, as far as its counters show it; docs/no_events.md is the long answer."""

from __future__ import annotations

from camgraph.pipeline.monitoring.run_status import RunStatus
from camgraph.pipeline.plan import RunPlan, StagePlan
from camgraph.stages.events import CAMERA_TYPES
from camgraph.stages.people.track import FOLLOWED, SEEN
from camgraph.stages.rules.rules import JUDGED
from camgraph.stages.vision.decoding.score_ranges import score_range
from camgraph.tools.display.status_view import counted

MORE = "more: camgraph help no_events"
_OWN_EVENTS = (CAMERA_TYPES, "camgraph.")


def why_no_events(status: RunStatus, plan: RunPlan) -> str:
    """One line that names the first thing that was missing (people, tracks, joints, time) and what to try.

    "" if there were events, if no frame came, and for graphs that follow nobody. `status`: of the run at its end.
    """
    frames = status.totals.frames
    track, rules = _stage(plan, "track"), _stage(plan, "rules")
    if not frames or track is None or _has_reported_something(status):
        return ""
    seen, followed = _count(status, SEEN), _count(status, FOLLOWED)
    if not seen:
        return f"nobody was found in {counted(frames, 'frame')}: {_try_size(plan)}, or a lower `min_score`; {MORE}"
    if not followed:
        score = track.settings.get("new_score") or score_range(None).new
        return (
            f"people were found ({seen} in {counted(frames, 'frame')}), but nobody surely enough to be followed "
            f"(`new_score` of `{track.name}` is {score:g}): {_try_size(plan)}, or lower it; {MORE}"
        )
    if rules is None:
        return ""
    if not any(name.startswith(JUDGED) and n for name, _, n in status.counts):
        return (
            f"people were followed ({followed} in {counted(frames, 'frame')}), but no rule of `{rules.name}` could be "
            "judged in any frame: their joints were too uncertain, or a rule asks for two people: "
            f"lower `min_confidence` of the rules, or {_try_size(plan)}; {MORE}"
        )
    return (
        f"people were followed ({followed} in {counted(frames, 'frame')}) and judged, and no rule came true for as "
        f"long as its `for` asks; {MORE}"
    )


def _stage(plan: RunPlan, use: str) -> StagePlan | None:
    return next((stage for process in plan.processes for stage in process.stages if stage.use == use), None)


def _has_reported_something(status: RunStatus) -> bool:
    """An event of a stage; those of cameras and of the run itself tell nothing of people."""
    actions = {name for of_one in status.actions.values() for name, n in of_one.items() if n}
    return any(not name.startswith(_OWN_EVENTS) for name in actions)


def _count(status: RunStatus, wanted: str) -> int:
    return sum(n for name, _, n in status.counts if name == wanted)


def _try_size(plan: RunPlan) -> str:
    """The size of the model's picture is the usual reason: the present one, and others to try."""
    if not plan.file:
        return "try another `--size` (256 for people who fill the picture, 768 for those far away)"
    stage = _stage(plan, "preprocess")
    if stage is None:
        return "try pictures of another size"
    size, most = stage.settings.get("size"), stage.settings.get("max_side")
    if size == "native" and most is None:
        return f"`{stage.name}` made pictures of `size: native`: remove that, or write `size: auto`"
    other = "256 for people who fill the picture, 768 for those far away"
    if isinstance(size, str):
        message = f"`max_side: {most}`" if most else f"`size: {size}`"
        return f"`{stage.name}` made pictures of {message}: try another `max_side` ({other})"
    return "see whether people are large enough in the model's picture"
