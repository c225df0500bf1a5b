"""Finds the run that a command is meant for, and asks its control socket: one request and its answer.

An answer is bounded in time and size, and believed of the user who is expected. A run of an older camgraph speaks
ZeroMQ there, and is told apart by its first bytes (`pipeline.system.side_link`).
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from camgraph.pipeline.errors import EXIT_ENVIRONMENT, EnvironmentProblem, UserError, WireError
from camgraph.pipeline.system import side_link
from camgraph.pipeline.system.found_runs import FoundRun, current_folder, found_runs, graphs_in
from camgraph.pipeline.system.names import own_user, user_name
from camgraph.pipeline.system.paths import runs_folder
from camgraph.pipeline.system.run_folder import CONTROL, is_private
from camgraph.pipeline.system.spelling import did_you_mean

MOST_ANSWER = 64 << 20
"""Bytes of an answer. The status of a run of a thousand cameras has a megabyte."""
_ANSWER_S = 5.0
_AGAIN_S = 0.05
_ROOT = 0
_WITHOUT_SECRETS = ("status", "stop")
"""The requests that root may send to a run of another user; that process may only pretend to be the run."""
_MOST_NAMED = 5


def find_run(name: str | None, *, owner: int | None = None, graph: Path | None = None) -> str:
    """Return the name of the run that is meant.

    That is the named one; else the one that was started from the file `graph`; else the one whose graph is in this
    folder; else, in a folder without a graph, the only run of this user. `owner`: the number of the user whose run it
    is, if not this one; only root may say that, and must not ask such a run for secrets. No run of another user is
    taken otherwise: anybody may give a run any name. Raises UserError.
    """
    runs = found_runs()
    meant = _meant(name, runs, owner)
    if name is None and owner is None:
        meant = _by_graph(meant, graph)
    if len(meant) == 1:
        if meant[0].answers:
            return meant[0].name
        raise UserError(
            f"the run {meant[0].name} has one process and no socket: look at it and stop it in its own terminal",
            error_id="run-one-process",
        )
    raise UserError(_not_found(name, runs, meant, owner), error_id="run-not-found")


def _meant(name: str | None, runs: Sequence[FoundRun], owner: int | None) -> list[FoundRun]:
    """Return the runs that may be meant; only the nearest ones if several folders have runs."""
    if name is not None:
        runs = [run for run in runs if run.name == name]
    if owner is not None and owner != own_user():
        return [run for run in runs if run.owner == owner]
    here = [run for run in runs if run.here]
    return here or [run for run in runs if run.own]


def _by_graph(runs: Sequence[FoundRun], graph: Path | None) -> list[FoundRun]:
    """Return those of the file, else those of this folder. Raises UserError if this folder has graphs and none runs."""
    if graph is not None:
        of_file = [
            run for run in runs if run.graph_file and os.path.realpath(run.graph_file) == os.path.realpath(graph)
        ]
        return of_file or [run for run in runs if run.is_of(graph.absolute().parent)] or list(runs)
    if (here := current_folder()) is None:
        return list(runs)
    if of_folder := [run for run in runs if run.is_of(here)]:
        return of_folder
    if runs and (idle := [file.name for file in graphs_in(here)]):
        which = f"the graph {idle[0]}" if len(idle) == 1 else f"none of the graphs {', '.join(idle[:_MOST_NAMED])}"
        verb = "is not running" if len(idle) == 1 else "is running"
        elsewhere = ", ".join(map(_in_words, runs))
        raise UserError(
            f"{which} of this folder {verb}; running elsewhere: {elsewhere}; "
            f"start the graph with `camgraph run {idle[0]}`, or choose one with --name",
            error_id="run-not-found",
        )
    return list(runs)


def _not_found(name: str | None, runs: Sequence[FoundRun], meant: Sequence[FoundRun], owner: int | None) -> str:
    asked = own_user() if owner is None else owner
    own = [run for run in runs if run.owner == asked]
    names = [run.name for run in own]
    message = f"running: {', '.join(map(_in_words, own))}" if own else ""
    others = [run for run in runs if run.owner != asked]
    if others:
        listed = ", ".join(f"{run.name} {run.where}" for run in others)
        message += (
            f"{'; ' if message else ''}running as another user: {listed}; ask as that user, or as root with --user"
        )
    if meant:
        return f"which run? choose one with --name; {message}"
    missing = f"no run called {name}" if name else ""
    if not own:
        whose = "your runs" if owner is None else f"the runs of {user_name(owner)}"
        nothing = f"none of {whose} is running" if others or owner is not None else "nothing is running"
        starts = f"{nothing}; `camgraph run GRAPH` starts a graph"
        return "; ".join(part for part in (": ".join(p for p in (missing, starts) if p), message) if part)
    return f"{missing}; {message}{did_you_mean(name, names) if name else ''}"


def _in_words(run: FoundRun) -> str:
    """Return the name of a run, and the file that tells it from others: its graph, else its own folder."""
    return f"{run.name} ({run.graph_file})" if run.graph_file else run.name if run.here else f"{run.name} {run.where}"


def _socket(name: str, owner: int | None) -> Path:
    """Return the path of the control socket of a run that `find_run` has found."""
    root = runs_folder()
    is_other = owner is not None and owner != own_user()
    if is_other or not is_private(root) or not (root / name / CONTROL).exists():
        meant = _meant(name, found_runs(), owner)
        if meant:
            return meant[0].folder / CONTROL
        raise UserError(f"no run called {name} any more", error_id="run-not-found")
    return root / name / CONTROL


def ask(name: str, op: str, *, owner: int | None = None, within_s: float = _ANSWER_S, **values: Any) -> dict[str, Any]:
    """Send a request to a run (see `pipeline.supervision.requests`). Raises EnvironmentProblem if it does not answer.

    `owner`: as for `find_run`. If the run refuses the request, raises UserError; if it lacks resources for it,
    EnvironmentProblem.
    """
    if owner is not None and op not in _WITHOUT_SECRETS:
        raise ValueError(f"{op} may tell secrets to a run of another user")
    request = json.dumps({"op": op, **values})
    user = own_user() if owner is None else owner
    try:
        answer = _read(exchange(_socket(name, owner), request, owner=user, within_s=within_s))
    except TimeoutError:
        raise EnvironmentProblem(
            f"the run {name} does not answer within {within_s:g} s: try again, and look at its log",
            error_id="run-silent",
        ) from None
    except (OSError, WireError, ValueError, RecursionError) as error:
        raise EnvironmentProblem(
            f"the answer of the run {name} cannot be read ({error}): is it from another version of camgraph?",
            error_id="run-unreadable",
        ) from None
    if "error" in answer:
        kind = EnvironmentProblem if answer.get("status") == EXIT_ENVIRONMENT else UserError
        raise kind(str(answer["error"]), error_id=str(answer.get("error_id", "")))
    return answer


def _read(answer: str) -> dict[str, Any]:
    """Raises ValueError if it is no object, or has a number that is none."""
    found = json.loads(answer, parse_constant=_finite, parse_float=_finite)
    if not isinstance(found, dict):
        raise ValueError("expected a JSON object")
    return found


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("a number is too large, or none")
    return value


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
            answer = side_link.ask(path, request, within_s=left_s, most=MOST_ANSWER, admit=admit)
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
