from __future__ import annotations

import pytest

from pipeline.errors import UserError
from stages.rulebook.library import library
from tools.commands.init.wishes import SOMEBODY, USUAL, between, is_private, offered, zone_of_machine


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
    assert {SOMEBODY, "fall", "running"} <= set(names)
    assert not {"enters_zone", "crosses_line", "queue"} & set(names)
    assert set(USUAL) - {SOMEBODY} <= set(library().templates)


def test_the_zone_of_this_machine() -> None:
    assert zone_of_machine({"TZ": ":Europe/Berlin"}) == "Europe/Berlin"
    assert zone_of_machine({"TZ": "Mars/Olympus"}) == zone_of_machine({})


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
