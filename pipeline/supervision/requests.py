"""What a run is asked over its control socket, and what it answers: plain values both ways.

status, metrics                    what it is doing
stop                               let the sources end, and the rest drain
cameras                            who is there, who comes and goes, and what a further one has to be like
add, remove, pause, resume         of one camera
reload                             the plan of a graph file that was changed
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

from pydantic import ValidationError

from pipeline.errors import CamgraphError, GraphError, UserError
from pipeline.plan import RunPlan, StagePlan, run_from_wire
from pipeline.registry import find_stage
from pipeline.stage import FrameSize, Logger, Source, Stage
from pipeline.supervision.jobs import Answer, Job, Later
from pipeline.supervision.membership import Membership, same_structure
from pipeline.system.names import A_CAMERA_NAME, is_camera_name, nfc
from pipeline.system.redaction import redact_urls
from pipeline.wanted import GivenVariables, LoadedGraph, Loader, WantedGraph

T = TypeVar("T")
_METRICS = ("counts", "cameras", "stages", "units", "memory_mb", "uptime_s")


class AskedRun(Protocol):
    """The run, as far as it can be asked."""

    def status(self) -> dict[str, Any]: ...

    def stop(self) -> None: ...


class Requests:
    """Answers for one run. A request is the name of what is asked (`op`), and more by name."""

    def __init__(self, run: AskedRun, membership: Membership, log: Logger, loader: Loader | None = None) -> None:
        self._run = run
        self._membership = membership
        self._log = log
        self._by_command: set[str] = set()
        self._loader = loader
        self._last: Later[Any] | None = None
        """What was asked of the loader last: it loads one thing at a time, in the order in which they are asked for."""
        self._signalled: Later[Any] | None = None
        self._known: dict[str, Callable[[Mapping[str, Any]], Answer | Later[Any]]] = {
            "status": lambda _: self._run.status(),
            "metrics": self._metrics,
            "stop": self._stop,
            "cameras": self._cameras,
            "add": self._add,
            "remove": self._remove,
            "pause": self._pause,
            "resume": self._pause,
            "reload": self._reload,
        }

    def answer(self, request: Mapping[str, Any]) -> Answer | Later[Any]:
        """The answer, or `error`: why there is none. What takes a while is answered later."""
        known = self._known.get(str(request.get("op")))
        if known is None:
            return {"error": f"unknown request {request.get('op')!r:.40}; expected one of: {', '.join(self._known)}"}
        try:
            return known(request)
        except CamgraphError as error:
            return {"error": str(error)}

    def turn(self) -> None:
        """To be called often: goes on with what nobody waits for."""
        if self._signalled is None:
            return
        try:
            answer = self._signalled.poll()
        except Exception:  # noqa: BLE001 - a bug in loading a graph must not end the run
            self._log.exception("reload_failed", why="a bug of camgraph")
            answer = {}
        if answer is not None:
            self._signalled = None
            if "error" in answer:
                self._log.error("reload_failed", why=answer["error"])
            for remark in answer.get("remarks", ()):
                self._log.warning("graph_remark", text=remark)

    def _metrics(self, _: Mapping[str, Any]) -> dict[str, Any]:
        status = self._run.status()
        return {name: status[name] for name in _METRICS}

    def _stop(self, _: Mapping[str, Any]) -> dict[str, Any]:
        self._run.stop()
        return {"ok": True}

    # ---- cameras

    def _cameras(self, _: Mapping[str, Any]) -> dict[str, Any]:
        members, plan = self._membership, self._membership.plan
        return {
            "source": members.source,
            "base_folder": plan.base_folder,
            "defaults": dict(plan.camera_defaults),
            "graph_file": plan.file,
            "busy": members.busy,
            "coming": members.coming,
            "leaving": members.leaving,
            "paused": sorted(members.paused),
            "by_command": sorted(self._by_command & members.wanted.keys()),
            "problems": dict(members.problems),
            "refused": dict(members.refused),
            "cameras": self._run.status()["cameras"],
        }

    def _add(self, request: Mapping[str, Any]) -> Answer | Later[Any]:
        """`values`: settings with their variables put in; `given`: as they were given, for the run to do that.

        `first` and `besides`: see `GivenVariables`.
        """
        name, given = _camera_of(request), request.get("given")
        if self._loader is None or not isinstance(given, dict) or not isinstance(name, str):
            return self._take_in(request)
        loader = self._loader
        variables = GivenVariables(_texts(request.get("first")), _texts(request.get("besides")))

        def begin() -> Job[tuple[dict[str, Any], list[str]]]:
            plan = self._membership.plan
            return Job(lambda: loader.camera(name, given, plan, variables))

        def take_in(loaded: tuple[dict[str, Any], list[str]]) -> Answer:
            asked, remarks = loaded
            answer = self._take_in(asked)
            return {**answer, "remarks": [*remarks, *answer["remarks"]]}

        return self._in_turn(begin, take_in)

    def _in_turn(self, begin: Callable[[], Job[T]], then: Callable[[T], Answer]) -> Later[T]:
        """The answer, made when all those of before are."""
        later = Later(begin, then, behind=self._last)
        self._last = later
        return later

    def _take_in(self, request: Mapping[str, Any]) -> Answer:
        name, values = _camera_of(request), request.get("values")
        if not isinstance(name, str) or not is_camera_name(name):
            raise UserError(f"a camera cannot be called {name!r:.60}: expected {A_CAMERA_NAME}")
        if not isinstance(values, dict):
            raise UserError(f"the settings of the camera {name} are missing: expected an object `values`")
        live = self._is_live(name, values)
        remarks = self._fits_stages(name, _size_of(request.get("size")))
        self._membership.keep_secret(request.get("secrets", ()))
        self._membership.add(name, values, live=live)
        self._by_command.add(name)
        self._log.info("camera_added", camera=name)
        return {"ok": True, "remarks": remarks}

    def _fits_stages(self, name: str, size: FrameSize | None) -> list[str]:
        """What the stages of the run remark on a further camera. Raises UserError where they cannot have it."""
        before = dict.fromkeys(self._membership.wanted)
        problems, remarks = [], []
        for stage in _stages_of(self._membership.plan):
            was, now = (self._said_of(stage, cameras) for cameras in (before, {**before, name: size}))
            problems += [f"{stage.name}: {text}" for text in now.problems if text not in was.problems]
            remarks += [f"{stage.name}: {text}" for text in now.remarks if text not in was.remarks]
        if problems:
            raise UserError("\n".join(problems))
        return remarks

    def _said_of(self, stage: StagePlan, cameras: Mapping[str, FrameSize | None]) -> _Said:
        """What a stage's settings, as they are in the run, say of these cameras."""
        kind = find_stage(stage.use)
        if not issubclass(kind, Stage):
            return _Said()
        folder = Path(self._membership.plan.base_folder)
        settings = kind.settings_type.model_validate(dict(stage.settings))
        try:
            problems = [text for _, text in kind.check_cameras(settings, folder, cameras)]
            return _Said(problems, [] if problems else list(kind.remarks(settings, folder, cameras)))
        except GraphError as error:
            return _Said([problem.text for problem in error.problems])

    def _is_live(self, name: str, values: Mapping[str, Any]) -> bool:
        """Whether a camera that is to come is live. Raises UserError where it cannot come to this run."""
        kind = self._membership.source
        source = find_stage(kind)
        assert issubclass(source, Source)
        try:
            live = source.is_live(source.camera_type.model_validate(dict(values)))
        except ValidationError as error:
            raise UserError(f"camera {name}: {_first_mistake(error)}; expected the settings of `{kind}`") from None
        others = self._membership.plan.camera_settings
        kinds = {camera in self._membership.plan.live_cameras for camera in others}
        if kinds and live not in kinds:
            kind, other = ("live", "files") if live else ("a file", "live")
            raise UserError(
                f"the camera {name} is {kind}, and those of this run are {other}: it needs a graph of its own"
            )
        return live

    def _remove(self, request: Mapping[str, Any]) -> dict[str, Any]:
        name = str(_camera_of(request))
        self._membership.remove(name)
        self._by_command.discard(name)
        self._log.info("camera_removed", camera=name)
        return {"ok": True}

    def _pause(self, request: Mapping[str, Any]) -> dict[str, Any]:
        name, paused = str(_camera_of(request)), request["op"] == "pause"
        self._membership.pause(name, paused=paused)
        self._log.info("camera_paused" if paused else "camera_resumed", camera=name)
        return {"ok": True}

    # ---- the graph file

    def reload(self) -> bool:
        """Take the graph file over as it is now, and log what comes of it. False while an earlier one is under way."""
        if self._signalled is not None:
            return False
        plan = self._membership.plan
        try:
            self._signalled = self._loaded(WantedGraph(plan.file, plan.graph))
        except (UserError, RuntimeError) as error:  # the latter where the machine gives no thread
            self._log.error("reload_failed", why=str(error))
        return True

    @property
    def _further(self) -> list[str]:
        return sorted(self._by_command & self._membership.wanted.keys())

    def _reload(self, request: Mapping[str, Any]) -> Answer | Later[Any]:
        """`plan`: of a graph that is loaded already; `file` and `text`: a graph file for the run to load."""
        if "file" not in request:
            given = self._given_plan(request)
            if self._last is None or self._last.is_answered:
                return self._take_over(given)
            return self._in_turn(lambda: Job(lambda: given), self._take_over)
        files = request.get("env_files")
        return self._loaded(
            WantedGraph(
                file=str(request["file"]),
                name=self._membership.plan.graph,
                text=str(request.get("text", "")),
                folder=str(request.get("folder", "")),
                besides=_texts(request.get("besides")),
                env_files=None if files is None else [Path(file) for file in files],
            )
        )

    def _loaded(self, wanted: WantedGraph) -> Later[Any]:
        if self._loader is None:
            raise UserError("this run cannot load a graph")
        loader = self._loader

        def begin() -> Job[LoadedGraph]:
            asked = replace(wanted, further=self._further)
            return Job(lambda: loader.plan(asked))

        def take_over(loaded: LoadedGraph) -> Answer:
            try:
                answer = self._take_over(loaded.plan)
            except UserError as error:
                raise UserError(f"{wanted.file}: {error}") from None
            loaded.accept()
            return {**answer, "remarks": list(loaded.remarks)}

        return self._in_turn(begin, take_over)

    def _given_plan(self, request: Mapping[str, Any]) -> RunPlan:
        try:
            return run_from_wire(request["plan"])
        except (KeyError, TypeError, ValueError):
            raise UserError(
                "expected the plan of a graph in `plan`: is this the camgraph that the run began with?"
            ) from None

    def _take_over(self, wanted: RunPlan) -> Answer:
        if not same_structure(self._membership.plan, wanted):
            raise UserError(
                f"{_what_differs(self._membership.plan, wanted)} than in the run: only cameras and the settings of "
                "stages can change while it goes on; stop it and start it again"
            )
        members, before = self._membership, self._membership.plan
        members.keep_secret(wanted.secrets)
        self._by_command -= wanted.camera_settings.keys()
        # Cameras that were added by command stay, unless the file has one of that name.
        kept = {name: values for name, values in members.wanted.items() if name in self._by_command}
        live_before = set(members.live) - wanted.camera_settings.keys()
        members.want({**wanted.camera_settings, **kept}, {*wanted.live_cameras, *live_before})
        restarted = members.restart(_changed_stages(before, wanted))
        members.adopt(wanted)
        names = before.camera_settings.keys() | members.wanted.keys()
        answer = {
            "added": sorted(names - before.camera_settings.keys()),
            "removed": sorted(names - members.wanted.keys()),
            "changed": sorted(set(members.leaving) & members.wanted.keys()),
            "kept": sorted(kept),
            "restarted": restarted,
        }
        self._log.info("graph_reloaded", **answer)
        return answer


