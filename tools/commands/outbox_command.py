"""The command `outbox`: shows and changes the events that wait for the sinks of a run, and the dead letters."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from camgraph.pipeline.dead_letters import FOLDER, DeadLetter
from camgraph.pipeline.errors import CamgraphError, UserError
from camgraph.pipeline.foreign_text import shown
from camgraph.pipeline.outbox.outbox_view import FILE, KeptEvent, OutboxView, SinkState
from camgraph.pipeline.supervision.control_client import ask
from camgraph.pipeline.system.found_runs import current_folder, found_runs
from camgraph.pipeline.system.names import is_name, nfc
from camgraph.pipeline.system.paths import state_folder
from camgraph.tools.commands.moments import local_time, moment, seconds_of
from camgraph.tools.display.questions import ask_yes

_SHORT = 12
_LISTED = 20
_ALL = 1 << 40
_ASK_S = 2.0

name_option = click.option("--name", help="The run, running or not, if there are several outboxes.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
yes_option = click.option("--yes", is_flag=True, help="Do not ask.")


@click.group("outbox")
def outbox_command() -> None:
    """Show the events that wait for the sinks of a run, show those that a sink gave up, and change both.

    The commands work during the run and after it. `camgraph help outbox` explains the outbox.
    """


@outbox_command.command()
@name_option
@json_option
def status(name: str | None, as_json: bool) -> None:
    """Show how many events wait for each sink and since when, and how many dead letters each sink has.

    Without --name, and if no run goes on, show this for all outboxes.
    """
    folders = [_folder(name)] if name or _running() else _outboxes()
    found = {folder.name: OutboxView(folder).states() for folder in folders}
    if as_json:
        click.echo(_as_json({run: [_plain_state(state) for state in states] for run, states in found.items()}))
        return
    lines = [line for run, states in found.items() for line in _state_lines(run, states)]
    click.echo("\n".join(lines) or "nothing waits: there is no outbox")


@outbox_command.command("list")
@click.option("--sink", help="Of this sink alone.")
@click.option("--camera", help="Of this camera alone.")
@click.option("--since", metavar="TIME", help="Not older: 2h, 3d, 2026-11-22, or 2026-11-22T21:00.")
@click.option("--dead", is_flag=True, help="Dead letters, in place of the events that wait.")
@click.option("--limit", default=_LISTED, show_default=True, type=click.IntRange(1), help="So many of each sink.")
@name_option
@json_option
def list_events(
    *, sink: str | None, camera: str | None, since: str | None, dead: bool, limit: int, name: str | None, as_json: bool
) -> None:
    """List the events that wait, the oldest first."""
    view = OutboxView(_folder(name))
    sinks = [view.sink(sink)] if sink else [state.sink for state in view.states()]
    after_ns = moment(since, "--since") if since else 0
    camera = None if camera is None else nfc(camera)
    rows: list[dict[str, Any]] = []
    for one in sinks:
        if dead:
            fits = _letter_filter(camera, after_ns)
            rows += [_plain_letter(letter) for letter in view.letters(one, fits, limit)]
        else:
            rows += [_plain_event(event) for event in view.waiting(one, _event_filter(camera, after_ns), limit)]
    nothing = "there are no dead letters" if dead else "nothing waits"
    click.echo(_as_json(rows) if as_json else "\n".join(map(_row_line, rows)) or nothing)


@outbox_command.command()
@click.argument("event_id", metavar="ID")
@name_option
@json_option
def show(event_id: str, name: str | None, as_json: bool) -> None:
    """Show all that is known about an event: its body, the sinks for which it waits, and the sinks that gave it up.

    The first letters of ID are enough.
    """
    view = OutboxView(_folder(name))
    events = view.events(event_id)
    letters = [letter for sink in _sinks(view) for letter in view.letters(sink, _begins(event_id), _ALL)]
    _one_id({event.id for event in events} | {letter.id for letter in letters}, event_id)
    plain = {
        "in_file": [{**_plain_event(event), "event": _body(event.body)} for event in events],
        "dead_letters": [{**_plain_letter(letter), "event": _body(letter.event.body)} for letter in letters],
    }
    click.echo(_as_json(plain) if as_json else "\n".join(_whole(plain)))


@outbox_command.command()
@click.argument("sink")
@click.argument("event_ids", metavar="[ID]...", nargs=-1)
@click.option("--all", "all_of_them", is_flag=True, help="All dead letters of the sink.")
@click.option("--since", metavar="TIME", help="All events that it has had since then and that are still in the file.")
@name_option
def requeue(sink: str, event_ids: tuple[str, ...], *, all_of_them: bool, since: str | None, name: str | None) -> None:
    """Hand events to SINK again: dead letters, or events that SINK has had and that are still in the file.

    A requeued event comes after the events that wait. Its id begins with `again`.
    """
    view = OutboxView(_folder(name))
    _one_choice(bool(event_ids), all_of_them, bool(since), "ID, --all or --since")
    sink = view.sink(sink)
    if all_of_them:
        count = view.requeue_letters(sink, lambda _: True)
    elif since:
        count = view.requeue_since(sink, moment(since, "--since"))
    else:
        count = _requeue_named(view, sink, event_ids)
    click.echo(f"{_events(count)} {'waits' if count == 1 else 'wait'} for {shown(sink)} again")


@outbox_command.command()
@click.argument("sink")
@click.argument("event_ids", metavar="[ID]...", nargs=-1)
@click.option("--all", "all_of_them", is_flag=True, help="All that waits for the sink.")
@click.option("--older", metavar="TIME", help="What was committed longer ago: 1h, 3d.")
@click.option("--dead", is_flag=True, help="Dead letters, in place of the events that wait.")
@yes_option
@name_option
def drop(
    sink: str,
    event_ids: tuple[str, ...],
    *,
    all_of_them: bool,
    older: str | None,
    dead: bool,
    yes: bool,
    name: str | None,
) -> None:
    """Give up events that wait for SINK, or its dead letters. Other sinks still get the events. You cannot undo this.

    If the run goes on, SINK has fetched some events already, and may deliver these all the same.
    """
    view = OutboxView(_folder(name))
    _one_choice(bool(event_ids), all_of_them, bool(older), "ID, --all or --older")
    sink = view.sink(sink)
    before_ns = _older_than(older) if older else _ALL << 40
    chosen = _named(view, sink, event_ids, dead=dead) if event_ids else None
    if not yes:
        what = "dead letters" if dead else "events that wait"
        number = _how_many(view, sink, chosen, older, dead=dead)
        if not _is_meant(f"Give up {number} {what} for {shown(sink)}?"):
            raise click.Abort
    if dead:
        count = view.drop_letters(sink, lambda one: (chosen is None or one.id in chosen) and one.at_ns < before_ns)
    else:
        count = view.drop(sink, lambda one: (chosen is None or one.id in chosen) and one.committed_ns < before_ns)
    click.echo(f"{_events(count)} given up")


def _is_meant(question: str) -> bool:
    try:
        return ask_yes(question, default=False)
    except EOFError:
        return False


# ---- which outbox


def _folder(name: str | None) -> Path:
    """The folder of the outbox that is meant. Raises UserError if several may be meant, or if there is none."""
    if name is not None and not is_name(name):
        raise UserError(f"no run can be called {shown(name)}", error_id="name-not-allowed")
    running = [run for run in _running() if run == name] if name else _running_here() or _running()
    if len(running) == 1:
        return _folder_of(running[0])
    if name is not None:
        folder = state_folder(name)
        if not _is_outbox(folder):
            raise UserError(f"nothing waits for a run called {name}{_listed(_outboxes())}", error_id="choose-one")
        return folder
    outboxes = _outboxes()
    if len(outboxes) == 1 and not running:
        return outboxes[0]
    if not outboxes and not running:
        raise UserError(
            "nothing waits: there is no outbox; `camgraph run GRAPH` makes one if its graph has events",
            error_id="choose-one",
        )
    raise UserError(f"which outbox? choose one with --name{_listed(outboxes)}", error_id="choose-one")


def _running_here() -> list[str]:
    """The runs whose graph is in this folder."""
    here = current_folder()
    return [run.name for run in found_runs() if run.is_of(here)] if here else []


def _running() -> list[str]:
    return [run.name for run in found_runs() if run.own]


def _folder_of(run: str) -> Path:
    """The folder of the outbox of a run that goes on, wherever the run keeps its state."""
    try:
        folder = ask(run, "status", within_s=_ASK_S).get("outbox_folder")
    except CamgraphError:
        folder = None  # the run is one process without a control socket, or busy
    return Path(folder) if folder else state_folder(run)


def _outboxes() -> list[Path]:
    root = state_folder("")
    try:
        return sorted(folder for folder in root.iterdir() if _is_outbox(folder))
    except OSError:
        return []


def _is_outbox(folder: Path) -> bool:
    return (folder / FILE).exists() or (folder / FOLDER).is_dir()


def _listed(folders: Sequence[Path]) -> str:
    return f"; there are: {', '.join(shown(folder.name) for folder in folders)}" if folders else ""


def _sinks(view: OutboxView) -> list[str]:
    return [state.sink for state in view.states()]


# ---- which events


def _one_choice(by_id: bool, by_all: bool, by_time: bool, expected: str) -> None:
    if by_id + by_all + by_time != 1:
        raise UserError(
            f"which events? give one of {expected}; `camgraph outbox list` shows them", error_id="choose-one"
        )


def _requeue_named(view: OutboxView, sink: str, event_ids: Sequence[str]) -> int:
    dead, in_file = set(), []
    for event_id in event_ids:
        letters, events = view.letters(sink, _begins(event_id), _ALL), view.events(event_id)
        [found] = _one_id({letter.id for letter in letters} | {event.id for event in events}, event_id)
        if letters:
            dead.add(found)
        else:
            in_file.append(found)
    count = view.requeue_letters(sink, lambda letter: letter.id in dead) if dead else 0
    return count + (view.requeue_events(sink, in_file) if in_file else 0)


def _named(view: OutboxView, sink: str, event_ids: Sequence[str], *, dead: bool) -> set[str]:
    found: set[str] = set()
    for event_id in event_ids:
        letters = {letter.id for letter in view.letters(sink, _begins(event_id), _ALL)}
        events = {event.id for event in view.events(event_id) if sink in event.waits_for}
        found |= _one_id(letters if dead else events, event_id)
    return found


def _one_id(found: set[str], event_id: str) -> set[str]:
    """The id of the one event that is meant. Raises UserError if none or several begin with `event_id`."""
    if event_id in found:
        return {event_id}
    if len(found) == 1:
        return found
    how_many = f"{len(found)} events begin" if found else "no event that is kept there begins"
    raise UserError(f"{how_many} with {shown(event_id)}: `camgraph outbox list` shows them", error_id="choose-one")


def _begins(event_id: str) -> Callable[[DeadLetter], bool]:
    return lambda letter: letter.id.startswith(event_id)


def _event_filter(camera: str | None, after_ns: int) -> Callable[[KeptEvent], bool]:
    return lambda event: camera in (None, event.camera) and event.committed_ns >= after_ns


def _letter_filter(camera: str | None, after_ns: int) -> Callable[[DeadLetter], bool]:
    return lambda letter: camera in (None, letter.event.stamp.camera) and letter.at_ns >= after_ns


def _older_than(text: str) -> int:
    return time.time_ns() - round(seconds_of(text, "--older") * 1e9)


def _how_many(view: OutboxView, sink: str, chosen: set[str] | None, older: str | None, *, dead: bool) -> str:
    if chosen is not None:
        return f"{len(chosen)}"
    if older:
        return f"all older than {older} of the"
    state = next(state for state in view.states() if state.sink == sink)
    return f"{state.dead_letters if dead else state.waiting}"


# ---- as text and as JSON


def _state_lines(run: str, states: Sequence[SinkState]) -> Iterator[str]:
    yield f"{shown(run)}:" + ("" if states else " nothing waits")
    for state in states:
        letters = f", {state.dead_letters:,} dead letters" if state.dead_letters else ""
        yield f"  {shown(state.sink)}: {_waiting(state)}{letters}"


def _waiting(state: SinkState) -> str:
    if not state.waiting:
        return "nothing waits"
    since = f", the oldest for {_ago(state.oldest_ns)}" if state.oldest_ns else ""
    return f"{_events(state.waiting)} {'waits' if state.waiting == 1 else 'wait'}{since}"


def _ago(at_ns: int) -> str:
    seconds = max(0.0, time.time_ns() - at_ns) / 1e9
    for unit, size in (("days", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def _events(count: int) -> str:
    return f"{count:,} event{'' if count == 1 else 's'}"


def _plain_state(state: SinkState) -> dict[str, Any]:
    age_s = round(max(0.0, time.time_ns() - state.oldest_ns) / 1e9, 1) if state.oldest_ns else None
    return {key: value for key, value in asdict(state).items() if key != "oldest_ns"} | {"oldest_s": age_s}


def _plain_event(event: KeptEvent) -> dict[str, Any]:
    return {
        "id": event.id,
        "as": event.shown_id,
        "waits_for": list(event.waits_for),
        "camera": event.camera,
        "committed": _utc(event.committed_ns),
        "incident": event.incident,
        "phase": event.phase,
        "bytes": len(event.body),
    }


def _plain_letter(letter: DeadLetter) -> dict[str, Any]:
    return {
        "id": letter.id,
        "sink": letter.sink,
        "camera": letter.event.stamp.camera,
        "at": _utc(letter.at_ns),
        "why": letter.why,
        "attempts": letter.attempts,
    }


def _row_line(row: dict[str, Any]) -> str:
    who = row["sink"] if "sink" in row else ", ".join(row["waits_for"])
    at = row.get("at") or row.get("committed") or "before an update"
    tail = f"given up: {row['why']}" if "why" in row else f"{row['phase']}, {row['bytes']} bytes"
    return "  ".join(shown(str(part)) for part in (row["id"][:_SHORT], at, who, row["camera"], tail))


def _whole(plain: dict[str, list[dict[str, Any]]]) -> Iterator[str]:
    for row in plain["in_file"]:
        waits = f"waits for {', '.join(row['waits_for'])}" if row["waits_for"] else "was delivered"
        yield f"{shown(row['as'])} of {shown(row['camera'])} {shown(waits)}"
        yield f"  committed  {local_time(row['committed']) if row['committed'] else 'by an earlier version'}"
        yield f"  incident   {shown(row['incident'])}, {shown(row['phase'])}"
    for row in plain["dead_letters"]:
        yield f"{shown(row['id'])} of {shown(row['camera'])}: a dead letter of {shown(row['sink'])}"
        yield f"  given up   {local_time(row['at'])}, after {row['attempts']} attempts"
        yield f"  because    {shown(row['why'])}"
    last = (plain["in_file"] + plain["dead_letters"])[-1]
    yield json.dumps(last["event"], indent=2, ensure_ascii=True)


def _body(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return body.decode(errors="replace")


def _utc(at_ns: int) -> str:
    return datetime.fromtimestamp(at_ns // 1_000_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if at_ns else ""


def _as_json(values: Any) -> str:
    return json.dumps(values, indent=2, ensure_ascii=True)
