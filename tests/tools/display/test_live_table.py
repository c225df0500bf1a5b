from __future__ import annotations

import io
import os
import pty
import re
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from camgraph.pipeline.monitoring.event_format import EventStatus
from camgraph.pipeline.monitoring.run_status import RunStatus, Totals
from camgraph.tools.display.console import console_of_output
from camgraph.tools.display.live_table import (
    PlainLines,
    line_every_s,
    new_events,
    render,
    render_summary,
)
from camgraph.tools.display.status_view import clock, moment, section_lines, shares, troubles
from camgraph.tools.display.summary import CameraSummary, Summary


def answer(cameras: int = 4, stages: int = 8, events: int = 8) -> dict[str, object]:
    """A run's status as it comes over the control socket."""
    return {
        "graph": "demo",
        "uptime_s": 83.4,
        "cameras": {
            f"cam{n}": {
                "state": "retrying" if n == cameras - 1 else "running",
                "fps": 3.5,
                "frames": 200 + n,
                "drops": n,
                "age_ms": 65.0 + n if n else None,
                "events": 2,
            }
            for n in range(cameras)
        },
        "stages": {
            f"stage{n}": {
                "processes": 1,
                "queue": n,
                "batch": 3.9 if n else None,
                "latency_ms_p50": 281.3,
                "latency_ms_p99": 843.9,
                "fps": 14.2,
                "restarts": n % 2,
                "busy": 1.86,
            }
            for n in range(stages)
        },
        "events": [
            {"time": f"00:0{n}.5", "camera": "cam1", "action": "linger", "phase": "start", "people": [n, n + 1]}
            for n in range(events)
        ],
        "processes": {},
        "memory_mb": 812.4,
    }


def shown(what: object, width: int = 80, height: int = 24, *, colour: bool = False) -> str:
    console = Console(file=io.StringIO(), width=width, height=height, force_terminal=colour, legacy_windows=False)
    console.print(what)
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_an_ordinary_run_fits_a_terminal_of_80_by_24() -> None:
    lines = shown(render(RunStatus.from_json(answer()))).splitlines()
    assert len(lines) == 23
    assert max(map(len, lines)) <= 80
    assert lines[0].split("  ") == ["demo", "0:01:23", "14.0 fps", "806 frames", "6 drops", "8 events", "812 MB"]
    assert "…" not in "".join(lines)
    assert lines[3].split() == ["cam0", "running", "3.5", "200", "0", "-", "2"]
    assert lines[6].split() == ["cam3", "retrying", "3.5", "203", "3", "68", "ms", "2"]
    assert lines[9].split() == ["stage0", "1", "0", "-", "281.3", "843.9", "14.2", "186%", "0"]
    assert lines[22].split() == ["00:07.5", "cam1", "linger", "start", "#7", "#8"]


@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 40), (80, 10), (80, 4), (40, 24), (200, 60)])
@pytest.mark.parametrize("cameras", [0, 1, 4, 64])
def test_it_never_grows_beyond_its_terminal(width, height, cameras) -> None:
    lines = shown(render(RunStatus.from_json(answer(cameras))), width, height).splitlines()
    assert len(lines) < height
    assert all(len(line) <= width for line in lines)


def test_a_sink_whose_events_wait_has_a_line() -> None:
    crm = {"waiting": 1234, "oldest_s": 3725.0, "dead_letters": 2, "given_up": 1}
    sinks = {"log": {"waiting": 3, "oldest_s": 0.4}, "old": {"waiting": 3, "oldest_s": None}, "crm": crm}
    lines = shown(render(RunStatus.from_json({**answer(), "outbox": sinks})), width=160, height=40).splitlines()
    words = "1234 events waiting, the oldest for 1:02:05, 2 dead letters, 1 event given up"
    assert lines[1] == f"crm: {words}: `camgraph outbox` shows them"
    assert not [line for line in lines if line.startswith(("log:", "old:"))]


