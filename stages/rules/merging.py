"""Incidents of several people as one: those of one rule and camera that overlap, or follow each other soon.

    one person    .SSSSS..............       S  their own incident runs
    another       ....SSSSSSS.........
    a third       ................SSS.       comes later than `merge` after the others
    told          .start  update end  .start    the update when the other joins; the end after `merge`

The first of them begins the merged incident, each that joins is an update of it, and it ends with the last.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from camgraph.stages.rules.language.crowd import Ids, Picture
from camgraph.stages.rules.language.incidents import Incident
from camgraph.stages.rules.language.judge import Verdict, Why

_AT_ONCE: frozenset[Why] = frozenset({"end", "schedule", "switch", "reload"})
"""Reasons after which nobody else can join."""


@dataclass(slots=True)
class _Merged:
    ids: Ids
    """Of the person who began it."""
    incident: Incident[Picture]
    running: set[Ids] = field(default_factory=set)
    everyone: set[int] = field(default_factory=set)
    last: Verdict | None = None
    """The end of the last of them who ended."""

    def note_end(self, end: Verdict) -> None:
        """The own incident of one of them has ended."""
        self.running.discard(end.ids)
        if self.last is None or end.picture.time_ns >= self.last.picture.time_ns:
            self.last = end

    def is_update_due(self, own: Verdict, now_ns: int) -> bool:
        """Whether the own update of one of them is one of the merged incident: each of them has times of their own."""
        return now_ns - self.incident.updated_ns >= (own.rule.timing.update_ns or 0)


class Merger:
    """The merged incidents of one camera. `merge_ns`: rule -> how long after an end another may go on with it."""

    def __init__(self, merge_ns: Mapping[str, int]) -> None:
        self.merge_ns = merge_ns
        self._merged: dict[str, _Merged] = {}

    def merged(self, verdicts: Iterable[Verdict], now_ns: int, asleep: Collection[str] = ()) -> Iterator[Verdict]:
        """The verdicts of one frame, those of merging rules as one incident each; `asleep`: rules that nobody joins."""
        own: dict[str, list[Verdict]] = {}
        for verdict in verdicts:
            if verdict.rule.id in self.merge_ns:
                own.setdefault(verdict.rule.id, []).append(verdict)
            else:
                yield verdict
        for rule_id in [*own, *(rule_id for rule_id in self._merged if rule_id not in own)]:
            yield from self._of_rule(rule_id, own.get(rule_id, ()), now_ns)
        for rule_id in [rule_id for rule_id in asleep if rule_id in self._merged]:
            yield from self._end(rule_id)

    def finish(self, but: Collection[str] = ()) -> Iterator[Verdict]:
        """The ends of those that others could still have joined, except for some rules."""
        for rule_id in [rule_id for rule_id in self._merged if rule_id not in but]:
            yield from self._end(rule_id)

    def _of_rule(self, rule_id: str, verdicts: Sequence[Verdict], now_ns: int) -> Iterator[Verdict]:
        merged = self._merged.get(rule_id)
        if merged and not merged.running and self._is_over(rule_id, merged, now_ns):
            yield from self._end(rule_id)
            merged = None
        for verdict in verdicts if merged else ():
            if merged and verdict.phase == "end":
                merged.note_end(verdict)
        began = [verdict for verdict in verdicts if verdict.phase == "start"]
        if began:
            yield self._joined(rule_id, merged, began)
        elif merged and merged.running:
            update = next((verdict for verdict in verdicts if verdict.phase == "update"), None)
            if update and merged.is_update_due(update, now_ns):
                merged.incident.updates += 1
                merged.incident.updated_ns = now_ns
                yield _as_merged(update, "update", merged)
        elif merged and merged.last and merged.last.why in _AT_ONCE:
            yield from self._end(rule_id)

    def _is_over(self, rule_id: str, merged: _Merged, now_ns: int) -> bool:
        return merged.last is not None and now_ns - merged.last.picture.time_ns > self.merge_ns[rule_id]

    def _joined(self, rule_id: str, merged: _Merged | None, began: Sequence[Verdict]) -> Verdict:
        """The start with all who began in this frame, or the update that tells of them."""
        first = min(began, key=lambda verdict: (verdict.incident.begun.time_ns, verdict.ids))
        phase: Literal["start", "update"] = "update" if merged else "start"
        if merged is None:
            merged = self._merged[rule_id] = _Merged(first.ids, dataclasses.replace(first.incident, updates=0))
        else:
            merged.incident.updates += 1
        for verdict in began:
            merged.running.add(verdict.ids)
            merged.everyone.update(verdict.ids)
        return _as_merged(first, phase, merged)

    def _end(self, rule_id: str) -> Iterator[Verdict]:
        merged = self._merged.pop(rule_id)
        if merged.last is not None:
            yield dataclasses.replace(
                merged.last, ids=merged.ids, incident=merged.incident, everyone=tuple(sorted(merged.everyone))
            )


def _as_merged(verdict: Verdict, phase: Literal["start", "update"], merged: _Merged) -> Verdict:
    """A verdict as one of the merged incident, with all of its people whose own incidents run and who are seen."""
    present = {track_id for ids in merged.running for track_id in ids}
    rows = tuple(row for row, track_id in enumerate(verdict.picture.ids.tolist()) if track_id in present)
    everyone = tuple(sorted(merged.everyone))
    return dataclasses.replace(
        verdict, ids=merged.ids, phase=phase, incident=merged.incident, rows=rows, everyone=everyone
    )
