"""What a run is asked over its control socket, and what it answers: plain values both ways.

status, metrics                    what it is doing
stop                               let the sources end, and the rest drain
cameras                            who is there, who comes and goes, and what a further one has to be like
add, remove, pause, resume         of one camera
reload                             the plan of a graph file that was changed
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from pydantic import ValidationError

from pipeline.errors import CamgraphError, UserError
from pipeline.membership import Membership, same_structure
from pipeline.names import A_NAME, is_name
from pipeline.plan import RunPlan, StagePlan, run_from_wire
from pipeline.redaction import redact_urls
from pipeline.registry import find_stage
from pipeline.stage import Logger, Source

_METRICS = ("counts", "cameras", "stages", "units", "memory_mb", "uptime_s")


class AskedRun(Protocol):
    """The run, as far as it can be asked."""

    def status(self) -> dict[str, Any]: ...

    def stop(self) -> None: ...


class Requests:
    """Answers for one run. A request is the name of what is asked (`op`), and more by name."""

    def __init__(self, run: AskedRun, membership: Membership, log: Logger) -> None:
        self._run = run
        self._membership = membership
        self._log = log
        self._by_command: set[str] = set()
        self._known: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
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

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The answer, or `error`: why there is none."""
        known = self._known.get(str(request.get("op")))
        if known is None:
            return {"error": f"unknown request {request.get('op')!r:.40}; expected one of: {', '.join(self._known)}"}
        try:
            return known(request)
        except CamgraphError as error:
            return {"error": str(error)}

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

    def _add(self, request: Mapping[str, Any]) -> dict[str, Any]:
        name, values = request.get("camera"), request.get("values")
        if not isinstance(name, str) or not is_name(name):
            raise UserError(f"a camera cannot be called {name!r:.60}: expected {A_NAME}")
        if not isinstance(values, dict):
            raise UserError(f"the settings of the camera {name} are missing: expected an object `values`")
        self._membership.add(name, values, live=self._is_live(name, values))
        self._by_command.add(name)
        self._log.info("camera_added", camera=name)
        return {"ok": True}

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
        name = str(request.get("camera"))
        self._membership.remove(name)
        self._by_command.discard(name)
        self._log.info("camera_removed", camera=name)
        return {"ok": True}

    def _pause(self, request: Mapping[str, Any]) -> dict[str, Any]:
        name, paused = str(request.get("camera")), request["op"] == "pause"
        self._membership.pause(name, paused=paused)
        self._log.info("camera_paused" if paused else "camera_resumed", camera=name)
        return {"ok": True}

    # ---- the graph file

    def _reload(self, request: Mapping[str, Any]) -> dict[str, Any]:
        try:
            wanted = run_from_wire(request["plan"])
        except (KeyError, TypeError, ValueError):
            raise UserError(
                "expected the plan of a graph in `plan`: is this the camgraph that the run began with?"
            ) from None
        if not same_structure(self._membership.plan, wanted):
            raise UserError(
                f"{_what_differs(self._membership.plan, wanted)} than in the run: only cameras and the settings of "
                "stages can change while it goes on; stop it and start it again"
            )
        members, before = self._membership, self._membership.plan
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