def test_switches_and_counters_have_lines() -> None:
    numbers = {"visitors": {"rightward": 5, "leftward": 2, "inside": 3}}
    more = {"switches": {"armed": True, "closed": False}, "counters": {f"cam{n}": numbers for n in range(6)}}
    lines = shown(render(RunStatus.from_json({**answer(), **more})), height=40).splitlines()
    assert lines[1] == "switches:  armed on  closed off"
    assert lines[2] == "cam0:  visitors 3 inside (5 rightward, 2 leftward)"
    assert lines[6] == "and 2 more cameras with counters: `camgraph counter` shows them"
    small = shown(render(RunStatus.from_json({**answer(), **more})), height=12)
    assert "switches" not in small


def test_cameras_in_trouble_are_shown_when_not_all_fit() -> None:
    text = shown(render(RunStatus.from_json(answer(cameras=64))))
    assert "cam63" in text
    assert "more" in text
    assert "cam62" not in text


def away() -> dict[str, object]:
    """A run one of whose cameras is lost."""
    data = answer()
    data["cameras"]["cam1"] |= {  # type: ignore[index]
        "state": "lost",
        "why": "connection refused by 10.0.0.11:554: is the camera on, is it another address? " * 3,
        "since_s": 72.9,
        "losses": 3,
    }
    data["cameras"]["cam0"] |= {"state": "live", "why": "", "since_s": 900.0}  # type: ignore[index]
    return data


@pytest.mark.parametrize("width", [80, 120])
def test_lost_camera_shows_duration_and_reason(width: int) -> None:
    lines = shown(render(RunStatus.from_json(away())), width).splitlines()
    assert max(map(len, lines)) <= width
    assert lines[2].split() == ["camera", "state", "fps", "frames", "drops", "age", "events", "losses"]
    assert lines[3].split() == ["cam0", "live", "3.5", "200", "0", "-", "2", "0"]
    assert lines[4].split() == ["cam1", "lost", "0:01:12", "3.5", "201", "1", "66", "ms", "2", "3"]
    assert lines[6].split()[0] == "cam3"
    assert lines[7].startswith("cam1: connection refused by 10.0.0.11:554: is the camera on, is it another ad")
    assert lines[7].endswith("…")
    assert lines[8] == ""
    coloured = shown(render(RunStatus.from_json(away())), width, colour=True)
    assert "\x1b[1;31mlost 0:01:12" in coloured
    assert "\x1b[32mlive" in coloured


@pytest.mark.parametrize("height", [24, 12, 8, 5])
def test_reasons_are_cut_to_the_screen(height: int) -> None:
    data = answer(cameras=20)
    for camera in data["cameras"].values():  # type: ignore[attr-defined]
        camera |= {"state": "gone", "why": "404"}
    lines = shown(render(RunStatus.from_json(data)), height=height).splitlines()
    assert len(lines) < height
    logged = [line for line in lines if line.endswith(": 404")]
    assert len(logged) == {24: 2, 12: 2, 8: 1, 5: 0}[height]


def test_a_plain_line_tells_who_is_away_and_since_when() -> None:
    [_, bad] = troubles(RunStatus.from_json(away()))
    assert bad == "(cam1 lost 0:01:12, cam3 retrying)"


def test_a_plain_line_stays_short_however_many_are_away() -> None:
    data = answer(cameras=64)
    for camera in data["cameras"].values():  # type: ignore[attr-defined]
        camera |= {"state": "lost", "why": "no answer " * 20}
    [_, bad] = troubles(RunStatus.from_json(data))
    assert bad == "(cam0 lost, cam1 lost, cam2 lost, cam3 lost, cam4 lost, and 59 more)"


