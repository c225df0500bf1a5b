"""The meaning of a failed or ended connection for its camera, in words for people. Pure.

FFmpeg's own texts hold the address with its password, so nothing but its bare reason (`strerror`) is quoted.
"""

from __future__ import annotations

import errno
from typing import NamedTuple

import av

from camgraph.pipeline.stage import CameraState
from camgraph.pipeline.system import scarcity
from camgraph.stages.video.ffmpeg_errors import reason_of

_SCARCE = (errno.ENOMEM, errno.EMFILE, errno.ENFILE)


class Dropped(Exception):
    """A connection that was open is over, or is not to be had; its text says why, without secrets."""

    def __init__(self, why: str, state: CameraState = "lost") -> None:
        super().__init__(why)
        self.state: CameraState = state


class CameraProblem(NamedTuple):
    """The state of the camera, and why, without secrets."""

    state: CameraState
    why: str


def is_bug(error: Exception) -> bool:
    """Whether this program is to blame for it, rather than camera or machine."""
    return not isinstance(error, (av.FFmpegError, OSError, MemoryError, Dropped))


def camera_problem(error: Exception, shown_url: str, opening_s: float, connect_s: float) -> CameraProblem:
    """``opening_s``: how long it took to fail, or to the first picture; ``connect_s``: how long connecting may take."""
    if isinstance(error, (av.HTTPUnauthorizedError, av.HTTPForbiddenError)):
        return CameraProblem(
            "unauthorised",
            f"the camera refuses the user or password of `url` ({shown_url}): correct them there "
            "(in a password / # ? @ : % are written percent-encoded), or the rights of this user in the camera",
        )
    if isinstance(error, av.HTTPNotFoundError):
        return CameraProblem("gone", f"the camera has no stream at the path of `url` ({shown_url}): correct it there")
    state = error.state if isinstance(error, Dropped) else "lost"
    return CameraProblem(state, f"{shown_url}: {_reason(error, opening_s, connect_s)}")


def _reason(error: Exception, opening_s: float, connect_s: float) -> str:
    if isinstance(error, Dropped):
        return str(error)
    if is_bug(error):
        return f"camgraph itself failed ({type(error).__name__}): the log has the details"
    if isinstance(error, MemoryError) or getattr(error, "errno", None) in _SCARCE:
        return scarcity.in_words(error) or reason_of(error)
    if isinstance(error, (av.ExitError, av.InvalidDataError, av.PermissionError)) and opening_s >= connect_s:
        return f"no usable answer within {connect_s:g} s (connect_s)"
    return _reason_of_ffmpeg(error)


def _reason_of_ffmpeg(error: Exception) -> str:
    if isinstance(error, av.EOFError):
        return "it ended the connection before a picture came"
    if getattr(error, "errno", None) == errno.EIO:
        return "the connection broke, and FFmpeg knows no reason"
    if isinstance(error, av.InvalidDataError):
        return "what it sends cannot be read as video: try another stream, codec or quality of the camera"
    return reason_of(error)
