"""How the status of a run looks: tables that fit themselves to a terminal, and the words of plain lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from camgraph.pipeline.foreign_text import shown
from camgraph.pipeline.monitoring.event_format import EventStatus
from camgraph.pipeline.monitoring.run_status import (
    BacklogStatus,
    CameraStatus,
    ProgressStatus,
    RunStatus,
    StageStatus,
)
from camgraph.pipeline.stage import AWAY
from camgraph.tools.display.summary import Summary

MOST_EVENTS = 10
FEW_EVENTS = 3
SMALL = 15
"""Lines below which not every section gets its share."""
STALE_MS = 2000.0
NO_DATE = "1970-01-01T"
"""The day on which files of unknown date begin."""
STATE_STYLES = {
    "live": "green",
    "running": "green",
    "done": "dim",
    "stopped": "dim",
    "queued": "dim",
    **dict.fromkeys(("failed", *AWAY), "bold red"),
}
"""Any other state (starting, connecting, waiting to be started again, ...) is a passing one: yellow."""
OVER = ("done", "stopped")
ORDINARY = ("live", "running", "queued", *OVER)
BAR_WIDTH = 40
MOST_COUNTERS = 4
"""How many cameras have a line for their counters in the live table."""
BACKLOG_S = 30.0
"""From this age of the oldest event on, a sink has a line for its backlog."""
MOST_IN_TROUBLE = 5
"""How many are named on a plain line."""


def render(status: RunStatus) -> RenderableType:
    """The live table; it fits itself to the width and height that it is given."""
    return _StatusView(status)


def render_summary(summary: Summary) -> RenderableType:
    """The summary of a run: frames, drops and events by action of each camera (those that left together); files;
    time.
    """
    table = _table(("camera", "left"), ("frames", "right"), ("drops", "right"), ("events", "left"))
    gone = {"(removed)": summary.departed} if summary.departed else {}
    for name, camera in {**summary.cameras, **gone}.items():
        events = ", ".join(f"{shown(action)} {count}" for action, count in sorted(camera.events.items())) or "none"
        _add(table, shown(name), str(camera.frames), _drops(camera.drops), events)
    errors = [
        Text(f"{shown(name)}: {shown(camera.error)}", "bold red")
        for name, camera in summary.cameras.items()
        if camera.error
    ]
    total = summary.totals
    rate = total.frames / summary.duration_s if summary.duration_s > 0 else 0.0
    last = f"{shown(summary.graph)}: {counted(total.frames, 'frame')} in {clock(summary.duration_s)} ({rate:.1f} fps), "
    files = [Text(f"  {shown(path)}", overflow="fold") for path in summary.files]
    written = [Text("written:"), *files] if files else []
    untaken = f", {summary.untaken} of them in no sink: one with `from: events` takes all" if summary.untaken else ""
    events_text = _with_ends(total.events, total.committed) + untaken
    limit = [Text(f"limit: {shown(summary.limit)}", "yellow")] if summary.limit else []
    return Group(table, *errors, *written, *limit, Text(last + events_text, "bold"))


def _with_ends(begun: int, committed: int) -> str:
    """Count as the lines of the events file do, so that the two numbers agree."""
    text = counted(begun, "event")
    return f"{text} ({committed} with updates and ends)" if committed > begun else text


def headline(status: RunStatus) -> list[str]:
    """The run in a few words that belong together, of printable characters only."""
    cameras = status.cameras.values()
    return [
        shown(status.graph),
        clock(status.uptime_s),
        *([shown(status.phase)] if status.phase != "running" else []),
        *([shown(status.health.level)] if status.phase == "running" and _is_ill(status) else []),
        f"{sum(camera.fps for camera in cameras):.1f} fps",
        counted(status.totals.frames, "frame"),
        counted(status.totals.drops, "drop"),
        counted(status.totals.events, "event"),
        f"{status.memory_mb:.0f} MB",
    ]


def progress_words(status: RunStatus) -> list[str]:
    """How far a run of files is; nothing of a run without an end."""
    return [_progress_text(status.progress)] if status.progress else []


def _progress_text(progress: ProgressStatus) -> str:
    """`45 %, about 0:01:10 left`."""
    left = "" if progress.left_s is None else f", about {clock(progress.left_s)} left"
    return f"{progress.done:.0%}".replace("%", " %") + left


def troubles(status: RunStatus) -> list[str]:
    """The first cameras that neither run nor have ended (the log has why), and the oldest picture of those that run."""
    bad = [f"{shown(name)} {_state(camera)}" for name, camera in status.cameras.items() if _in_trouble(camera)]
    more = [f"and {len(bad) - MOST_IN_TROUBLE} more"] if len(bad) > MOST_IN_TROUBLE else []
    ages = [camera.age_ms for camera in status.cameras.values() if camera.age_ms is not None and not _is_over(camera)]
    bad += [f"{shown(trouble.where)}: {shown(trouble.why)}" for trouble in status.troubles]
    message = ", ".join([*bad[:MOST_IN_TROUBLE], *more])
    return [*([f"age {max(ages):.0f} ms"] if ages else []), *([f"({message})"] if bad else [])]


def event_text(event: EventStatus) -> str:
    """One event on one line."""
    people = " ".join(f"#{track_id}" for track_id in event.people)
    return " ".join(part for part in (moment(event.time), shown(event.camera), shown(event.action), people) if part)


def shares(needs: Sequence[int], total: int) -> list[int]:
    """Give each as much of `total` as it needs, or an equal share if that is too much; the first get the rest."""
    given = [0] * len(needs)
    while total > 0 and given != list(needs):
        for index, need in enumerate(needs):
            if given[index] < need and total > 0:
                given[index] += 1
                total -= 1
    return given


def section_lines(cameras: int, stages: int, events: int, total: int) -> list[int]:
    """Share out the lines of the screen among sections (an empty line, a head, rows) by their wishes.

    A few events have a place like all others; more of them take the space that is left. On a small screen the cameras
    come first, then the events, then the stages.
    """
    needs = [rows + 2 if rows else 0 for rows in (cameras, stages, events)]
    if total < SMALL:
        given = [min(needs[0], total), 0, 0]
        for index in (2, 1):
            given[index] = min(needs[index], total - sum(given))
        return given
    given = shares([*needs[:2], min(needs[2], FEW_EVENTS + 2)], total)
    given[2] = min(needs[2], given[2] + total - sum(given))
    return given


def clock(seconds: float) -> str:
    """h:mm:ss."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"


