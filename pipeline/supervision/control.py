"""The control socket of a run: small JSON requests from `camgraph` commands, and the supervisor's answers.

The socket is a side channel, in the supervisor's loop. Its messages are texts of JSON, so that a false run cannot give
any other values to a command.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import structlog

from camgraph.pipeline.errors import EXIT_ENVIRONMENT, EnvironmentProblem, UserError, WireError
from camgraph.pipeline.supervision.control_client import exchange
from camgraph.pipeline.supervision.jobs import Answer, Later
from camgraph.pipeline.system.found_runs import FoundRun, current_folder, found_runs, graphs_in
from camgraph.pipeline.system.names import own_user, user_name
from camgraph.pipeline.system.paths import runs_folder
from camgraph.pipeline.system.redaction import redact_urls
from camgraph.pipeline.system.run_folder import CONTROL, is_private
from camgraph.pipeline.system.side_channel import Client, SideChannel
from camgraph.pipeline.system.side_link import framed
from camgraph.pipeline.system.spelling import did_you_mean

_MAX_REQUEST = 1 << 24
_MOST_CLIENTS = 64
_REQUEST_S = 30.0
"""For a client to send its request, and to take the answer: with a plan of many cameras, on a busy machine."""
_ANSWER_S = 5.0
_LONGEST_OP = 40
_WITHOUT_SECRETS = ("status", "stop")
"""The requests that root may send to a run of another user; that process may only pretend to be the run."""
_MOST_NAMED = 5
_NOT_ANSWERED = "the run could not read this request: is it from another version of camgraph than the run's?"

A = TypeVar("A")


class ControlServer:
    """The supervisor's side of the socket. `serve` answers the requests that have arrived. Raises OSError."""

    def __init__(self, path: Path, answer: Callable[[dict[str, Any]], Answer | Later[Any]]) -> None:
        self._answer = answer
        self._later: list[tuple[Client, Later[Any]]] = []
        self._log = structlog.get_logger()
        self._channel = SideChannel(
            path,
            self._asked,
            self._log,
            name="control",
            within_s=_REQUEST_S,
            most_request=_MAX_REQUEST,
            most_clients=_MOST_CLIENTS,
        )
        self._channel.open()
        self.fileno, self.close = self._channel.fileno, self._channel.close

    def serve(self) -> None:
        """Answer the requests that have arrived, and earlier ones whose answers are ready now."""
        for client, later in list(self._later):
            come = self._guarded("", later.poll)
            if come is not None:
                self._later.remove((client, later))
                client.end(framed(_as_text(come)))
        self._channel.turn()

    @property
    def owes(self) -> bool:
        """Whether a client waits for an answer, or has a deadline, so that `serve` is needed though nothing arrives."""
        return bool(self._later) or self._channel.is_busy

    def _asked(self, client: Client) -> str | None:
        answer = self._answer_to(client.message)
        if isinstance(answer, Later):
            self._later.append((client, answer))
            return None
        return _as_text(answer)

    def _answer_to(self, text: Any) -> Answer | Later[Any]:
        """Answer a request. An error in it, or a bug while it is answered, becomes an answer too: the run goes on."""
        try:
            request = json.loads(text)
        except (TypeError, ValueError, RecursionError):
            request = None
        if not isinstance(request, dict):
            return {"error": "expected a JSON object with `op`, the name of a request"}
        return self._guarded(str(request.get("op"))[:_LONGEST_OP], lambda: self._answer(request))

    def _guarded(self, op: str, answer: Callable[[], A]) -> A | Answer:
        try:
            return answer()
        except Exception as bug:  # noqa: BLE001 - who asks nonsense, or a bug in the answer, must not end the run
            self._log.exception("request_failed", op=op)
            return {"error": f"{_NOT_ANSWERED} ({type(bug).__name__}); its log has the details"}


def _as_text(answer: dict[str, Any]) -> str:
    if "error" in answer:
        answer = {**answer, "error": redact_urls(str(answer["error"]))}
    return json.dumps(answer)


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
