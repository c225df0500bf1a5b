"""Asks the control socket of a run: one request and its answer, bounded in time and size, by the user who is expected.

A run of an older camgraph speaks ZeroMQ there, and is told apart by its first bytes (`pipeline.system.side_link`).
"""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

from camgraph.pipeline.errors import EnvironmentProblem
from camgraph.pipeline.system.names import user_name
from camgraph.pipeline.system.side_link import ask

MOST_ANSWER = 64 << 20
"""Bytes of an answer. The status of a run of a thousand cameras has a megabyte."""
_ROOT = 0
_AGAIN_S = 0.05


def exchange(path: Path, request: str, *, owner: int, within_s: float) -> str:
    """The answer of the run of the user `owner` whose control socket is at `path`.

    A run that starts has its folder before its socket: then the run is asked again. Raises TimeoutError if the answer
    does not come in time, EnvironmentProblem if another user answers, OSError, and WireError or ValueError for an
    answer of another form.
    """
    until_s = time.monotonic() + within_s
    admit = partial(_require_user, expected=owner, path=path)
    while True:
        left_s = max(_AGAIN_S, until_s - time.monotonic())
        try:
            answer = ask(path, request, within_s=left_s, most=MOST_ANSWER, admit=admit)
        except (FileNotFoundError, ConnectionRefusedError, BlockingIOError):
            if time.monotonic() + _AGAIN_S > until_s:
                raise TimeoutError from None
            time.sleep(_AGAIN_S)
            continue
        if not isinstance(answer, str):
            raise ValueError(f"expected JSON, got {answer!r:.200}")
        return answer


def _require_user(found: int, expected: int, path: Path) -> None:
    if found not in (expected, _ROOT):
        raise EnvironmentProblem(
            f"{path}: expected an answer of {user_name(expected)}, got one of {user_name(found)}, "
            "which is not believed: end that program, or as root name the owner of the run with --user",
            error_id="run-of-others",
        )
