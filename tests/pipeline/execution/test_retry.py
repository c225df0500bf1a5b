"""Who waits for whom, and whether anybody should complain about it."""

from __future__ import annotations

import structlog
from structlog.testing import capture_logs

from camgraph.pipeline.errors import EnvironmentProblem, Unavailable
from camgraph.pipeline.execution.collector import Collector
from camgraph.pipeline.execution.retry import PATIENT_RETRY_S, RETRY_S, Retry


class Outside:
    """Raises these errors one after the other, and takes the call then."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)

    def __call__(self) -> str:
        if self.errors:
            raise self.errors.pop(0)
        return "taken"


def test_patient_wait_is_unlimited_and_no_trouble() -> None:
    seen: list[tuple[float, str, bool, list[tuple[str, str, str]], bool]] = []
    retry: Retry

    def pause(seconds: float) -> bool:
        seen.append((seconds, retry.waits_for, retry.patient, retry.troubles, retry.since > 0))
        return False

    with capture_logs() as lines:
        retry = Retry(pause, Collector(), structlog.get_logger())
        outside = Outside(Unavailable("reads", patient=True), Unavailable("away"), EnvironmentProblem("full"))
        assert retry.until_taken("sink", outside) == "taken"
    away, full = [("sink", "", "away")], [("sink", "", "full")]
    assert seen == [
        (PATIENT_RETRY_S, "sink: reads", True, [], False),
        (RETRY_S, "sink: away", False, away, True),
        (RETRY_S, "sink: full", False, full, True),
    ]
    assert (retry.waits_for, retry.patient, retry.since) == ("", False, 0.0)
    assert [line["event"] for line in lines] == ["stage_blocked", "stage_unblocked"]
    assert lines[0]["error_id"] == "outside-away"


def test_a_patient_wait_is_not_logged() -> None:
    with capture_logs() as lines:
        retry = Retry(lambda _: False, Collector(), structlog.get_logger())
        assert retry.until_taken("sink", Outside(Unavailable("reads", patient=True))) == "taken"
    assert lines == []
