"""Names of videos and tracks: templates, numbers, and what was left without one."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

import pytest

from camgraph.pipeline.errors import UserError
from camgraph.pipeline.system.names import ascii_form
from camgraph.stages.sinks.writing.output_names import (
    GivenNames,
    OutputNames,
    free_names,
    numbered,
    safe_name,
    what_is_wrong,
)

AT = datetime(2026, 11, 22, 10, 44, 39, tzinfo=UTC)


def names(template: str, folder: Path, run: str = "lobby") -> OutputNames:
    return OutputNames(template, run, folder)


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        ("videos/{camera}.mp4", ""),
        ("{run}/{camera}/{date}_{time}.mp4", ""),
        ("{camera}/{camera}.mp4", ""),
        ("video.mp4", "without {camera} all cameras would write one file: expected a path such as videos/{camera}.mp4"),
        ("{camera}/{dat}.mp4", "there is no {dat}: expected {camera}, {run}, {date}, {time}; did you mean `date`?"),
        ("{camera}/{}.mp4", "there is no {}: expected {camera}, {run}, {date}, {time}"),
        ("{camera}}.mp4", "braces stand around a placeholder only: expected a path such as videos/{camera}.mp4"),
    ],
)
def test_templates(template: str, problem: str) -> None:
    assert what_is_wrong(template, "videos/{camera}.mp4") == problem


def test_a_file_of_the_only_camera_needs_no_camera_in_its_name() -> None:
    assert what_is_wrong("tracks.txt", "x", names_camera=False) == ""


def test_a_template_becomes_a_path(tmp_path: Path) -> None:
    template = "a/{run}/{camera}-{date}T{time}.mp4"
    assert names(template, tmp_path).first("front", AT) == tmp_path / "a/lobby/front-2026-11-22T10-44-39.mp4"
    assert (tmp_path / "a").is_dir()
    assert names(f"{tmp_path}/{{camera}}.mp4", Path()).first("x/y", AT).parent == tmp_path
    assert names("{camera}.mp4", tmp_path).folder() == tmp_path
    with pytest.raises(UserError, match="no such folder"):
        names("/no/such/{camera}.mp4", tmp_path).folder()


def test_camera_names_become_file_names() -> None:
    assert safe_name("front-door.2") == "front-door.2"
    made = [safe_name(name) for name in ("../etc/passwd", "a/b", "a_b", "a:b", "Tür", "", "x" * 300)]
    assert len(set(made)) == len(made)
    for name in made:
        assert name
        assert "/" not in name
        assert not name.startswith(".")


def test_camera_names_become_ascii(tmp_path: Path) -> None:
    made = [names("{camera}.mp4", tmp_path).first(name, AT).name for name in ("Süd", "Su\u0308d", "Sud", "вход")]
    assert made == [f"{ascii_form('Süd')}.mp4", f"{ascii_form('Süd')}.mp4", "Sud.mp4", f"{ascii_form('вход')}.mp4"]


def test_free_names_stand_behind_all_that_are_taken(tmp_path: Path) -> None:
    first = tmp_path / "front.mp4"
    assert list(islice(free_names(first), 2)) == [first, numbered(first, 2)]
    for taken in ("front.mp4", "front.3.mp4.part", "front.x.mp4", "front.9.mp4.bak", "other.7.mp4"):
        (tmp_path / taken).touch()
    assert next(free_names(first)) == tmp_path / "front.4.mp4"


def test_given_names_do_not_come_again(tmp_path: Path) -> None:
    """Not to another camera either, also in a process that was told of them; at another date they count anew."""
    given, first, other = GivenNames(), tmp_path / "cam.mp4", tmp_path / "cam.2.mp4"
    found = list(islice(given.following("cam", first), 2))
    assert found == [first, other]
    given.note("cam", first, other)
    given = GivenNames.restored(json.loads(json.dumps(given.highest)))
    assert next(given.following("cam", first)) == tmp_path / "cam.3.mp4"
    assert next(given.following("cam.2", other)) == tmp_path / "cam.2.2.mp4"
    assert next(given.following("cam", first, {tmp_path / "cam.3.mp4"})) == tmp_path / "cam.4.mp4"
    given.take_back("cam")
    assert next(given.following("cam", first)) == other
    tomorrow = tmp_path / "2026-11-23" / "cam.mp4"
    given.note("cam", tomorrow, next(given.following("cam", tomorrow)))
    assert given.highest == {"cam": (str(tomorrow), 1)}


def test_unfinished_matches_template_and_cameras(tmp_path: Path) -> None:
    folder = tmp_path / "v" / "front" / "2026-11-22"
    folder.mkdir(parents=True)
    for name in ("10-44-39.mp4.part", "10-44-39.2.mp4.part", "10-44-39.mp4", "at-noon.mp4.part"):
        (folder / name).touch()
    (tmp_path / "v" / "back" / "2026-11-22").mkdir(parents=True)
    (tmp_path / "v" / "back" / "2026-11-22" / "10-44-39.mp4.part").touch()
    found = set(names("v/{camera}/{date}/{time}.mp4", tmp_path).unfinished(["front", "side"]))
    assert found == {("front", folder / "10-44-39.mp4"), ("front", folder / "10-44-39.2.mp4")}