@dataclass(frozen=True, slots=True)
class _Said:
    """What a stage has to say of the cameras of a run."""

    problems: Sequence[str] = ()
    remarks: Sequence[str] = ()


def _stages_of(plan: RunPlan) -> list[StagePlan]:
    """Each stage once, but for the sources."""
    sources = {name for unit in plan.units for name in unit.sources}
    stages = {stage.name: stage for unit in plan.units for stage in unit.stages}
    return [stage for name, stage in stages.items() if name not in sources]


def _camera_of(request: Mapping[str, Any]) -> Any:
    """The name of the camera that a request is about, in composed form; unchecked, and maybe no text."""
    name = request.get("camera")
    return nfc(name) if isinstance(name, str) else name


def _texts(given: Any) -> dict[str, str]:
    """Variables of whoever asks."""
    return {str(name): str(value) for name, value in given.items()} if isinstance(given, dict) else {}


def _size_of(given: Any) -> FrameSize | None:
    """The size of a camera's frames, where whoever asks knows it."""
    match given:
        case [int(width), int(height)]:
            return width, height
        case _:
            return None


def _first_mistake(error: ValidationError) -> str:
    """Where a camera's settings are wrong, and why: without the value, which may hold a password."""
    mistake = error.errors(include_input=False, include_url=False)[0]
    return redact_urls(f"{'.'.join(map(str, mistake['loc'])) or 'the settings together'}: {mistake['msg']}")


def _what_differs(before: RunPlan, after: RunPlan) -> str:
    """What of the structure of two plans is another."""
    old, new = (
        {stage.name for unit in plan.units for stage in unit.stages if stage.use != "outbox"}
        for plan in (before, after)
    )
    differ = [f"{name} (new)" for name in sorted(new - old)] + [f"{name} (gone)" for name in sorted(old - new)]
    return f"the stages are others ({', '.join(differ)})" if differ else "stages are joined or placed in another way"


def _changed_stages(before: RunPlan, after: RunPlan) -> dict[str, StagePlan]:
    """Stages whose settings are others than before."""
    old = {stage.name: stage for unit in before.units for stage in unit.stages}
    return {stage.name: stage for unit in after.units for stage in unit.stages if old.get(stage.name) != stage}
