"""What a failure says about its camera, in words that help and hold no secret."""

from __future__ import annotations

import av
import pytest

from camgraph.stages.video.live.camera_problems import CameraProblem, Dropped, camera_problem, is_bug

URL = "rtsp://v:geheim@h/x"


def verdict(error: Exception, spent_s: float = 0.1) -> CameraProblem:
    return camera_problem(error, "rtsp://***@h/x", spent_s, 3.0)


@pytest.mark.parametrize(
    ("error", "state", "words"),
    [
        (av.HTTPUnauthorizedError(401, "Unauthorized", URL), "unauthorised", "refuses the user or password of `url`"),
        (av.HTTPForbiddenError(403, "Forbidden", URL), "unauthorised", "rights of this user"),
        (av.HTTPNotFoundError(404, "Not found", URL), "gone", "no stream at the path of `url`"),
        (av.HTTPServerError(503, "Server error", URL), "lost", "Server error"),
        (av.ConnectionRefusedError(111, "Connection refused", URL), "lost", "Connection refused"),
        (Dropped("nothing came for 11 s"), "lost", "nothing came for 11 s"),
        (OSError(), "lost", "OSError"),
    ],
)
def test_every_failure_has_its_state_and_says_what_to_do(error: Exception, state: str, words: str) -> None:
    reported = verdict(error)
    assert reported.state == state
    assert words in reported.why
    assert "rtsp://***@h/x" in reported.why
    assert "geheim" not in reported.why


@pytest.mark.parametrize(
    "error",
    [MemoryError(), av.MemoryError(12, "Cannot allocate memory", URL), OSError(24, "Too many open files")],
    ids=["Python's", "FFmpeg's", "descriptors"],
)
def test_what_the_machine_does_not_give_is_lost_with_a_way_out(error: Exception) -> None:
    reported = verdict(error)
    assert reported.state == "lost"
    assert "the machine does not give enough for this graph" in reported.why
    assert "raise the limit (ulimit -" in reported.why
    assert not is_bug(error)
    assert "geheim" not in reported.why


def test_bug_gives_lost_without_showing_its_text() -> None:
    error = AttributeError(f"no attribute of {URL}")
    assert is_bug(error)
    assert verdict(error) == CameraProblem(
        "lost", "rtsp://***@h/x: camgraph itself failed (AttributeError): the log has the details"
    )


def test_what_took_all_its_time_is_a_time_out() -> None:
    error = av.InvalidDataError(1, "Invalid data found when processing input", URL)
    assert "what it sends cannot be read as video" in verdict(error).why
    assert verdict(error, spent_s=3.01).why.endswith("no usable answer within 3 s (connect_s)")
    # What FFmpeg makes of a description that goes on and on.
    endless = av.PermissionError(1, "Operation not permitted", URL)
    assert verdict(endless, spent_s=3.01).why.endswith("no usable answer within 3 s (connect_s)")