def test_output_without_terminal_is_complete(capsys: pytest.CaptureFixture[str]) -> None:
    data = answer(cameras=64)
    for camera in data["cameras"].values():  # type: ignore[attr-defined]
        camera |= {"state": "lost", "why": f"no answer {'x' * 280}"}
    console_of_output().print(render(RunStatus.from_json(data)))
    text = capsys.readouterr().out
    assert text.count("x" * 280 + "\n") == 64
    assert "more" not in text
    assert "…" not in text
    assert max(map(len, text.splitlines())) < 320


@given(st.floats(0, 1e9))
def test_plain_lines_come_less_often_in_the_course_of_time(uptime_s: float) -> None:
    assert 5.0 <= line_every_s(uptime_s) <= 60.0
    assert line_every_s(uptime_s) <= line_every_s(uptime_s + 1)


def test_totals_of_a_run_include_cameras_that_went() -> None:
    totals = {"frames": 9000, "drops": 77, "events": 26, "committed": 41}
    lines = shown(render(RunStatus.from_json({**answer(), "totals": totals}))).splitlines()
    assert lines[0].split("  ")[3:6] == ["9000 frames", "77 drops", "26 events"]


def test_control_characters_in_names_are_escaped() -> None:
    data = answer()
    data["cameras"] = {"\x1b[2Jevil\r\n": {"state": "run\x07ning"}, "[red]x[/red]": {"state": "[bold]"}}
    text = shown(render(RunStatus.from_json(data)))
    assert "\x1b" not in text
    assert "\x07" not in text
    assert r"\x1b[2Jevil\r\n" in text
    assert "[red]x[/red]" in text


def test_colours_tell_trouble() -> None:
    text = shown(render(RunStatus.from_json(answer())), colour=True)
    assert "\x1b[33mretrying" in text
    assert "\x1b[32mrunning" in text


