"""False alarms per hour: what counts as one, and a minute of a room."""

from __future__ import annotations

from collections import Counter

from camgraph.stages.rules.library import library
from camgraph.tools.lab.benchmarks.false_alarms import DONE, ROOMS, Watch, asked, table, watched


def test_what_people_really_do_is_no_alarm() -> None:
    fired = Counter({"fall": 3, "sitting": 9, "waving": 1})
    lines = table([Watch("office", 5.0, 2.0, fired), Watch("shop", 5.0, 2.0, Counter())]).splitlines()
    assert "| `fall` | 1.5 | 0 | 1.9 |" in lines
    assert "| `waving` | 0.5 | 0 | 1.2 |" in lines
    assert not any("`sitting` |" in line for line in lines)
    assert lines[-1].startswith("In 4 hours: 2 of the office at 5/s, 2 of the shop at 5/s. None at all: `lying`")
    assert "at most 0.75 an hour, or one in 1 hours" in lines[-1]
    assert "503 hours without any" in lines[-1]


def test_all_that_is_done_is_an_action() -> None:
    assert ROOMS.keys() == DONE.keys()
    assert frozenset().union(*DONE.values()) <= library().templates.keys()
    assert "fall" in asked()
    assert "loitering" not in asked()


def test_a_room_is_watched_hour_by_hour() -> None:
    told: list[str] = []
    seen = watched("shop", 5.0, 0.02, told=told.append)
    assert seen.hours == 0.02
    assert not seen.fired.keys() & {"fall", "lying", "hands_up"}
    assert told[-1].startswith("shop at 5/s")
