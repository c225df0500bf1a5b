"""The requests that a run answers over its control socket: plain values both ways.

status, metrics                    the state of the run
graph                              its stages and edges, without settings
settings                           of some of its stages
stop                               let the sources end, and the rest drain
cameras                            present, coming and leaving cameras, and the form of a further one
add, remove, pause, resume         of one camera
reload                             the plan of a graph file that has changed
switch                             the switches of its stages, and one to set
counter                            the counters of its stages, and one to set to zero
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from camgraph.pipeline.errors import CamgraphError, GraphError, UserError
from camgraph.pipeline.monitoring.run_status import as_json
from camgraph.pipeline.plan import RunPlan, StagePlan, outline, run_from_wire
from camgraph.pipeline.registry import find_stage, place_in_stage
from camgraph.pipeline.run_view import RunView
from camgraph.pipeline.stage import FrameSize, Logger, Source, Stage
from camgraph.pipeline.supervision.answers import CameraList, Reloaded
from camgraph.pipeline.supervision.control import Answer, Job, Later
from camgraph.pipeline.supervision.membership import Membership, same_structure
from camgraph.pipeline.system.names import A_CAMERA_NAME, is_camera_name, nfc
from camgraph.pipeline.system.redaction import redact_urls
from camgraph.pipeline.wanted import GivenVariables, LoadedGraph, Loader, WantedGraph

T = TypeVar("T")
_METRICS = ("counts", "cameras", "stages", "processes", "memory_mb", "uptime_s")


class Requests:
    """Answers requests for one run. A request has the name of the request (`op`), and its arguments by name."""

    def __init__(self, run: RunView, membership: Membership, log: Logger, loader: Loader | None = None) -> None:
        self._run = run
        self._membership = membership
        self._log = log
        self._by_command: set[str] = set()
        self._removed: set[str] = set()
        """Cameras that were removed by command: the rules may still speak of them."""
        self._loader = loader
        self._last: Later[Any] | None = None
        """The last request to the loader, which loads one thing at a time, in the order of the requests."""
        self._signalled: Later[Any] | None = None
        self._known: dict[str, Callable[[Mapping[str, Any]], Answer | Later[Any]]] = {
            "status": lambda _: as_json(self._run.status()),
            "metrics": self._metrics,
            "graph": lambda _: outline(self._membership.plan),
            "settings": self._settings,
            "stop": self._stop,
            "cameras": self._cameras,
            "add": self._add,
            "remove": self._remove,
            "pause": self._pause,
            "resume": self._pause,
            "reload": self._reload,
            "switch": self._switch,
            "counter": self._counter,
        }

    def answer(self, request: Mapping[str, Any]) -> Answer | Later[Any]:
        """Return the answer, or `error` with the reason. A slow answer comes later."""
        known = self._known.get(str(request.get("op")))
        if known is None:
            return {"error": f"unknown request {request.get('op')!r:.40}; expected one of: {', '.join(self._known)}"}
        try:
            return known(request)
        except CamgraphError as error:
            return {"error": str(error), "error_id": error.error_id}

    def turn(self) -> None:
        """Go on with work that no client waits for; call it often."""
        if self._signalled is None:
            return
        try:
            answer = self._signalled.poll()
        except Exception as bug:  # noqa: BLE001 - a bug in loading a graph must not end the run
            self._log.exception("reload_failed", why=f"a bug in {place_in_stage(bug) or 'camgraph'}")
            answer = {}
        if answer is not None:
            self._signalled = None
            if "error" in answer:
                self._log.error("reload_failed", why=answer["error"], error_id=answer.get("error_id", ""))
            for remark in answer.get("remarks", ()):
                self._log.warning("graph_remark", text=remark)

    def _metrics(self, _: Mapping[str, Any]) -> dict[str, Any]:
        status = as_json(self._run.status())
        return {name: status[name] for name in _METRICS}

    def _settings(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """`stages`: the names of those that are wanted."""
        names = request.get("stages")
        if not isinstance(names, list):
            raise UserError("expected the names of stages in `stages`", error_id="request-body")
        plan = self._membership.plan
        stages = {stage.name: stage for process in plan.processes for stage in process.stages if stage.name in names}
        settings = {name: dict(stage.settings) for name, stage in stages.items()}
        return {"base_folder": plan.base_folder, "settings": settings}

    def _stop(self, _: Mapping[str, Any]) -> dict[str, Any]:
        self._run.stop()
        return {"ok": True}

    def _switch(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """`switch`: one, all by default; `on`: to set it."""
        name, on = request.get("switch"), request.get("on")
        if name is None:
            return {"switches": self._run.switches()}
        if not isinstance(name, str) or not isinstance(on, bool | None):
            raise UserError("expected a name in `switch`, and true or false in `on`", error_id="request-body")
        name, known = nfc(name), self._run.switches()
        if on is not None or name not in known:
            self._run.turn_switch(name, on=bool(on))
            self._log.info("switch_turned", switch=name, on=on)
        return {"switches": {name: self._run.switches()[name]}}

    def _counter(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """`reset`: the counter to set to zero, if any; `camera`: of this camera, all by default."""
        name, camera = request.get("reset"), request.get("camera")
        if not isinstance(name, str | None) or not isinstance(camera, str | None):
            raise UserError(
                "expected the name of a counter in `reset`, and that of a camera in `camera`", error_id="request-body"
            )
        if name is not None:
            name, camera = nfc(name), nfc(camera) if camera is not None else None
            self._run.reset_counter(name, camera)
            self._log.info("counter_reset", counter=name, **({"camera": camera} if camera is not None else {}))
        return {"counters": self._run.status().counters}

    # ---- cameras

    def _cameras(self, _: Mapping[str, Any]) -> dict[str, Any]:
        members, plan = self._membership, self._membership.plan
        known = CameraList(
            source=members.source,
            base_folder=plan.base_folder,
            defaults=plan.camera_defaults,
            graph_file=plan.file,
            busy=members.busy,
            coming=members.coming,
            leaving=members.leaving,
            paused=sorted(members.paused),
            by_command=sorted(self._by_command & members.wanted.keys()),
            problems=members.problems,
            refused=members.refused,
            cameras=self._run.status().cameras,
        )
        return as_json(known)

    def _add(self, request: Mapping[str, Any]) -> Answer | Later[Any]:
        """`values`: settings with their variables filled in; `given`: settings in which the run fills in the variables.

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
        """Return the answer, made after all earlier ones."""
        later = Later(begin, then, behind=self._last)
        self._last = later
        return later

    def _take_in(self, request: Mapping[str, Any]) -> Answer:
        name, values = _camera_of(request), request.get("values")
        if not isinstance(name, str) or not is_camera_name(name):
            raise UserError(
                f"a camera cannot be called {name!r:.60}: expected {A_CAMERA_NAME}", error_id="name-not-allowed"
            )
        if not isinstance(values, dict):
            raise UserError(
                f"the settings of the camera {name} are missing: expected an object `values`", error_id="camera-change"
            )
        live = self._is_live(name, values)
        remarks = self._fits_stages(name, _size_of(request.get("size")))
        self._membership.keep_secret(request.get("secrets", ()))
        self._membership.add(name, values, live=live)
        self._by_command.add(name)
        self._log.info("camera_added", camera=name)
        return {"ok": True, "remarks": remarks}

    def _fits_stages(self, name: str, size: FrameSize | None) -> list[str]:
        """Return the remarks of the run's stages on a further camera. Raises UserError if they cannot take it."""
        before = dict.fromkeys([*self._membership.wanted, *sorted(self._removed - {name})])
        problems, remarks = [], []
        for stage in _stages_of(self._membership.plan):
            was, now = (self._facts_of(stage, cameras) for cameras in (before, {**before, name: size}))
            problems += [f"{stage.name}: {text}" for text in now.problems if text not in was.problems]
            remarks += [f"{stage.name}: {text}" for text in now.remarks if text not in was.remarks]
        if problems:
            raise UserError("\n".join(problems), error_id="camera-change")
        return remarks

    def _facts_of(self, stage: StagePlan, cameras: Mapping[str, FrameSize | None]) -> _Facts:
        """Return the remarks and problems that a stage, with its settings in the run, has with these cameras."""
        kind = find_stage(stage.use)
        if not issubclass(kind, Stage):
            return _Facts()
        folder = Path(self._membership.plan.base_folder)
        settings = kind.settings_type.model_validate(dict(stage.settings))
        try:
            problems = [text for _, text in kind.check_cameras(settings, folder, cameras)]
            return _Facts(problems, [] if problems else list(kind.remarks(settings, folder, cameras)))
        except GraphError as error:
            return _Facts([problem.text for problem in error.problems])

    def _is_live(self, name: str, values: Mapping[str, Any]) -> bool:
        """Whether a new camera is live. Raises UserError if this run cannot take it."""
        kind = self._membership.source
        source = find_stage(kind)
        assert issubclass(source, Source)
        try:
            live = source.is_live(source.camera_type.model_validate(dict(values)))
        except ValidationError as error:
            raise UserError(
                f"camera {name}: {_first_mistake(error)}; expected the settings of `{kind}`", error_id="camera-change"
            ) from None
        others = self._membership.plan.camera_settings
        kinds = {camera in self._membership.plan.live_cameras for camera in others}
        if kinds and live not in kinds:
            kind, other = ("live", "files") if live else ("a file", "live")
            raise UserError(
                f"the camera {name} is {kind}, and those of this run are {other}: it needs a graph of its own",
                error_id="camera-change",
            )
        return live

    def _remove(self, request: Mapping[str, Any]) -> dict[str, Any]:
        name = str(_camera_of(request))
        self._membership.remove(name)
        self._by_command.discard(name)
        self._removed.add(name)
        self._log.info("camera_removed", camera=name)
        return {"ok": True}

    def _pause(self, request: Mapping[str, Any]) -> dict[str, Any]:
        name, paused = str(_camera_of(request)), request["op"] == "pause"
        self._membership.pause(name, paused=paused)
        self._log.info("camera_paused" if paused else "camera_resumed", camera=name)
        return {"ok": True}

    # ---- the graph file

    @property
    def is_reloading(self) -> bool:
        """While a `reload` is in progress."""
        return self._signalled is not None

    def reload(self) -> bool:
        """Load the graph file again, and log the result. False while an earlier reload is in progress."""
        if self._signalled is not None:
            return False
        plan = self._membership.plan
        try:
            self._signalled = self._loaded(WantedGraph(plan.file, plan.graph))
        except (UserError, RuntimeError) as error:  # RuntimeError: the machine gives no thread
            self._log.error("reload_failed", why=str(error), error_id=getattr(error, "error_id", ""))
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
            raise UserError("this run cannot load a graph", error_id="reload-refused")
        loader = self._loader

        def begin() -> Job[LoadedGraph]:
            asked = replace(
                wanted, further=self._further, removed=sorted(self._removed - self._membership.wanted.keys())
            )
            return Job(lambda: loader.plan(asked))

        def take_over(loaded: LoadedGraph) -> Answer:
            try:
                answer = self._take_over(loaded.plan)
            except UserError as error:
                raise UserError(f"{wanted.file}: {error}", error_id="reload-refused") from None
            loaded.accept()
            return {**answer, "remarks": list(loaded.remarks)}

        return self._in_turn(begin, take_over)

    def _given_plan(self, request: Mapping[str, Any]) -> RunPlan:
        try:
            return run_from_wire(request["plan"])
        except (KeyError, TypeError, ValueError):
            raise UserError(
                "expected the plan of a graph in `plan`: is it from another version of camgraph than the run's?",
                error_id="reload-refused",
            ) from None

    def _take_over(self, wanted: RunPlan) -> Answer:
        if not same_structure(self._membership.plan, wanted):
            raise UserError(
                f"{_what_differs(self._membership.plan, wanted)} than in the run: only cameras and the settings of "
                "stages can change while it goes on; stop it and start it again",
                error_id="reload-refused",
            )
        members, before = self._membership, self._membership.plan
        members.keep_secret(wanted.secrets)
        self._by_command -= wanted.camera_settings.keys()
        self._removed -= wanted.camera_settings.keys()
        # Cameras that were added by command stay, unless the file has one of that name.
        kept = {name: values for name, values in members.wanted.items() if name in self._by_command}
        live_before = set(members.live) - wanted.camera_settings.keys()
        members.want({**wanted.camera_settings, **kept}, {*wanted.live_cameras, *live_before})
        if before.tracing != wanted.tracing:
            self._log.warning(
                "tracing_unchanged", why="a change of `tracing` takes effect at the next start of the run"
            )
        replaced = members.restart(_changed_stages(before, wanted))
        members.adopt(wanted)
        names = before.camera_settings.keys() | members.wanted.keys()
        reloaded = Reloaded(
            added=sorted(names - before.camera_settings.keys()),
            removed=sorted(names - members.wanted.keys()),
            changed=sorted(set(members.leaving) & members.wanted.keys()),
            kept=sorted(kept),
            restarted=replaced.restarted,
            going_on=replaced.going_on,
        )
        answer = as_json(reloaded)
        self._log.info("graph_reloaded", **answer)
        return answer


