"""The command `incidents`: lists the incidents that `sink_footage` keeps, and shows one with its picture and clip.

Times are in the time zone of the rules of the graph that keeps them, else in that of this machine.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Any

import click
import yaml

from camgraph.pipeline.errors import EnvironmentProblem, UserError
from camgraph.pipeline.foreign_text import shown
from camgraph.pipeline.system.disk import read_text
from camgraph.pipeline.system.found_runs import graphs_in
from camgraph.pipeline.system.names import nfc, user_name
from camgraph.stages.sinks.delivery.event_view import because
from camgraph.stages.sinks.delivery.event_words import reason, span
from camgraph.stages.sinks.delivery.measured_words import measured_words
from camgraph.stages.sinks.footage.incident_index import IncidentFilter, IncidentSummary, incidents_in, summary_of
from camgraph.stages.sinks.footage.incident_labels import GivenLabel, Label, Labels
from camgraph.stages.sinks.footage.incident_record import KINDS, IncidentRecord, State, read_record
from camgraph.stages.video.dates import zone_of
from camgraph.tools.commands.local_path import LocalPath
from camgraph.tools.commands.moments import local_time, moment

_SHORT = 8
_LABELS: Mapping[Label, str] = {"acknowledged": "seen", "true_alarm": "real", "false_alarm": "false alarm"}
"""As on the page."""
_FRACTIONS_BELOW_S = 10


@click.command("incidents")
@click.argument("action", required=False, type=click.Choice(["show", "seen", "keep", "release"]))
@click.argument("incident", required=False)
@click.option(
    "--in",
    "place",
    metavar="PATH",
    type=LocalPath(),
    help="The folder of `sink_footage`, or the graph file.  [default: that of the graph in this folder, else footage]",
)
@click.option("--camera", help="Of this camera alone.")
@click.option("--rule", help="Of this rule, or of this action, alone.")
@click.option("--since", metavar="TIME", help="Not older: 2h, 3d, 2026-11-22, or 2026-11-22T21:00.")
@click.option("--until", metavar="TIME", help="Not newer: as --since; a date includes its whole day.")
@click.option("--unseen", is_flag=True, help="Only incidents without a label.")
@click.option("--limit", metavar="N", type=click.IntRange(1), help="The newest N alone.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
def incidents_command(
    action: str | None,
    incident: str | None,
    *,
    place: Path | None,
    camera: str | None,
    rule: str | None,
    since: str | None,
    until: str | None,
    unseen: bool,
    limit: int | None,
    as_json: bool,
) -> None:
    """List the incidents that are kept, the newest last.

    `show INCIDENT` says everything about one: why it fired, its picture and its clip. `seen INCIDENT` marks it as seen,
    as the page does. `keep INCIDENT` marks it, so that it is never removed by itself, and `release INCIDENT` takes that
    back. The first letters of an incident suffice.
    """
    kept = _kept(place)
    if action is None:
        wanted = IncidentFilter(
            nfc(camera) if camera else None,
            _moment(since, "--since", kept.zone),
            rule,
            until=_moment(until, "--until", kept.zone, whole_day=True),
        )
        listed = _listed(kept, wanted, limit, unseen=unseen)
        lines = (_line(one, kept) for one in listed)
        click.echo(_as_json(_all_plain(kept, listed)) if as_json else "\n".join(lines) or _none(kept))
        return
    record = _found(kept.folder, incident)
    try:
        if action == "seen":
            kept.labels.add(record.incident, "acknowledged", "", user_name(os.getuid()).partition(" (")[0])
        elif action != "show":
            record.mark_keep(action == "keep")
    except OSError as error:
        raise EnvironmentProblem(
            f"{kept.folder}: cannot be written: {error.strerror or error}", error_id="cannot-write"
        ) from error
    click.echo(_as_json(_plain(record, kept)) if as_json else "\n".join(_whole(record, kept)))


def _moment(text: str | None, option: str, zone: tzinfo | None, *, whole_day: bool = False) -> datetime | None:
    """Raises UserError."""
    return datetime.fromtimestamp(moment(text, option, zone, whole_day=whole_day) / 1e9, UTC) if text else None


def _listed(kept: _Kept, wanted: IncidentFilter, limit: int | None, *, unseen: bool) -> Sequence[IncidentSummary]:
    if not unseen:
        return incidents_in(kept.folder, replace(wanted, newest=limit))
    found = [one for one in incidents_in(kept.folder, wanted) if not kept.labels_of(one.incident)]
    return found[-limit:] if limit else found


def _none(kept: _Kept) -> str:
    nothing = incidents_in(kept.folder, IncidentFilter(newest=1))
    return f"no incidents in {kept.folder} fit" if nothing else f"no incidents are kept in {kept.folder}"


# ---- where they are


@dataclass(frozen=True, slots=True)
class _Kept:
    """A folder of incidents. `zone`: that of the rules; None for that of this machine."""

    folder: Path
    zone: tzinfo | None
    labels: Labels

    def labels_of(self, incident: str) -> list[GivenLabel]:
        """The labels of an incident. Raises EnvironmentProblem if their file cannot be read."""
        try:
            return self.labels.of(incident)
        except OSError as error:
            raise EnvironmentProblem(
                f"{self.folder}: its labels cannot be read: {error.strerror or error}", error_id="cannot-read"
            ) from error


def _kept(place: Path | None) -> _Kept:
    """Raises UserError if nothing can be kept there, or if it is not clear which graph is meant."""
    if place is not None and place.is_file():
        return _of_graphs(_folder_of(place), [place])
    if place is None and (graphs := _graphs_that_keep(Path())):
        if len({os.path.realpath(folder) for folder in graphs.values()}) > 1:
            names, first = ", ".join(map(str, graphs)), next(iter(graphs))
            raise UserError(f"which graph? {names}: choose one with --in, as `--in {first}`", error_id="choose-one")
        return _of_graphs(next(iter(graphs.values())), list(graphs))
    folder = place or Path("footage")
    if not folder.is_dir():
        raise UserError(
            f"{folder}: no such folder or graph file: name it with --in, as `--in lobby.yaml`", error_id="file-missing"
        )
    beside = _graphs_that_keep(folder.absolute().parent)
    own = [graph for graph, its in beside.items() if os.path.realpath(its) == os.path.realpath(folder)]
    return _of_graphs(folder, own)


def _of_graphs(folder: Path, graphs: Sequence[Path]) -> _Kept:
    zones = {zone for graph in graphs for zone in _zones_of(graph)}
    return _Kept(folder, _zone(zones.pop()) if len(zones) == 1 else None, Labels(folder))


def _zone(name: str) -> tzinfo | None:
    with suppress(ValueError):  # `camgraph check` says so
        return zone_of(name)
    return None


def _graphs_that_keep(folder: Path) -> dict[Path, Path]:
    """The graphs in a folder that have a `sink_footage`, each with the folder of its incidents."""
    found = {}
    for graph in graphs_in(folder):
        with suppress(UserError):
            found[graph] = _folder_of(graph)
    return found


def _folder_of(graph: Path) -> Path:
    """Raises UserError if this is no graph, or none that keeps incidents."""
    paths = [one.get("path", "footage") for one in _settings_of(graph, "sink_footage")]
    if not paths:
        why = f"{graph}: no stage of it is a `sink_footage`, so no incidents are kept"
        raise UserError(why, error_id="pictures-not-kept")
    return graph.parent / str(paths[0])


def _zones_of(graph: Path) -> set[str]:
    """The time zones that the rules of a graph name, in the graph or in files of rules."""
    rules = _settings_of(graph, "rules")
    files = [graph.parent / str(one["file"]) for one in rules if one.get("file")]
    return {str(one["time_zone"]) for one in [*rules, *map(_rules_in, files)] if one.get("time_zone")}


def _rules_in(file: Path) -> Mapping[str, Any]:
    with suppress(OSError, ValueError, TypeError, yaml.YAMLError):  # `camgraph check` says so
        return dict(yaml.safe_load(read_text(file)) or {})
    return {}


def _settings_of(graph: Path, use: str) -> list[dict[str, Any]]:
    """Raises UserError if the file is no graph."""
    try:
        stages = yaml.safe_load(read_text(graph)).get("stages", {}).values()
        return [dict(one.get("with") or {}) for one in stages if one.get("use") == use]
    except (OSError, ValueError, AttributeError, TypeError, yaml.YAMLError):
        raise UserError(
            f"{graph}: cannot be read as a graph: `camgraph check {graph}` says why", error_id="graph-mistake"
        ) from None


# ---- in words


def _found(folder: Path, incident: str | None) -> IncidentRecord:
    if not incident:
        raise UserError(
            "which incident? `camgraph incidents` lists them, with the first letters of each", error_id="choose-one"
        )
    listed = incidents_in(folder, IncidentFilter(incident=incident))
    found = [record for one in listed if (record := read_record(one.path(folder)))]
    if len(found) == 1:
        return found[0]
    how_many = f"{len(found)} incidents begin" if found else "no incident that is kept begins"
    raise UserError(f"{how_many} with {shown(incident)}: `camgraph incidents` lists them", error_id="choose-one")


def _line(one: IncidentSummary, kept: _Kept) -> str:
    files = f"{_state('snapshot', one.snapshot, one.snapshot_bytes)}, {_state('clip', one.clip, one.clip_bytes)}"
    marks = _mark(kept.labels_of(one.incident)) + (", kept" if one.keep else "")
    return (
        f"{shown(one.incident[:_SHORT])}  {local_time(one.start_time, kept.zone)}  {shown(one.camera)}  "
        f"{shown(one.action)}  {_lasted(one)}  {files}{marks}"
    )


def _mark(labels: Sequence[GivenLabel]) -> str:
    """What people have said of it: the last word on whether it was real, which tells as well that it was seen."""
    given = [one["label"] for one in labels]
    real = [one for one in given if one != "acknowledged"]
    return f", {_LABELS[(real or given)[-1]]}" if given else ""


def _lasted(one: IncidentSummary) -> str:
    if one.phase == "over":
        return f"{one.duration_s:.2g} s" if one.duration_s < _FRACTIONS_BELOW_S else span(one.duration_s)
    return "one moment" if one.phase == "single" else "goes on, or its end was not told"


def _state(kind: str, state: State, size: int) -> str:
    if state == "ready":
        return f"{kind} {size / 1e3:.0f} kB"
    return f"no {kind}" if state == "missing" else f"{kind} not finished"


def _whole(record: IncidentRecord, kept: _Kept) -> Iterator[str]:
    data, one = record.data, summary_of(record)
    assert one is not None, "it was found by its summary"
    yield f"{shown(one.action)} on {shown(one.camera)}, {shown(one.severity)}"
    yield f"  incident    {shown(one.incident)}"
    yield f"  rule        {shown(one.rule)}"
    if data["rule"].get("about"):
        yield f"  about       {shown(data['rule']['about'])}"
    yield f"  began       {local_time(one.start_time, kept.zone)}"
    yield f"  lasted      {_end(one, record)}"
    people = [f"#{person['track_id']}" for person in data.get("people", [])]
    yield f"  people      {', '.join(people) or 'nobody'}"
    for condition in (data.get("evidence") or {}).get("conditions", []):
        yield f"  because     {shown(measured_words(condition) or because(condition))}"
    for kind in KINDS:
        state = record.files[kind]
        words = str(record.file(kind)) if state.state == "ready" else f"{state.state} {state.why}".strip()
        later = ", a better one than that of the first event" if _has_better(record, kind) else ""
        yield f"  {kind:<11} {words}{later}"
        for name in state.crops:
            yield f"  {'':<11} {shown(str(record.path.with_name(name)))}"
    for label in kept.labels_of(one.incident):
        by, note = (f" by {label['by']}" if label["by"] else ""), (f": {label['note']}" if label["note"] else "")
        yield f"  marked      {_LABELS[label['label']]}, {local_time(label['time'], kept.zone)}{shown(by)}{shown(note)}"
    if record.keep:
        yield "  kept        it is never removed by itself"


def _has_better(record: IncidentRecord, kind: str) -> bool:
    return kind == "snapshot" and record.files["best"].state == "ready"


def _end(one: IncidentSummary, record: IncidentRecord) -> str:
    """The length of an incident and the reason of its end; for a lost incident the end is unknown."""
    why = record.last.get("data", {}).get("reason") if record.last else None
    if why == "lost":
        return f"its end was not seen: {reason(why)}"
    return f"{_lasted(one)} (ended: {shown(reason(why))})" if why else _lasted(one)


def _plain(record: IncidentRecord, kept: _Kept) -> dict[str, Any]:
    files = {
        kind: {**record.files[kind].plain(), **({"file": str(record.file(kind))} if _is_there(record, kind) else {})}
        for kind in KINDS
    }
    return {
        "incident": record.incident,
        "camera": record.camera,
        "keep": record.keep,
        "labels": kept.labels_of(record.incident),
        "first": record.first,
        "last": record.last,
    } | {**files}


def _is_there(record: IncidentRecord, kind: Any) -> bool:
    return record.files[kind].state == "ready"


def _all_plain(kept: _Kept, listed: Sequence[IncidentSummary]) -> list[dict[str, Any]]:
    return [_plain(record, kept) for one in listed if (record := read_record(one.path(kept.folder)))]


def _as_json(values: Any) -> str:
    return json.dumps(values, indent=2, ensure_ascii=True)
