"""When a process counts as hung: arithmetic on what it last said, and when."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

FROZEN_S = 2.0


def hung(
    state: str,
    beat: Mapping[str, Any],
    *,
    now: float,
    since: float,
    heard_at: float,
    beat_at: float,
    hang_s: float,
    open_s: float,
) -> str:
    """Why a process counts as hung, or an empty string.

    All times are seconds of CLOCK_MONOTONIC: `since` is when it was started, `heard_at` when it was heard of last, and
    `beat_at` when `beat` came, whose fields are those of `pipeline.reports.Beat`. What a beat says held then: how long
    a batch takes is known only up to there.
    """
    if state == "starting":
        return f"not ready after {open_s:g} s (open_s)" if now - since > open_s else ""
    if now - heard_at > hang_s:
        return f"no sign of life for {hang_s:g} s (hang_s)"
    working_since = beat.get("working_since_ns", 0) / 1e9
    if working_since and beat_at - working_since > hang_s:
        return f"one batch takes longer than {hang_s:g} s: if it may, raise `hang_s` in the graph file"
    return _source_hung(beat, beat_at, hang_s, open_s)


def _source_hung(beat: Mapping[str, Any], beat_at: float, hang_s: float, open_s: float) -> str:
    silent_since = beat.get("source_silent_since_ns", 0) / 1e9
    if not silent_since:
        return ""
    if beat.get("source_opening"):
        late = beat_at - silent_since > open_s
        return f"a source has not brought its first frame after {open_s:g} s (open_s)" if late else ""
    if beat_at - silent_since > hang_s:
        return f"a source gives no sign of life for {hang_s:g} s: if it may, raise `hang_s` in the graph file"
    return ""


class Wakefulness:
    """Notices that the supervisor itself was stopped for a while: then nobody else is to blame for silence."""

    def __init__(self, now: float, hang_s: float) -> None:
        self._last = now
        self._hang_s = hang_s
        self._trusts_from = 0.0

    def slept_s(self, now: float) -> float:
        """To be called all the time: how long this process was stopped since the last call, mostly 0."""
        slept, self._last = now - self._last, now
        if slept <= FROZEN_S:
            return 0.0
        self._trusts_from = now + self._hang_s
        return slept

    def trusts(self, now: float) -> bool:
        """False for a while after a stop: the others were perhaps stopped as well, and have to report first."""
        return now >= self._trusts_from
