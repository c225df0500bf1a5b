"""Viewers of a camera get its people and the answers of the rules; a viewer that does not read delays nobody."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from camgraph.pipeline.system.side_link import Link, follow
from camgraph.pipeline.testing import opened, stamp
from camgraph.stages import testing
from camgraph.stages.messages import Tracks
from camgraph.stages.rules import people_tap
from camgraph.stages.rules.rules import Rules

SETTINGS: dict[str, Any] = {
    "zones": {"bed": [[0.0, 0.0], [0.5, 0.0], [0.5, 1.0], [0.0, 1.0]]},
    "lines": {"door": {"from": [0.5, 0.0], "to": [0.5, 1.0]}},
    "rules": [{"id": "r", "action": "in_bed", "when": "in bed", "hold": "0.2s"}],
}


def tracks(seq: int, x: float = 100.0, camera: str = "cam") -> Tracks:
    """One person, 40 wide and 100 tall, whose feet are at x, in a frame of 400 x 200."""
    at = stamp(seq, camera, fps=10)._replace(pts=900 * seq, time_base=(1, 9000))
    joints = np.full((17, 3), (x, 60.0, 0.9))
    return replace(testing.tracks({7: (x - 20, 50, x + 20, 150)}, frame_size=(400, 200), keypoints=joints), stamp=at)


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Rules]:
    with patch.object(people_tap, "_LOOK_S", 0.0), opened(Rules, SETTINGS, folder=tmp_path) as rules:
        yield rules


@pytest.fixture
def look(tmp_path: Path) -> Iterator[Callable[[str], Link]]:
    made: list[Link] = []

    def begin(camera: str) -> Link:
        [path] = tmp_path.rglob(f"*{people_tap.SUFFIX}")
        made.append(follow(path, camera))
        return made[-1]

    yield begin
    for one in made:
        one.close()


def lines(link: Link) -> list[dict[str, Any]]:
    """All that has come."""
    found: list[bytes] = []
    while come := list(link.receive()):
        found += come
    return [json.loads(line) for line in found]


def test_it_sends_the_people_of_one_camera_and_fired_rules(stage: Rules, look: Any) -> None:
    looking = look("cam")
    for seq in range(3):
        list(stage.process([tracks(seq), tracks(seq, camera="other")]))
    shapes, *frames = lines(looking)
    assert shapes["zones"] == {"bed": [[0, 0], [0.5, 0], [0.5, 1], [0, 1]]}
    assert (shapes["lines"], shapes["size"]) == ({"door": [[0.5, 0], [0.5, 1]]}, [400, 200])
    assert [frame["at"] for frame in frames] == [0.0, 0.1, 0.2]
    assert frames[0]["people"][0]["box"] == [0.2, 0.25, 0.3, 0.75]
    assert frames[0]["people"][0]["joints"][:3] == [0.25, 0.3, 0.9]
    assert [(one["action"], one["ids"], one["shapes"]) for one in frames[2]["now"]] == [("in_bed", [7], ["bed"])]
    list(stage.process([tracks(seq, x=350.0) for seq in range(3, 9)]))
    assert [bool(frame["now"]) for frame in lines(looking)][-1] is False


def test_joints_are_known_as_far_as_any_rule_asks(stage: Rules, look: Any) -> None:
    lenient = {"id": "s", "when": "age > 9s", "min_confidence": 0.2}
    other = {**lenient, "id": "t", "cameras": ["other"], "min_confidence": 0.1}
    floors = []
    for rules in (SETTINGS["rules"], [*SETTINGS["rules"], lenient, other], [{**lenient, "min_confidence": 0.5}]):
        stage.change_settings(stage.settings.model_validate(SETTINGS | {"rules": rules}))
        looking = look("cam")
        list(stage.process([tracks(len(floors))]))
        floors.append(lines(looking)[0]["floor"])
    assert floors == [0.3, 0.2, 0.5]


def test_new_rules_come_with_their_shapes(stage: Rules, look: Any) -> None:
    looking = look("cam")
    list(stage.process([tracks(0)]))
    changed = stage.settings.model_validate(SETTINGS | {"zones": {"bed": [[0.5, 0.0], [1.0, 0.0], [1.0, 1.0]]}})
    stage.change_settings(changed)
    list(stage.process([tracks(1)]))
    *_, shapes, _ = lines(looking)
    assert shapes["zones"]["bed"] == [[0.5, 0], [1, 0], [1, 1]]


@pytest.mark.slow
def test_who_does_not_read_or_says_too_much_is_parted_with(stage: Rules, look: Any) -> None:
    silent, loud, gone, good = look("cam"), look("x" * 5000), look("cam"), look("cam")
    gone.close()
    got = 0
    stage._tap._channel.most_waiting = 20_000
    for seq in range(3000):
        assert not list(stage.process([tracks(seq, x=350.0)]))
        got += len(lines(good)) if seq % 5 == 0 else 0
    assert got > 2900
    assert len(stage._tap._followers) == 1, (silent, loud)


def test_who_names_no_camera_is_told_so(stage: Rules, look: Any) -> None:
    nameless = look({"camera": 1})
    list(stage.process([tracks(0)]))
    assert list(nameless.receive()) == [{"error": "expected the name of a camera"}]


def test_positions_that_are_no_numbers_are_null(stage: Rules, look: Any) -> None:
    looking = look("cam")
    broken = tracks(0)
    broken.keypoints.flags.writeable = True
    broken.keypoints[0, 0] = np.nan
    list(stage.process([broken]))
    _, frame = lines(looking)
    assert frame["people"][0]["joints"][:4] == [None, None, None, 0.25]


def test_nobody_can_look_once_it_is_closed(tmp_path: Path) -> None:
    with opened(Rules, SETTINGS, folder=tmp_path):
        assert len(list(tmp_path.rglob(f"*{people_tap.SUFFIX}"))) == 1
    assert list(tmp_path.rglob(f"*{people_tap.SUFFIX}")) == []
