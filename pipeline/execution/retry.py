"""Waits while the outside does not respond: a receiver that is away, a disk that is full.

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
from typing import NamedTuple, ParamSpec, TypeVar

from camgraph.pipeline.errors import CamgraphError, EnvironmentProblem, Unavailable
from camgraph.pipeline.execution.collector import Collector
from camgraph.pipeline.monitoring.metrics import reason_line
from camgraph.pipeline.stage import Logger
from camgraph.pipeline.system.redaction import redact_urls

RETRY_S = 1.0
"""From one try to the next."""
PATIENT_RETRY_S = 0.05
"""Blocked on a reader that may take as long as it needs."""

T = TypeVar("T")
P = ParamSpec("P")


class _Waiting(NamedTuple):
    """Since when which stage is waited for (monotonic seconds), and why."""

    since: float
    stage: str
    why: str
    patient: bool


class Closing(Exception):
    """The process closes while a call waits: unwinds to the loop, and the items stay undone."""


class GivenUp(KeyboardInterrupt):
    """The user does not want to wait any longer. Differs from a stage that raises KeyboardInterrupt by mistake."""


class Retry:
    """One for each process. `pause(seconds)` lets time pass, and returns whether the process closes."""

    def __init__(self, pause: Callable[[float], bool], collector: Collector, log: Logger) -> None:
        self._pause = pause
        self._collector = collector
        self._log = log
        self._waiting: dict[int, _Waiting] = {}
        """By thread."""

    @property
    def waits_for(self) -> str:
        """The reason for waiting at present, "" for none."""
        return next((f"{one.stage}: {one.why}" for one in list(self._waiting.values())), "")

    @property
    def patient(self) -> bool:
        """Whether all waits are for readers that may take as long as they need (`Unavailable.patient`)."""
        waiting = list(self._waiting.values())
        return bool(waiting) and all(one.patient for one in waiting)

    @property
    def troubles(self) -> list[tuple[str, str, str]]:
        """(stage, "", why) of all that is waited for impatiently: once for each stage, however many of its threads."""
        why_of = {one.stage: one.why for one in list(self._waiting.values()) if not one.patient}
        return [(stage, "", reason_line(why)) for stage, why in why_of.items()]

    @property
    def since(self) -> float:
        """Since when it is waited for impatiently (monotonic seconds), 0 while it is not."""
        return min((one.since for one in list(self._waiting.values()) if not one.patient), default=0.0)

    def until_taken(self, stage: str, call: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
        """The result of `call`, which is made again until the outside takes it. Raises Closing, and all else it does.

        Slots that a failed call has taken are let go.
        """
        while True:
            taken = self._collector.mark()
            try:
                result = call(*args, **named)
            except (Unavailable, EnvironmentProblem) as error:
                self._collector.back_to(taken)
                if self._pause(self._note(stage, error)):
                    raise Closing(str(error)) from None
                continue
            except BaseException:
                self._over()
                raise
            waited = self._over() if self._waiting else None
            if waited and not waited.patient:
                self._log.info("stage_unblocked", stage=stage)
            return result

    def _over(self) -> _Waiting | None:
        """This thread waits no longer; how it did, if it did."""
        return self._waiting.pop(threading.get_ident(), None) if self._waiting else None

    def _note(self, stage: str, error: CamgraphError) -> float:
        """Note that this thread waits; for how many seconds, before it tries again."""
        thread = threading.get_ident()
        before = self._waiting.get(thread)
        patient = isinstance(error, Unavailable) and error.patient
        known = before is not None and before.patient == patient
        if not known and not patient:
            self._log.error("stage_blocked", stage=stage, error=str(error), error_id=error.error_id)
        since = before.since if before and known else time.monotonic()
        self._waiting[thread] = _Waiting(since, stage, redact_urls(str(error)), patient)
        return PATIENT_RETRY_S if patient else RETRY_S
