"""Requests that nobody would send to the service: `python -m camgraph.tools.lab.proofs.fuzz_service [--cases 60]`.

A real run serves. Schemathesis makes requests to each call of its OpenAPI document, as nobody and as each role: some as
the document describes them, and some that break it in parameters and bodies. Each answer must be one that the document
describes, each error must have an id that `camgraph explain` knows, and none may be a fault of the service. Of answers
without an end, the first piece is read. Meanwhile no process may die. Requests may pause cameras, which are resumed
after each role, and remove one of them; at the end the others must still give frames, and the run must stop in order.

Needs the extra `fuzz`, and `tests/plugin` installed.
"""

from __future__ import annotations

import copy
import importlib
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from camgraph.tools.commands.explaining.kinds import kinds
from camgraph.tools.lab.figure import Figure, figure_command
from camgraph.tools.lab.report_page import counted

_GRAPH = """
version: 1
name: fuzzed
camera_defaults: {{loop: true, realtime: true, url: cam.mp4}}
cameras:
  hall: {{}}
  yard: {{}}
  spare: {{}}
stages:
{people}
  actions: {{use: rules, from: tracks, with: {{file: rules.yaml}}}}
  footage: {{use: sink_footage, from: actions, with: {{path: footage, before_s: 1, after_s: 1}}}}
  page: {{use: serve, from: events, with: {{address: "127.0.0.1:{port}"{more}}}}}
"""
_RULES = """version: 1
zones: {bed: [[0, 0], [0.5, 0], [0.5, 1], [0, 1]]}
rules: [{id: somebody, when: score > 0.3, hold: 0.2s}]
"""
_ENDLESS = ("/live.mp4", "/mjpeg", "/people", "/stream")
"""Answers without an end: only their first piece is read."""
_STREAM_CASES = 8
"""Requests to each of these: one that is right waits for a picture."""
_CAMERAS, _SPARE, _BUG = ("hall", "yard"), "spare", "a bug of camgraph"
_LOGIN = "/login"
"""The call refuses clients with too many wrong tokens, and hardly any token sent here is right."""
_NOT_TRIED = (429, 503)
_MOST_NOT_TRIED = 0.02
"""The most answers, as a part of all, that come from a busy or absent service: they prove nothing about the calls."""
_WITHIN_S = 60.0
_PAUSE_S = 0.0125
"""So that even the quickest machine sends fewer than the 100 requests a second that one client may."""
"""More than 100 requests a second of one client are refused (429) before anybody looks at them."""
_ROLES = ("", "viewer", "operator", "admin")
_MODES = ("right", "wrong")


@dataclass
class Found:
    """The results of the requests of all roles."""

    statuses: dict[str, Counter[str]] = field(default_factory=lambda: {mode: Counter() for mode in _MODES})
    """Of the requests of each mode."""
    streams: Counter[str] = field(default_factory=Counter)
    slowest_s: float = 0.0
    not_tried: Counter[str] = field(default_factory=Counter)
    """Calls whose requests were refused before anybody looked at them."""
    faults: list[str] = field(default_factory=list)

    def note(self, what: str, mode: str, answer: Any, took_s: float) -> None:
        """An answer to the request `what`."""
        self.statuses[mode][str(answer.status_code)] += 1
        self.slowest_s = max(self.slowest_s, took_s)
        self._look_at(what, answer)

    def note_stream(self, what: str, answer: Any, described: Mapping[str, Any]) -> None:
        """An answer to a request for a stream; `described`: the answers of the document, by their codes."""
        self.streams[str(answer.status_code)] += 1
        self._look_at(what, answer)
        content = described.get(str(answer.status_code), {}).get("content")
        kind = answer.headers.get("Content-Type", "").partition(";")[0]
        if content is None or kind not in {one.partition(";")[0] for one in content}:
            self.faults.append(f"{what}: status {answer.status_code} with {kind or 'nothing'} is not described")

    def _look_at(self, what: str, answer: Any) -> None:
        status = answer.status_code
        if status in _NOT_TRIED and not what.endswith(_LOGIN):
            self.not_tried[what] += 1
        if status >= 500 and status != 503:  # 503: the run, or the other side, is not there now
            self.faults.append(f"{what}: status {status}")
        told = answer.json() if status >= 400 and "json" in answer.headers.get("Content-Type", "") else {}
        if "error" in told and told.get("id") not in kinds():
            self.faults.append(f"{what}: status {status} with the id {told.get('id')}, which has no text")

    def check_that_calls_were_tried(self) -> None:
        """A service that refuses before it looks at a request has passed no test."""
        every, refused = sum(counts.total() for counts in self.statuses.values()), self.not_tried.total()
        if refused > _MOST_NOT_TRIED * every:
            most = ", ".join(f"{what} {n}" for what, n in self.not_tried.most_common(3))
            self.faults.append(f"{refused} of {every} answers have a status of {_NOT_TRIED}; most of them: {most}")


