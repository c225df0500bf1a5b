"""The tables of the page, and the list for the author of a rule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from camgraph.tools.lab.benchmarks.real_actions.incidents import Judged
from camgraph.tools.lab.benchmarks.real_actions.scores import LAYERS, Layer, Score, layer_of, score
from camgraph.tools.lab.benchmarks.real_actions.truth import FALL, Clip, Fold, Happening
from camgraph.tools.lab.report_page import at_most, table_head, table_row


@dataclass
class Result:
    """All clips at one frame rate. `layers`: of each missed fall, in the order in which they were missed."""

    fps: float
    clips: list[Clip] = field(default_factory=list)
    scores: dict[str, Score] = field(default_factory=dict)
    layers: list[tuple[Clip, Happening, Layer]] = field(default_factory=list)

    def take(self, clip: Clip, judged: Judged, actions: Sequence[str]) -> None:
        """Add a clip."""
        self.clips.append(clip)
        for action in actions:
            own = score(action, clip, judged.told)
            self.scores.setdefault(action, Score()).add(own)
            if action == FALL:
                self.layers += [(one, fall, layer_of(fall, judged.tracks)) for one, fall in own.missed]


def tables(results: Sequence[Result], folds: Sequence[Fold], every: Sequence[Clip]) -> str:
    """Markdown. All results are of the same clips and actions. `every`: all clips that there are."""
    first = results[0]
    minutes = sum(clip.duration_s for clip in first.clips) / 60
    named = {action for clip in every for action in clip.named}
    lines = [f"{len(first.clips)} of {len(every)} clips, {minutes:.1f} minutes.", "", *_actions(results, named)]
    if FALL in first.scores:
        lines += ["", "Which layer missed a fall:", "", *_layers(results), "", *_folds(results, folds)]
    return "\n".join(lines)


def _actions(results: Sequence[Result], named: Collection[str]) -> Iterator[str]:
    """`named`: what the truth knows at all; of other actions nobody knows whether they are false."""
    rates = [f"{one.fps:g}/s" for one in results]
    heads = ("found at", "false at", "at most an hour at", "told again at", "in the median after, at")
    yield from table_head("action", "events", *(f"{head} {rate}" for head in heads for rate in rates))
    silent, unknown = [], []
    for action in results[0].scores:
        scores = [one.scores[action] for one in results]
        if not any(one.events or one.false for one in scores):
            silent.append(f"`{action}`")
            continue
        if action not in named:
            unknown.append(f"`{action}` ({', '.join(str(len(one.false)) for one in scores)})")
            continue
        cells: list[object] = [len(one.found) for one in scores]
        cells += [len(one.false) for one in scores]
        cells += [_at_most(one) for one in scores] + [len(one.again) for one in scores]
        cells += [f"{median(one.delays_s):.1f} s" if one.delays_s else "-" for one in scores]
        yield table_row(f"`{action}`", scores[0].events, *cells)
    if silent:
        yield from ("", f"No event and no incident: {', '.join(silent)}.")
    if unknown:
        yield from ("", f"Not in the truth (incidents at each rate): {', '.join(unknown)}.")


def _at_most(one: Score) -> str:
    """How many false ones an hour there are at most, with a confidence of 95 %, in clips such as those without it."""
    return f"{at_most(len(one.false), one.ordinary_s / 3600):.0f}" if one.ordinary_s else "-"


def _layers(results: Sequence[Result]) -> Iterator[str]:
    yield from table_head("frames a second", *LAYERS)
    for one in results:
        counts = Counter(layer for _, _, layer in one.layers)
        yield table_row(f"{one.fps:g}", *(counts[layer] for layer in LAYERS))


def _folds(results: Sequence[Result], folds: Sequence[Fold]) -> Iterator[str]:
    rates = [f"{one.fps:g}/s" for one in results]
    heads = ("falls found at", "told falsely at")
    yield from table_head("fold", "sources", "clips", "falls", *(f"{head} {rate}" for head in heads for rate in rates))
    for fold in folds:
        clips = [clip for clip in results[0].clips if clip in fold]
        falls = sum(len(clip.of(FALL, sure=True)) for clip in clips)
        origins = len({clip.origin for clip in clips})
        found = [sum(clip in fold for clip, _ in one.scores[FALL].found) for one in results]
        false = [sum(clip in fold for clip, _ in one.scores[FALL].false) for one in results]
        yield table_row(fold.number, origins, len(clips), falls, *found, *false)


def listed(result: Result) -> Iterator[str]:
    """A line for each missed fall, and for each incident that is false or told again."""
    layers: Mapping[tuple[str, float], Layer] = {
        (clip.file, fall.start_s): layer for clip, fall, layer in result.layers
    }
    rate = f"{result.fps:g}/s"
    for action, own in result.scores.items():
        for clip, event in own.missed:
            seen = f"{rate}  missed  {action}  {clip.file}  {event.start_s:.1f} to {event.over_s:.1f} s"
            if action == FALL:
                seen += f", down for {event.over_s - event.end_s:.1f} s  layer: {layers[clip.file, event.start_s]}"
            yield seen
        for kind, some in (("false", own.false), ("again", own.again)):
            for clip, told in some:
                yield f"{rate}  {kind}   {action}  {clip.file}  told at {told.at_s:.1f} s of {told.ids}"