def moment(time: str, now: datetime | None = None) -> str:
    """An event's time as short as it can be: of a file without a date the time in it, else the clock here.

    A time of another day than ``now`` has its date, as those of a recording that was made earlier.
    """
    if time.startswith(NO_DATE):
        return shown(time.removeprefix(NO_DATE).removesuffix("Z").removeprefix("00:"))
    try:
        at, today = datetime.fromisoformat(time).astimezone(), (now or datetime.now(UTC)).astimezone().date()
        return f"{at:%H:%M:%S}" if at.date() == today else f"{at:%Y-%m-%d %H:%M:%S}"
    except (ValueError, OverflowError, OSError):  # the last two: years for which there is no local time
        return shown(time)


def counted(number: int, noun: str) -> str:
    """`1 frame`, `2 frames`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


class _StatusView:
    """Sections with a head line and rows, each as long as the height allows."""

    def __init__(self, status: RunStatus) -> None:
        self._status = status

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        status = self._status
        yield Text("  ".join(headline(status)), "bold", no_wrap=True, overflow="ellipsis")
        tables: tuple[Callable[[int], RenderableType], ...] = (
            lambda rows: _camera_section(status.cameras, rows),
            lambda rows: _stage_table(status.stages, rows),
            lambda rows: _event_table(status.events, rows),
        )
        notes = [*_notes(status), *(_states(status) if options.max_height >= SMALL else ())]
        for note in notes:
            note.no_wrap, note.overflow = True, "ellipsis"
            yield note
        # One line is the headline's, and on one the cursor rests.
        events = min(len(status.events), MOST_EVENTS)
        cameras = len(status.cameras) + len(_reasons(status.cameras))
        lines = section_lines(cameras, len(status.stages), events, options.max_height - 2 - len(notes))
        for table, given in zip(tables, lines, strict=True):
            if given > 2:
                yield Text("")
                yield table(given - 2)


def _is_ill(status: RunStatus) -> bool:
    return status.health.level not in ("", "healthy")


def _notes(status: RunStatus) -> list[Text]:
    """Below the headline, a line each: troubles, since when, and the stage that limits the run."""
    troubles = [
        Text(f"{shown(one.where)}: {shown(one.why)}, for {clock(one.since_s)}", _note_style(status))
        for one in status.troubles[:MOST_IN_TROUBLE]
    ]
    limit = [Text(f"limit: {shown(status.limit)}", "yellow")] if status.limit else []
    return [*([_bar(status.progress)] if status.progress else []), *troubles, *limit]


def _states(status: RunStatus) -> Iterator[Text]:
    """The switches, and the counters of the first cameras that have some."""
    if status.switches:
        switches = (
            (f"  {shown(name)} {'on' if on else 'off'}", "" if on else "dim") for name, on in status.switches.items()
        )
        yield Text.assemble("switches:", *switches)
    for camera, counters in list(status.counters.items())[:MOST_COUNTERS]:
        texts = (f"  {shown(name)} {counter_text(numbers)}" for name, numbers in counters.items())
        yield Text(f"{shown(camera)}:" + "".join(texts))
    if len(status.counters) > MOST_COUNTERS:
        more = counted(len(status.counters) - MOST_COUNTERS, "more camera")
        yield Text(f"and {more} with counters: `camgraph counter` shows them", "dim")
    for sink, backlog in status.outbox.items():
        words = list(_backlog_words(backlog))
        if words:
            yield Text(f"{shown(sink)}: {', '.join(words)}: `camgraph outbox` shows them", "yellow")


def _backlog_words(backlog: BacklogStatus) -> Iterator[str]:
    """Events that have waited for a moment only are on their way, and not worth a line."""
    if backlog.waiting and (backlog.oldest_s or 0) > BACKLOG_S:
        yield f"{counted(backlog.waiting, 'event')} waiting, the oldest for {clock(backlog.oldest_s or 0)}"
    if backlog.dead_letters:
        yield counted(backlog.dead_letters, "dead letter")
    if backlog.given_up:
        yield f"{counted(backlog.given_up, 'event')} given up"


def counter_text(numbers: Mapping[str, int]) -> str:
    """`3 inside (5 rightward, 2 leftward)`."""
    ways = ", ".join(f"{number} {shown(name)}" for name, number in numbers.items() if name != "inside")
    return f"{numbers['inside']} inside ({ways})" if "inside" in numbers else ways


def _bar(progress: ProgressStatus) -> Text:
    """A bar, full where all files have been read."""
    full = min(BAR_WIDTH, int(progress.done * BAR_WIDTH))
    return Text.assemble(("━" * full, "green"), ("━" * (BAR_WIDTH - full), "dim"), f"  {_progress_text(progress)}")


def _note_style(status: RunStatus) -> str:
    """A stage that is being opened as it should is no trouble."""
    return "yellow" if status.phase == "starting" else "bold red"


def _camera_section(cameras: Mapping[str, CameraStatus], rows: int) -> RenderableType:
    """The table, and below it a line for each camera in trouble with the reason; these give way if not all fit."""
    reasons = _reasons(cameras)[: max(rows - len(cameras), rows // 3)]
    return Group(_camera_table(cameras, rows - len(reasons)), *reasons)


def _reasons(cameras: Mapping[str, CameraStatus]) -> list[Text]:
    """Why each is in trouble, as far as that is known: a line each, cut to the width."""
    return [
        Text(f"{shown(name)}: {shown(camera.why)}", _state_style(camera), no_wrap=True, overflow="ellipsis")
        for name, camera in cameras.items()
        if camera.why and _in_trouble(camera)
    ]


def _camera_table(cameras: Mapping[str, CameraStatus], rows: int) -> Table:
    """If not all fit, cameras in trouble come first, then those at work, then those that wait, and those that are over
    come last. The number of losses is shown if there were any.
    """
    losses = any(camera.losses for camera in cameras.values())
    files = any(camera.done is not None for camera in cameras.values())
    heads = ["fps", "frames", *(["read"] if files else []), "drops", "age", "events", *(["losses"] if losses else [])]
    table = _table(
        ("camera", "left"),
        ("state", "left"),
        *((name, "right") for name in heads),
    )
    listed = list(cameras.items())
    if len(listed) > rows:
        listed = sorted(listed, key=lambda entry: _rank(entry[1]))[: max(rows - 1, 0)]
    for name, camera in listed:
        _add(
            table,
            shown(name),
            Text(_state(camera), _state_style(camera)),
            f"{camera.fps:.1f}",
            str(camera.frames),
            *(["-" if camera.done is None else f"{camera.done:.0%}"] if files else []),
            _drops(camera.drops),
            _age(camera),
            str(camera.events),
            *([str(camera.losses)] if losses else []),
        )
    return _with_rest(table, len(cameras) - len(listed))


def _stage_table(stages: Mapping[str, StageStatus], rows: int) -> Table:
    heads = ("proc", "queue", "batch", "p50 ms", "p99 ms", "fps", "busy", "restarts")
    some_wait = any(stage.state != "running" for stage in stages.values())
    states = [("state", "left")] if some_wait else []
    table = _table(("stage", "left"), *states, *((name, "right") for name in heads))
    listed = list(stages.items())
    if len(listed) > rows:
        listed = listed[: max(rows - 1, 0)]
    for name, stage in listed:
        _add(
            table,
            shown(name),
            *([Text(shown(stage.state), _stage_style(stage))] if some_wait else []),
            str(stage.processes),
            str(stage.queue),
            _number(stage.batch),
            _number(stage.latency_ms_p50),
            _number(stage.latency_ms_p99),
            f"{stage.fps:.1f}",
            f"{stage.busy:.0%}",
            Text(str(stage.restarts), "bold red" if stage.restarts else ""),
        )
    return _with_rest(table, len(stages) - len(listed))


def _stage_style(stage: StageStatus) -> str:
    return "" if stage.state == "running" else "yellow"


def _event_table(events: Sequence[EventStatus], rows: int) -> Table:
    """The newest at the bottom, as in a log."""
    table = _table(("time", "left"), ("camera", "left"), ("event", "left"), ("", "left"), ("people", "left"))
    for event in events[-rows:]:
        people = " ".join(f"#{track_id}" for track_id in event.people)
        _add(table, moment(event.time), shown(event.camera), shown(event.action), shown(event.phase), people)
    return table


def _table(*columns: tuple[str, str]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim", collapse_padding=True)
    for name, side in columns:
        table.add_column(
            name, justify="right" if side == "right" else "left", no_wrap=name != "events" or side == "right"
        )
    return table


def _with_rest(table: Table, rest: int) -> Table:
    if rest > 0:
        _add(table, Text(f"and {rest} more", "dim"))
    return table


def _add(table: Table, *cells: str | Text) -> None:
    """A row of plain texts: a name with brackets in it is no markup."""
    table.add_row(*(cell if isinstance(cell, Text) else Text(cell) for cell in cells))


def _drops(drops: int) -> Text:
    return Text(str(drops), "yellow" if drops else "")


def _is_over(camera: CameraStatus) -> bool:
    return camera.state in OVER


def _rank(camera: CameraStatus) -> int:
    """The place of a camera if not all fit."""
    if _in_trouble(camera):
        return 0
    return 3 if _is_over(camera) else 2 if camera.state == "queued" else 1


def _in_trouble(camera: CameraStatus) -> bool:
    return camera.state not in ORDINARY


def _state(camera: CameraStatus) -> str:
    """The state, of one in trouble also for how long."""
    known = _in_trouble(camera) and camera.since_s is not None
    return f"{shown(camera.state)} {clock(camera.since_s or 0.0)}" if known else shown(camera.state)


def _state_style(camera: CameraStatus) -> str:
    return STATE_STYLES.get(camera.state, "yellow")


def _age(camera: CameraStatus) -> Text:
    if camera.age_ms is None or _is_over(camera):
        return Text("-", "dim")
    late = camera.age_ms > STALE_MS
    return Text(f"{camera.age_ms / 1000:.1f} s" if late else f"{camera.age_ms:.0f} ms", "yellow" if late else "")


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"