def _try_all(document: Mapping[str, Any], url: str, role: str, token: str, cases: int) -> Found:
    """Send this many requests to each call, with a token of this role, or with none if it is ""."""
    schemathesis, hypothesis = importlib.import_module("schemathesis"), importlib.import_module("hypothesis")
    checks = importlib.import_module("schemathesis.specs.openapi.checks")
    described = [getattr(checks, f"{name}_conformance") for name in ("status_code", "content_type", "response_schema")]
    headers = {"Authorization": f"Bearer {token}"} if role else {}
    found = Found()
    settings = hypothesis.settings(
        max_examples=cases, deadline=None, database=None, derandomize=True, phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )  # fmt: skip

    def prepared(case: Any, camera: str | None) -> str:
        """Name a camera that there is; what the request is, in words."""
        if camera and "name" in (case.path_parameters or {}):
            case.path_parameters["name"] = _SPARE if case.method == "DELETE" else camera
        time.sleep(_PAUSE_S)
        return f"{role or 'nobody'}: {case.method} {case.operation.path}"

    def send(case: Any, camera: str | None, mode: str) -> None:
        what = prepared(case, camera)
        begun_s = time.monotonic()
        response = case.call(base_url=url, headers=headers, timeout=_WITHIN_S)
        found.note(what, mode, response, time.monotonic() - begun_s)
        try:
            case.validate_response(response, checks=described)
        except Exception as error:  # noqa: BLE001 - groups of whatever the checks raise
            found.faults.append(f"{what}: {' '.join(str(error).split())[:300]}")

    def begin(case: Any, camera: str | None, mode: str) -> None:
        what = prepared(case, camera)
        request = case.as_transport_kwargs(base_url=url, headers=headers)
        with importlib.import_module("requests").request(**{**request, "stream": True, "timeout": _WITHIN_S}) as answer:
            if answer.ok:
                next(answer.iter_content(None), b"")
            found.note_stream(what, answer, case.operation.definition.raw["responses"])

    strategies, modes = hypothesis.strategies, schemathesis.GenerationMode
    cameras = strategies.sampled_from([None, None, *_CAMERAS])
    for operation in _operations(schemathesis.openapi.from_dict(_without_tokens(document))):
        is_endless = operation.path.endswith(_ENDLESS)
        for mode, kind in zip(_MODES, (modes.POSITIVE, modes.NEGATIVE), strict=True):
            if kind == modes.NEGATIVE and not (list(operation.query) or list(operation.body)):
                continue  # a name in the path may be any text
            given = {"case": operation.as_strategy(kind), "camera": cameras, "mode": strategies.just(mode)}
            some = hypothesis.settings(settings, max_examples=_STREAM_CASES) if is_endless else settings
            run: Callable[[], None] = some(hypothesis.given(**given)(begin if is_endless else send))
            try:
                run()
            except hypothesis.errors.Unsatisfiable:
                if mode == "right":
                    raise
                # Any text is right for this call, so that none is wrong.
    found.check_that_calls_were_tried()
    return found