def test_keys_of_another_version_do_no_harm() -> None:
    status = RunStatus.from_json({"cameras": {"a": {"frames": 3, "colour": "red"}}, "stages": {"b": {}}, "more": 1})
    assert status.cameras["a"].frames == 3
    assert "starting" in shown(render(status))


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_plain_lines_every_five_seconds_and_per_event() -> None:
    clock_s, file = Clock(), io.StringIO()
    lines = PlainLines(Console(file=file), clock_s)
    for n in range(60):
        clock_s.now_s = n / 4
        lines.show(RunStatus.from_json({**answer(events=min(n // 10, 3)), "uptime_s": 59.9}))
    written = file.getvalue().splitlines()
    assert [line.split()[0] for line in written] == ["status", "event", "event", "status", "event", "status"]
    assert written[1] == "event  00:00.5 cam1 linger #0 #1"
    assert written[0] == (
        "status demo  0:00:59  14.0 fps  806 frames  6 drops  8 events  812 MB  age 68 ms  (cam3 retrying)"
    )


def test_ends_of_events_make_no_plain_line() -> None:
    file = io.StringIO()
    data = answer(events=2)
    data["events"][1]["phase"] = "end"  # type: ignore[index]
    PlainLines(Console(file=file), Clock()).show(RunStatus.from_json(data))
    assert file.getvalue().count("event  ") == 1


events = st.lists(st.builds(EventStatus, action=st.sampled_from("abc")), max_size=12)


@given(events, events, st.integers(1, 8))
def test_what_is_new_in_a_list_that_grows_and_forgets(before, added, keeps) -> None:
    """Joined to what was seen, it gives the list again; nothing new is passed over while the lists overlap."""
    now = (before + added)[-keeps:]
    new = new_events(before, now)
    assert len(new) <= len(added)
    assert list(new) == (now[len(now) - len(new) :] if new else [])
    assert tuple(now[: len(now) - len(new)]) == tuple(before[len(before) - (len(now) - len(new)) :])


def test_new_events_of_distinct_ones_are_exact() -> None:
    every = [EventStatus(time=str(n)) for n in range(10)]
    assert new_events([], every[:3]) == every[:3]
    assert new_events(every[:3], every[1:5]) == every[3:5]
    assert new_events(every[:3], every[:3]) == []
    assert new_events(every[:3], every[5:8]) == every[5:8]


@given(st.lists(st.integers(0, 40), min_size=1, max_size=4), st.integers(-3, 80))
def test_shares_are_fair(needs, total) -> None:
    given_lines = shares(needs, total)
    assert sum(given_lines) == min(sum(needs), max(total, 0))
    assert all(got <= need for got, need in zip(given_lines, needs, strict=True))
    unmet = [got for got, need in zip(given_lines, needs, strict=True) if got < need]
    assert all(got <= min(unmet) + 1 for got in given_lines if unmet)


@given(st.integers(0, 100), st.integers(0, 20), st.integers(0, 10), st.integers(-2, 80))
def test_sections_use_the_screen_and_no_more(cameras, stages, event_rows, total) -> None:
    lines = section_lines(cameras, stages, event_rows, total)
    wanted = sum(rows + 2 for rows in (cameras, stages, event_rows) if rows)
    assert sum(lines) == min(wanted, total) or total < 0


def test_the_summary_names_frames_drops_events_and_files() -> None:
    summary = Summary(
        graph="demo",
        duration_s=63.2,
        cameras={
            "front": CameraSummary(200, 0, {"enter": 4, "cross": 2}),
            "yard": CameraSummary(100, 3, {}, "broke off at [12.3 s]"),
        },
        files=["/tmp/" + "long-" * 30 + "events.jsonl"],
        totals=Totals(300, 3, 6, 6),
    )
    text = shown(render_summary(summary))
    lines = text.splitlines()
    assert lines[1].split(maxsplit=3) == ["front", "200", "0", "cross 2, enter 4"]
    assert lines[2].split() == ["yard", "100", "3", "none"]
    assert lines[3] == "yard: broke off at [12.3 s]"
    assert "/tmp/" + "long-" * 30 + "events.jsonl" in text.replace("\n", "")
    assert lines[-1] == "demo: 300 frames in 0:01:03 (4.7 fps), 6 events"
    assert "\x1b" not in text


def test_summary_of_a_single_frame_has_the_singular() -> None:
    summary = Summary(graph="demo", duration_s=16, totals=Totals(1, 0, 1, 1))
    assert shown(render_summary(summary)).rstrip().endswith("demo: 1 frame in 0:00:16 (0.1 fps), 1 event")


def test_summary_counts_events_in_no_sink() -> None:
    cameras = {"front": CameraSummary(events={"camgraph.camera.lost": 2, "enter": 1})}
    summary = Summary(graph="demo", cameras=cameras, totals=Totals(events=3, committed=3))
    assert shown(render_summary(summary)).rstrip().endswith("3 events")
    text = shown(render_summary(replace(summary, untaken=2)))
    assert "3 events, 2 of them in no sink: one with `from: events` takes all" in " ".join(text.split())


def test_summary_counts_removed_cameras_and_updates() -> None:
    summary = Summary(
        graph="demo",
        duration_s=10.0,
        cameras={"front": CameraSummary(200, 1, {"enter": 4})},
        departed=CameraSummary(100, 2, {"cross": 2}),
        totals=Totals(300, 3, 6, 11),
    )
    lines = shown(render_summary(summary)).splitlines()
    assert lines[2].split(maxsplit=3) == ["(removed)", "100", "2", "cross 2"]
    assert lines[-1] == "demo: 300 frames in 0:00:10 (30.0 fps), 6 events (11 with updates and ends)"


SCRIPT = """
import sys
sys.path.insert(0, sys.argv[1])
from rich.console import Console
from camgraph.pipeline.monitoring.run_status import RunStatus
from camgraph.tools.display.live_table import open_display
from test_live_table import Clock, answer
console = Console()
with open_display(console, clock_s := Clock()) as display:
    for n in range(12):
        clock_s.now_s = n / 8
        display.show(RunStatus.from_json(answer()))
console.print("the end")
"""


def run_script(*, terminal: bool) -> bytes:
    command = [sys.executable, "-c", SCRIPT, str(Path(__file__).parent)]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80", "LINES": "24"}
    if not terminal:
        return subprocess.run(command, stdout=subprocess.PIPE, env=environment, timeout=60, check=True).stdout
    ours, theirs = pty.openpty()
    output = b""
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, env=environment) as child:
        os.close(theirs)
        try:
            while piece := os.read(ours, 1 << 16):
                output += piece
        except OSError:  # what a terminal says when its other end is closed
            pass
    os.close(ours)
    assert child.returncode == 0
    return output


def test_table_is_redrawn_in_place_at_four_hertz() -> None:
    output = run_script(terminal=True)
    assert output.count(b"demo  0:01:23") == 6 + 1, "six quarters of a second, and once more on leaving"
    assert b"\x1b[1A" in output
    assert output.endswith(b"the end\r\n")


def test_elsewhere_there_are_no_control_characters() -> None:
    output = run_script(terminal=False).decode()
    assert re.fullmatch(r"[\n -~]*", output)
    assert output.splitlines()[-1] == "the end"
    assert output.count("event  ") == 8


def test_an_events_time_is_short() -> None:
    assert moment("1970-01-01T00:01:01.500Z") == "01:01.500"
    assert moment("1970-01-01T02:01:01.500Z") == "02:01:01.500"
    now = datetime(2026, 3, 1, 12, 30, 5, tzinfo=UTC)
    assert moment("2026-03-01T12:30:05.250Z", now) == now.astimezone().strftime("%H:%M:%S")
    assert moment("00:07.5\x1b") == r"00:07.5\x1b"


def test_an_event_of_another_day_has_its_date() -> None:
    """A recording of last week is no alarm of tonight."""
    at = datetime(2026, 3, 1, 12, 30, 5, tzinfo=UTC)
    told = at.astimezone().strftime("%Y-%m-%d %H:%M:%S")
    assert moment("2026-03-01T12:30:05.250Z", at + timedelta(days=2)) == told
    assert moment("2026-03-01T12:30:05.250Z", at - timedelta(days=2)) == told
    assert moment("2026-03-01T12:30:05.250Z") == told, "today, by the clock of this machine, is another day"


@pytest.mark.parametrize(("state", "in_trouble"), [("done", False), ("stopped", False), ("failed", True)])
def test_a_camera_that_is_over_has_no_age_and_is_no_trouble(state: str, in_trouble: bool) -> None:
    status = RunStatus.from_json({"cameras": {"a": {"state": state, "age_ms": 5000.0}}})
    assert ("5.0 s" in shown(render(status))) is in_trouble
    assert bool(troubles(status)) is in_trouble


def test_small_words() -> None:
    assert [clock(seconds) for seconds in (0, 59.9, 3600, 100_000)] == ["0:00:00", "0:00:59", "1:00:00", "27:46:40"]


def test_a_run_of_files_has_a_bar_and_each_file_its_share() -> None:
    data = answer()
    data["progress"] = {"done": 0.5, "left_s": 65.0}
    data["cameras"]["cam0"]["done"] = 0.25  # type: ignore[index]
    lines = shown(render(RunStatus.from_json(data))).splitlines()
    assert lines[1] == "━" * 40 + "  50 %, about 0:01:05 left"
    assert lines[3].split()[:5] == ["camera", "state", "fps", "frames", "read"]
    assert lines[4].split()[:5] == ["cam0", "running", "3.5", "200", "25%"]
    assert lines[5].split()[4] == "-"
    out = io.StringIO()
    PlainLines(Console(file=out, width=200), lambda: 0.0).show(RunStatus.from_json(data))
    assert "50 %, about 0:01:05 left" in out.getvalue()


@pytest.mark.parametrize("time", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "inf"])
def test_time_that_no_clock_here_shows_stays_as_it_is(time: str) -> None:
    assert moment(time) in (time, time[:10] + " " + time[11:19])
