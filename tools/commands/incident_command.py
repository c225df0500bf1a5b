"""The command `incidents`: lists the incidents that `sink_footage` keeps, and shows one with its picture and clip."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import yaml

from pipeline.errors import UserError
from pipeline.foreign_text import shown
from pipeline.system.names import nfc
from stages.delivery.event_view import because
from stages.delivery.measured_words import measured_words
from stages.footage.incident_index import IncidentFilter, IncidentSummary, incidents_in, summary_of
from stages.footage.incident_record import KINDS, IncidentRecord, State, read_record
from tools.commands.local_path import LocalPath
from tools.commands.moments import local_time, moment

_SHORT = 8


@click.command("incidents")
@click.argument("action", required=False, type=click.Choice(["show", "keep", "release"]))
@click.argument("incident", required=False)
@click.option(
    "--in",
    "place",
    metavar="PATH",
    default="footage",
    type=LocalPath(),
    help="The folder of `sink_footage`, or the graph file.  [default: footage]",
)
@click.option("--camera", help="Of this camera alone.")
@click.option("--rule", help="Of this rule, or of this action, alone.")
@click.option("--since", metavar="TIME", help="Not older: 2h, 3d, 2026-11-22, or 2026-11-22T21:00.")
@click.option("--limit", metavar="N", type=click.IntRange(1), help="The newest N alone.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
def incidents_command(
    action: str | None,
    incident: str | None,
    *,
    place: Path,
    camera: str | None,
    rule: str | None,
    since: str | None,
    limit: int | None,
    as_json: bool,
) -> None:
    """List the incidents that are kept, the newest last.

    `show INCIDENT` says everything about one: why it fired, its picture and its clip. `keep INCIDENT` marks it, so that
    it is never removed by itself, and `release INCIDENT` takes that back. The first letters of an incident suffice.
    """
    folder = _folder(place)
    if action is None:
        after = datetime.fromtimestamp(moment(since, "--since") / 1e9, UTC) if since else None
        listed = incidents_in(folder, IncidentFilter(nfc(camera) if camera else None, after, rule, newest=limit))
        click.echo(_as_json(_all_plain(folder, listed)) if as_json else "\n".join(map(_line, listed)) or _NONE)
        return
    record = _found(folder, incident)
    if action != "show":
        record.mark_keep(action == "keep")
    click.echo(_as_json(_plain(record)) if as_json else "\n".join(_whole(record)))


_NONE = "no incidents are kept there"


def _folder(place: Path) -> Path:
    """Raises UserError if nothing can be kept there."""
    if place.is_dir():
        return place
    if not place.is_file():
        raise UserError(
            f"{place}: no such folder or graph file: name it with --in, as `--in lobby.yaml`", error_id="file-missing"
        )
    try:
        stages = yaml.safe_load(place.read_text()).get("stages", {}).values()
        paths = [(one.get("with") or {}).get("path", "footage") for one in stages if one.get("use") == "sink_footage"]
    except (OSError, ValueError, AttributeError, yaml.YAMLError):
        raise UserError(
            f"{place}: cannot be read as a graph: `camgraph check {place}` says why", error_id="graph-mistake"
        ) from None
    if not paths:
        why = f"{place}: no stage of it is a `sink_footage`, so no incidents are kept"
        raise UserError(why, error_id="pictures-not-kept")
    return place.parent / str(paths[0])


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


def _line(one: IncidentSummary) -> str:
    files = f"{_state('snapshot', one.snapshot, one.snapshot_bytes)}, {_state('clip', one.clip, one.clip_bytes)}"
    marks = ", kept" if one.keep else ""
    return (
        f"{shown(one.incident[:_SHORT])}  {local_time(one.start_time)}  {shown(one.camera)}  {shown(one.action)}  "
        f"{_lasted(one)}  {files}{marks}"
    )


def _lasted(one: IncidentSummary) -> str:
    if one.phase == "over":
        return f"{one.duration_s:g} s"
    return "one moment" if one.phase == "single" else "goes on, or its end was not told"


def _state(kind: str, state: State, size: int) -> str:
    if state == "ready":
        return f"{kind} {size / 1e3:.0f} kB"
    return f"no {kind}" if state == "missing" else f"{kind} not finished"


def _whole(record: IncidentRecord) -> Iterator[str]:
    data, one = record.data, summary_of(record)
    assert one is not None, "it was found by its summary"
    yield f"{shown(one.action)} on {shown(one.camera)}, {shown(one.severity)}"
    yield f"  incident    {shown(one.incident)}"
    yield f"  rule        {shown(one.rule)}"
    if data["rule"].get("about"):
        yield f"  about       {shown(data['rule']['about'])}"
    yield f"  began       {local_time(one.start_time)}"
    yield f"  lasted      {_lasted(one)}{_reason(record)}"
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
    if record.keep:
        yield "  kept        it is never removed by itself"


def _has_better(record: IncidentRecord, kind: str) -> bool:
    return kind == "snapshot" and record.files["best"].state == "ready"


def _reason(record: IncidentRecord) -> str:
    reason = record.last.get("data", {}).get("reason") if record.last else None
    return f" (ended: {reason})" if reason else ""


def _plain(record: IncidentRecord) -> dict[str, Any]:
    files = {
        kind: {**record.files[kind].plain(), **({"file": str(record.file(kind))} if _is_there(record, kind) else {})}
        for kind in KINDS
    }
    first, last = record.first, record.last
    return {"incident": record.incident, "camera": record.camera, "keep": record.keep, "first": first, "last": last} | {
        **files
    }


def _is_there(record: IncidentRecord, kind: Any) -> bool:
    return record.files[kind].state == "ready"


def _all_plain(folder: Path, listed: Sequence[IncidentSummary]) -> list[dict[str, Any]]:
    return [_plain(record) for one in listed if (record := read_record(one.path(folder)))]


def _as_json(values: Any) -> str:
    return json.dumps(values, indent=2, ensure_ascii=True)
