from __future__ import annotations

from pathlib import Path

import pytest

from camgraph.pipeline.errors import UserError
from camgraph.stages.rules.library import library
from camgraph.tools.commands.init.bed import need_bed
from camgraph.tools.commands.init.wishes import (
    NIGHT,
    Wishes,
    ZoneFrom,
    between,
    is_private,
    known_action,
    offered,
    times_in_words,
    zone_of_machine,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("always", None),
        ("", None),
        ("At night", ("21:00", "06:00")),
        ("9:05 - 17:30", ("09:05", "17:30")),
        ("00:00 to 24:00", ("00:00", "24:00")),
    ],
)
def test_times(text: str, expected: tuple[str, str] | None) -> None:
    assert between(text) == expected


@pytest.mark.parametrize("text", ["9pm", "21-6", "21:00-21:00", "24:00-06:00", "10:00-24:30", "25:00-06:00"])
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(UserError, match="is no time"):
        between(text)


def test_what_is_offered_needs_no_zone() -> None:
    names = offered()
    assert {"somebody", "fall", "running"} <= set(names)
    assert not {"enters_zone", "crosses_line", "queue"} & set(names)


def test_what_is_offered_is_what_rules_may_use() -> None:
    """One vocabulary: each name is an action of the library, and each of these that needs no zone is offered."""
    actions = library().templates
    of_no_place = {
        name for name, one in actions.items() if all(given.default is not None for given in one.parameters.values())
    }
    assert need_bed(offered()) == ["on_the_floor", "out_of_bed"]
    assert set(offered()) == of_no_place | {"on_the_floor", "out_of_bed"}


def test_falls_and_lying_are_offered_first() -> None:
    assert list(offered())[:2] == ["fall", "lying"]


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("fall", "fall"),
        ("Lying on the floor", "on_the_floor"),
        ("out of bed", "out_of_bed"),
        ("leaves the bed", "out_of_bed"),
        ("hands-up", "hands_up"),
    ],
)
def test_what_to_tell_can_be_said_in_words(words: str, name: str) -> None:
    assert known_action(words) == name


def _etc(folder: Path, linked: str = "", named: str = "") -> Path:
    if linked:
        (folder / "localtime").symlink_to(f"/usr/share/zoneinfo/{linked}")
    else:
        (folder / "localtime").write_bytes(b"TZif: a copy, which has no name")
    if named:
        (folder / "timezone").write_text(f"{named}\n")
    return folder


@pytest.mark.parametrize(
    ("environ", "linked", "named", "zone"),
    [
        ({"TZ": ":Europe/Berlin"}, "Asia/Tokyo", "", "Europe/Berlin"),
        ({"TZ": "Mars/Olympus"}, "Asia/Tokyo", "", "Asia/Tokyo"),
        ({}, "Etc/UTC", "", "UTC"),
        ({}, "", "Europe/Vienna", "Europe/Vienna"),
        ({}, "", "", ""),
    ],
)
def test_the_zone_of_a_machine(tmp_path: Path, environ: dict[str, str], linked: str, named: str, zone: str) -> None:
    assert zone_of_machine(environ, _etc(tmp_path, linked, named)) == zone


@pytest.mark.parametrize(
    ("zone_from", "words"),
    [
        ("asked", "night is 21:00-06:00 UTC."),
        ("machine", "night is 21:00-06:00 UTC, the time zone of this machine. To change it, set `time_zone` in"),
        ("utc", "night is 21:00-06:00 UTC: this machine's clock is set to UTC. If your clocks show another time"),
        ("unknown", "night is 21:00-06:00 UTC: the time zone of this machine is not known. If your clocks show"),
    ],
)
def test_the_night_is_said_with_its_zone(zone_from: ZoneFrom, words: str) -> None:
    assert times_in_words(Wishes((), between=NIGHT, zone_from=zone_from)).startswith(words)


@pytest.mark.parametrize(
    ("host", "private"),
    [
        ("10.0.0.5", True),
        ("127.0.0.1", True),
        ("nas", True),
        ("nas.local", True),
        ("example.org", False),
        ("8.8.8.8", False),
    ],
)
def test_private_hosts(host: str, private: bool) -> None:
    assert is_private(host) is private