@dataclass(frozen=True, slots=True)
class _Facts:
    """The remarks of a stage on the cameras of a run, and its problems with them."""

    problems: Sequence[str] = ()
    remarks: Sequence[str] = ()


def _stages_of(plan: RunPlan) -> list[StagePlan]:
    """Each stage once, without the sources."""
    sources = {name for process in plan.processes for name in process.sources}
    stages = {stage.name: stage for process in plan.processes for stage in process.stages}
    return [stage for name, stage in stages.items() if name not in sources]


def _camera_of(request: Mapping[str, Any]) -> Any:
    """The name of the camera in a request, in composed form; unchecked, and possibly no text."""
    name = request.get("camera")
    return nfc(name) if isinstance(name, str) else name


def _texts(given: Any) -> dict[str, str]:
    """The client's variables."""
    return {str(name): str(value) for name, value in given.items()} if isinstance(given, dict) else {}


def _size_of(given: Any) -> FrameSize | None:
    """The size of a camera's frames, if the client knows it."""
    match given:
        case [int(width), int(height)]:
            return width, height
        case _:
            return None


def _first_mistake(error: ValidationError) -> str:
    """Name the wrong setting of a camera and the reason, without the value, which may contain a password."""
    mistake = error.errors(include_input=False, include_url=False)[0]
    return redact_urls(f"{'.'.join(map(str, mistake['loc'])) or 'the settings together'}: {mistake['msg']}")


def _what_differs(before: RunPlan, after: RunPlan) -> str:
    """Describe how the structure of two plans differs."""
    old, new = (
        {stage.name for process in plan.processes for stage in process.stages if stage.use != "outbox"}
        for plan in (before, after)
    )
    differ = [f"{name} (new)" for name in sorted(new - old)] + [f"{name} (gone)" for name in sorted(old - new)]
    return f"the stages are others ({', '.join(differ)})" if differ else "stages are joined or placed in another way"


def _changed_stages(before: RunPlan, after: RunPlan) -> dict[str, StagePlan]:
    """Return the stages whose settings have changed."""
    old = {stage.name: stage for process in before.processes for stage in process.stages}
    return {
        stage.name: stage for process in after.processes for stage in process.stages if old.get(stage.name) != stage
    }
