"""What a connection that failed or ended says about its camera, in words for people. Pure.

FFmpeg's own texts hold the address with its password, so nothing but its bare reason (`strerror`) is quoted.
"""

from __future__ import annotations

from typing import NamedTuple

import av

from pipeline.stage import CameraState
from stages.reading.ffmpeg_errors import reason_of


class Dropped(Exception):
    """A connection that was open is over; its text says why, without secrets."""


class Verdict(NamedTuple):
    """The state of the camera, and why, without secrets."""

    state: CameraState
    why: str


def verdict_on(error: Exception, shown_url: str, spent_s: float, connect_s: float) -> Verdict:
    """``spent_s`` is how long the attempt took that raised ``error``; ``connect_s`` how long connecting may take."""
    if isinstance(error, (av.HTTPUnauthorizedError, av.HTTPForbiddenError)):
        return Verdict(
            "unauthorised",
            f"the camera refuses the user or password of `url` ({shown_url}): correct them there "
            "(in a password / # ? @ : % are written percent-encoded), or the rights of this user in the camera",
        )
    if isinstance(error, av.HTTPNotFoundError):
        return Verdict("gone", f"the camera has no stream at the path of `url` ({shown_url}): correct it there")
    return Verdict("lost", f"{shown_url}: {_reason(error, spent_s, connect_s)}")


def _reason(error: Exception, spent_s: float, connect_s: float) -> str:
    if isinstance(error, Dropped):
        return str(error)
    if isinstance(error, (av.ExitError, av.InvalidDataError)) and spent_s >= connect_s:
        return f"no usable answer within {connect_s:g} s (connect_s)"
    return reason_of(error)