def _without_tokens(document: Mapping[str, Any]) -> dict[str, Any]:
    """Otherwise most requests have a token that nobody knows, and are refused before anybody looks at the rest."""
    plain = copy.deepcopy(dict(document))
    del plain["components"]["securitySchemes"]
    for operations in plain["paths"].values():
        for operation in operations.values():
            del operation["security"]
    return plain


def _operations(schema: Any) -> Iterator[Any]:
    for result in schema.get_all_operations():
        yield result.ok()


def prove(cases: int) -> tuple[Mapping[str, Found], list[str]]:
    """Fuzz a run: the results by role, and all that is wrong with the run afterwards."""
    services = importlib.import_module("camgraph_test_stages.services")
    with tempfile.TemporaryDirectory(prefix="camgraph-fuzz-") as name:
        folder = Path(name)
        services.write_light(folder)
        (folder / "rules.yaml").write_text(_RULES)
        with services.serving_run(folder, _GRAPH, more=services.with_tokens()) as run:
            document = run.get("/openapi.json", "admin").json()
            for role in filter(None, _ROLES):
                run.get("/api/me", role)  # after wrong tokens, a client may use those alone that it has used before
            url, found = f"http://127.0.0.1:{run.port}", {}
            for role in _ROLES:
                found[role] = _try_all(document, url, role, services.TOKENS.get(role, ""), cases)
                click.echo(f"{role or 'nobody'}: {found[role].statuses}, streams: {found[role].streams}")
                for camera in _CAMERAS:
                    run.call("POST", f"/api/cameras/{camera}/resume", "operator")
            return found, _wrong_with(run)


def _wrong_with(run: Any) -> list[str]:
    """Damage that the requests have done to the run, in words."""
    wrong = [f"{camera} gives no frames any more" for camera in _CAMERAS if not _gives_frames(run, camera)]
    processes = run.get("/api/status", "admin").json()["processes"]
    wrong += [f"{name} was restarted" for name, one in processes.items() if one.get("restarts")]
    return wrong + [line[:300] for line in run.log.splitlines() if _BUG in line or "Traceback" in line]


def _gives_frames(run: Any, camera: str) -> bool:
    def frames() -> int:
        return int(run.get("/api/status", "admin").json()["cameras"][camera]["frames"])

    before, until_s = frames(), time.monotonic() + _WITHIN_S
    while time.monotonic() < until_s:
        if frames() > before:
            return True
        time.sleep(1)
    return False


@figure_command("proofs.fuzz_service")
@click.option(
    "--cases", default=60, show_default=True, help="Right requests to each call as each role, and wrong ones."
)
def main(figure: Figure, cases: int) -> None:
    """Fuzz the service; status 1 if an answer is not as its document says."""
    found, wrong = prove(cases)
    faults = [*dict.fromkeys(fault for one in found.values() for fault in one.faults), *wrong]
    lines = ["| as | requests | answers |", "|---|---|---|"]
    for role, one in found.items():
        cells = [(mode, one.statuses[mode]) for mode in _MODES] + [("streams", one.streams)]
        lines += [f"| {role or 'nobody'} | {mode} | {counted(counts)} |" for mode, counts in cells]
    slowest_s = max(one.slowest_s for one in found.values())
    good = (
        "Each answer was one that the document describes, and each error had an id. No process died, and the cameras "
        f"gave frames at the end. The slowest answer took {slowest_s:.2f} s."
    )
    verdict = ["**Not as described:**", "", *(f"- {fault}" for fault in faults[:50])] if faults else [f"**{good}**"]
    figure.publish("\n".join([figure.head(), "", *verdict, "", *lines]), faults)


if __name__ == "__main__":
    main()
