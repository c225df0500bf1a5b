"""Waits out what the outside does not take now: a receiver that is away, a disk that is full.

    call --Unavailable, EnvironmentProblem--> pause --> the same call again --> ... --> its result
                                                '--the process closes--> Closing

The wait is around the one call of the one stage that needs the outside, wherever in its process that stage stands: no
stage before it sees an item twice. How the time passes is the caller's: a loop goes on listening and sending heartbeats
meanwhile, a thread of a pool just waits.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

from pipeline.errors import CamgraphError, EnvironmentProblem, Unavailable
from pipeline.execution.context import Collector
from pipeline.monitoring.metrics import reason_line
from pipeline.stage import Logger
from pipeline.system.redaction import redact_urls

HOLD_S = 1.0
"""From one try to the next."""

T = TypeVar("T")


class Closing(Exception):
    """The process closes while something is held: unwinds to the loop, and what is held stays undone."""


class GivenUp(KeyboardInterrupt):
    """A person does not want to wait any longer. Told apart from a stage that raises KeyboardInterrupt by mistake."""


class Hold:
    """One for each process. `pause(seconds)` lets the time pass, and says whether the process closes."""

    def __init__(self, pause: Callable[[float], bool], collector: Collector, log: Logger) -> None:
        self._pause = pause
        self._collector = collector
        self._log = log
        self._waiting: dict[int, tuple[float, str, str]] = {}
        """Thread -> since when, which stage, why."""

    @property
    def waits_for(self) -> str:
        """What is waited for at present, "" for nothing."""
        return next((f"{stage}: {why}" for _, stage, why in list(self._waiting.values())), "")

    @property
    def troubles(self) -> list[tuple[str, str, str]]:
        """(stage, "", why) of all that is waited for: once for each stage, however many of its threads wait."""
        why_of = {stage: why for _, stage, why in list(self._waiting.values())}
        return [(stage, "", reason_line(why)) for stage, why in why_of.items()]

    @property
    def since(self) -> float:
        """Since when it is waited for (monotonic seconds), 0 while it is not."""
        return min((since for since, _, _ in list(self._waiting.values())), default=0.0)

    def until_taken(self, stage: str, call: Callable[[], T]) -> T:
        """The result of `call`, which is made again until the outside takes it. Raises Closing, and all else it does.

        Slots that a failed call has taken are let go.
        """
        while True:
            taken = self._collector.mark()
            try:
                result = call()
            except (Unavailable, EnvironmentProblem) as error:
                self._collector.back_to(taken)
                self._note(stage, error)
                if self._pause(HOLD_S):
                    raise Closing(str(error)) from None
            except BaseException:
                self._over()
                raise
            else:
                if self._over():
                    self._log.info("taken_again", stage=stage)
                return result

    def _over(self) -> bool:
        """This thread waits no longer; whether it did."""
        return bool(self._waiting) and self._waiting.pop(threading.get_ident(), None) is not None

    def _note(self, stage: str, error: CamgraphError) -> None:
        thread = threading.get_ident()
        since, *_ = self._waiting.get(thread, (0.0, "", ""))
        if not since:
            self._log.error("held_back", stage=stage, error=str(error))
        self._waiting[thread] = (since or time.monotonic(), stage, redact_urls(str(error)))
