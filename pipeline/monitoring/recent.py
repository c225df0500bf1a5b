"""How fast sums have grown lately, by their values at moments of the last seconds. Pure: time is an argument."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

KEPT_S = 10.0


class Recent:
    """Sums that only grow, by any keys. Bounded: moments older than ``KEPT_S`` are forgotten, but for one."""

    def __init__(self) -> None:
        self._marks: deque[tuple[float, Mapping[str, float]]] = deque()

    @property
    def noted_s(self) -> float:
        """When the sums were noted last; -inf before the first time."""
        return self._marks[-1][0] if self._marks else float("-inf")

    def note(self, now_s: float, sums: Mapping[str, float]) -> None:
        """So much it is now."""
        self._marks.append((now_s, sums))
        while len(self._marks) > 2 and now_s - self._marks[1][0] >= KEPT_S:
            self._marks.popleft()

    def over(self, window_s: float) -> tuple[float, dict[str, float]]:
        """Over how many seconds, about ``window_s``, each sum has grown by how much; (0, {}) before there are two.

        A sum that was not there at the beginning has not grown: it may have counted elsewhere before. A sum that has
        fallen has started again from 0.
        """
        if len(self._marks) < 2:
            return 0.0, {}
        now_s, sums = self._marks[-1]
        since_s, before = next(
            mark for mark in reversed(self._marks) if now_s - mark[0] >= window_s or mark is self._marks[0]
        )
        grown = {key: _grown(before.get(key, n), n) for key, n in sums.items()}
        return now_s - since_s, grown

    def rates(self, window_s: float) -> dict[str, float]:
        """By how much each sum has grown in a second of about the last ``window_s``."""
        seconds, grown = self.over(window_s)
        return {key: n / seconds for key, n in grown.items()} if seconds > 0 else {}


def _grown(before: float, now: float) -> float:
    return now - before if now >= before else now
