"""Zones and lines are drawn into the files of the rules, which keep their comments, and the run goes on with them."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from camgraph_test_stages.described import assert_as_described
from camgraph_test_stages.services import Served, serving_run, with_tokens, write_light
from camgraph_test_stages.waiting import until

from camgraph.pipeline.errors import CamgraphError, EnvironmentProblem, UserError
from camgraph.tools.service.run.run_link import RunLink
from camgraph.tools.service.shapes.shape_calls import ShapeChange, ShapeFiles

RULES = """\
# The night shift's rules.
version: 1
zones:
  bed: [[0, 0], [0.5, 0], [0.5, 1], [0, 1]]   # by the window
  floor:
    hall: [[0, 0], [1, 0], [1, 1]]
rules:
  - {id: in_bed, when: in bed}  # all night
"""
GRAPH = """
version: 1
name: drawn
camera_defaults: {{loop: true, realtime: true, url: cam.mp4}}
cameras:
  hall: {{}}
  yard: {{}}
stages:
{people}
  actions: {{use: rules, from: tracks, with: {{file: rules.yaml}}}}
  others:
    use: rules
    from: tracks
    with:
      rules: [{{id: seen, when: score > 0.3}}]   # everybody
  page: {{use: serve, from: events, with: {{address: "127.0.0.1:{port}"{more}}}}}
"""
WITHIN_S = 60.0
SQUARE = [[0.1, 0.1], [0.9, 0.1], [0.9, 0.9]]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("z")
    write_light(folder)
    (folder / "rules.yaml").write_text(RULES)
    (folder / "rules.yaml").chmod(0o640)
    with serving_run(folder, GRAPH, more=with_tokens()) as run:
        yield run


@pytest.fixture(autouse=True)
def as_before(served: Served) -> Iterator[None]:
    graph = (served.folder / "graph.yaml").read_text()
    yield
    (served.folder / "rules.yaml").write_text(RULES)
    (served.folder / "graph.yaml").write_text(graph)


def shapes(served: Served, stage: str = "actions", camera: str = "hall") -> dict[str, Any]:
    stages = served.get(f"/api/cameras/{camera}/shapes", "viewer").json()["stages"]
    return next(one for one in stages if one["stage"] == stage)


def send(served: Served, *, camera: str = "hall", **body: Any) -> httpx.Response:
    whole = {
        "stage": "actions",
        "kind": "zone",
        "version": shapes(served, body.get("stage", "actions"))["version"],
        **body,
    }
    return served.call("POST", f"/api/cameras/{camera}/shapes", "admin", json=whole)


def shown_zone(served: Served, name: str) -> Any:
    """One that the run judges by now."""
    headers = {"Authorization": "Bearer the-token-of-the-viewer"}
    url = f"http://127.0.0.1:{served.port}/api/cameras/hall/people"
    with httpx.stream("GET", url, headers=headers, timeout=60) as answer:
        for line in answer.iter_lines():
            if line.startswith("data:") and name in json.loads(line.removeprefix("data: ")).get("zones", {}):
                return json.loads(line.removeprefix("data: "))["zones"][name]
    return None


def test_the_list_has_what_the_files_have(served: Served) -> None:
    found = shapes(served)
    assert found["file"] == "rules.yaml"
    assert found["zone"]["bed"] == {"for": "all", "points": [[0, 0], [0.5, 0], [0.5, 1], [0, 1]]}
    assert found["zone"]["floor"]["for"] == "camera"
    assert "floor" not in shapes(served, camera="yard")["zone"]
    assert shapes(served, "others") == {"stage": "others", "file": "graph.yaml", "zone": {}, "line": {},
                                        "version": shapes(served, "others")["version"]}  # fmt: skip


def test_a_change_is_tried_first_and_then_saved_and_judged_by(served: Served) -> None:
    tried = send(served, name="floor", points=SQUARE).json()
    assert "+    hall: [[0.1, 0.1], [0.9, 0.1], [0.9, 0.9]]" in tried["diff"]
    assert (tried["saved"], (served.folder / "rules.yaml").read_text()) == (False, RULES)
    answer = send(served, name="floor", points=SQUARE, save=True)
    assert_as_described("POST", "/api/cameras/{name}/shapes", answer)
    saved = answer.json()
    text = (served.folder / "rules.yaml").read_text()
    assert text == RULES.replace("[[0, 0], [1, 0], [1, 1]]", "[[0.1, 0.1], [0.9, 0.1], [0.9, 0.9]]")
    assert (served.folder / saved["backup"]).read_text() == RULES
    assert (served.folder / "rules.yaml").stat().st_mode & 0o777 == 0o640
    assert shown_zone(served, "floor") == SQUARE


def test_a_new_zone_is_of_its_camera_and_a_line_has_two_ends(served: Served) -> None:
    assert send(served, name="bath", points=SQUARE, camera="yard", save=True).json()["saved"]
    assert send(served, name="door", kind="line", points=SQUARE[:2], save=True, **{"for": "all"}).json()["saved"]
    text = (served.folder / "rules.yaml").read_text()
    assert "  bath: {yard: [[0.1, 0.1], [0.9, 0.1], [0.9, 0.9]]}\n" in text
    assert text.endswith("lines: {door: {from: [0.1, 0.1], to: [0.9, 0.1]}}\n")
    assert set(shapes(served)["line"]) == {"door"}
    assert "bath" not in shapes(served)["zone"]


def test_rules_in_the_graph_file_are_drawn_there(served: Served) -> None:
    answer = send(served, stage="others", name="here", points=SQUARE, save=True)
    assert answer.status_code == 200, answer.text
    text = (served.folder / "graph.yaml").read_text()
    assert "      rules: [{id: seen, when: score > 0.3}]   # everybody\n      zones: {here: {hall: " in text
    assert shown_zone(served, "here") == SQUARE


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ({"name": "bed", "points": None}, "bed"),
        ({"name": "floor", "points": SQUARE[:2]}, "from 3 to 100 corners"),
        ({"name": "floor", "points": [[0, 0], [1, 1], [1, 0], [0, 1]]}, "cross"),
        ({"name": "in", "points": SQUARE}, "is a word of the language"),
        ({"name": "floor", "points": [[0, 0], [2, 0], [1, 1]]}, "fractions"),
        ({"name": "floor", "points": [[0, 0], ["x", 0], [1, 1]]}, "fractions"),
        ({"name": "x: y\n- z", "points": SQUARE}, "expected a name"),
        ({"name": "nothing", "points": None}, "has no zones.nothing"),
        ({"name": "floor", "points": SQUARE, "version": "old"}, "has changed meanwhile"),
        ({"name": "floor", "points": SQUARE, "kind": "circle"}, "expected {"),
        ({"name": "door", "kind": "line", "points": SQUARE}, "2 ends"),
    ],
)
def test_what_is_wrong_is_refused_and_changes_nothing(served: Served, body: dict[str, Any], why: str) -> None:
    answer = send(served, save=True, **body)
    assert answer.status_code == 400
    assert why in answer.json()["error"]
    assert (served.folder / "rules.yaml").read_text() == RULES


def test_what_the_run_refuses_leaves_the_file_as_it_was(served: Served) -> None:
    graph = (served.folder / "graph.yaml").read_text()
    (served.folder / "graph.yaml").write_text(graph.replace("light.onnx", "absent.onnx"))
    backups = len(list(served.folder.glob("*.backup")))
    answer = send(served, name="floor", points=SQUARE, save=True)
    assert answer.status_code == 400
    assert "the file is as it was" in answer.json()["error"]
    assert (served.folder / "rules.yaml").read_text() == RULES
    assert len(list(served.folder.glob("*.backup"))) == backups


def test_zones_of_a_camera_that_was_removed_block_nothing(served: Served) -> None:
    """Its zones stay in the rules, for the day when it comes back."""

    def add(name: str) -> httpx.Response:
        return served.call("POST", "/api/cameras", "admin", json={"name": name, "settings": {}})

    def here() -> set[str]:
        return {one["name"] for one in served.get("/api/cameras", "viewer").json()["cameras"]}

    assert add("gate").status_code == 202
    until(lambda: "gate" in here(), WITHIN_S, every_s=0.2)
    drawn = send(served, camera="gate", kind="zone", name="path", points=SQUARE, save=True, **{"for": "camera"})
    assert drawn.status_code == 200, drawn.text
    assert served.call("DELETE", "/api/cameras/gate", "admin").status_code == 202
    until(lambda: "gate" not in here(), WITHIN_S, every_s=0.2)
    drawn = send(served, kind="zone", name="desk", points=SQUARE, save=True)
    assert drawn.status_code == 200, drawn.text
    added = add("barn")
    assert added.status_code == 202, added.text
    until(lambda: "barn" in here(), WITHIN_S, every_s=0.2)
    drawn = send(served, camera="barn", kind="zone", name="stall", points=SQUARE, save=True, **{"for": "camera"})
    assert drawn.status_code == 200, drawn.text
    assert served.call("DELETE", "/api/cameras/barn", "admin").status_code == 202
    until(lambda: "barn" not in here(), WITHIN_S, every_s=0.2)


def test_a_graph_that_cannot_be_read_leaves_the_file_as_it_was(served: Served) -> None:
    graph = served.folder / "graph.yaml"
    version = shapes(served)["version"]
    graph.write_bytes(b"# \xff\n" + graph.read_bytes())
    body = {"stage": "actions", "kind": "zone", "name": "floor", "points": SQUARE, "version": version, "save": True}
    answer = served.call("POST", "/api/cameras/hall/shapes", "admin", json=body)
    assert answer.status_code == 400
    assert "graph.yaml cannot be read" in answer.json()["error"]
    assert answer.json()["id"] == "reload-refused"
    assert (served.folder / "rules.yaml").read_text() == RULES


def test_a_broken_file_hides_its_own_shapes_alone(served: Served) -> None:
    (served.folder / "rules.yaml").write_text("zones: {bed: [[0")
    answer = served.get("/api/cameras/hall/shapes", "viewer")
    assert_as_described("GET", "/api/cameras/{name}/shapes", answer)
    assert [one["stage"] for one in answer.json()["stages"]] == ["others"]
    [problem] = answer.json()["problems"]
    assert problem.startswith("actions: rules.yaml")


def test_only_an_admin_draws(served: Served) -> None:
    assert served.call("POST", "/api/cameras/hall/shapes", "operator", json={}).status_code == 403


def test_it_is_a_path_of_the_graph_and_never_of_a_caller(served: Served) -> None:
    for stage in ("../../etc/passwd", "capture", "", None, 7):
        body = {"stage": stage, "kind": "zone", "name": "a", "points": SQUARE, "version": "x"}
        answer = served.call("POST", "/api/cameras/hall/shapes", "admin", json=body)
        why = "no stage with rules" if isinstance(stage, str) else "expected {"
        assert (answer.status_code, why in answer.json()["error"]) == (400, True)


def test_backups_do_not_grow_without_end(served: Served, tmp_path: Path) -> None:
    for number in range(14):
        (served.folder / f"rules.yaml.2020010{number:02}T000000Z.backup").touch()
    assert send(served, name="floor", points=SQUARE, save=True).json()["saved"]
    assert len(list(served.folder.glob("rules.yaml.*.backup"))) == 10


def test_a_file_is_read_once_until_it_is_another_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def load(text: str) -> Any:
        read.append(text)
        return loaded(text)

    loaded = yaml.safe_load
    monkeypatch.setattr("camgraph.tools.service.shapes.shape_calls.yaml.safe_load", load)
    path = tmp_path / "rules.yaml"
    path.write_text(RULES)
    files = ShapeFiles(RunLink("none"), tmp_path, {"actions": "rules.yaml"})
    lists = [files.listed(camera) for camera in ("hall", "yard", "hall")]
    assert [len(one["stages"][0]["zone"]) for one in lists] == [2, 1, 2]
    assert len(read) == 1
    state = path.stat()
    path.write_text(RULES.replace("bed", "cot"))  # as long as before
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert files.listed("hall")["stages"][0]["zone"].keys() == {"cot", "floor"}
    (tmp_path / "new").write_text("{")
    (tmp_path / "new").replace(path)
    assert files.listed("hall")["problems"] == ["actions: rules.yaml is no YAML now"]
    path.write_text(RULES)
    assert files.listed("hall")["stages"][0]["zone"].keys() == {"bed", "floor"}


class Refusing(RunLink):
    """A run that does not take a change."""

    def __init__(self, folder: Path, problem: Exception) -> None:
        super().__init__("none")
        self._file, self._problem = folder / "graph.yaml", problem

    def graph_file(self) -> str:
        return str(self._file)

    def ask(self, op: str, **values: Any) -> Mapping[str, Any]:
        raise self._problem


def change_of(tmp_path: Path, problem: Exception) -> str:
    """Save a zone in a run that answers so; what is said."""
    for name in ("rules.yaml", "graph.yaml"):
        (tmp_path / name).write_text(RULES)
    files = ShapeFiles(Refusing(tmp_path, problem), tmp_path, {"actions": "rules.yaml"})
    [listed] = files.listed("hall")["stages"]
    wanted = ShapeChange.model_validate(
        {"stage": "actions", "kind": "zone", "name": "bed", "points": SQUARE, "for": "camera", "save": True}
        | {"version": listed["version"]}
    )
    with pytest.raises(CamgraphError) as caught:
        files.change("hall", wanted)
    return str(caught.value)


def test_what_a_silent_run_may_still_take_over_stays_saved(tmp_path: Path) -> None:
    silent = EnvironmentProblem("the run does not answer within 40 s", error_id="run-silent")
    assert "rules.yaml is saved (rules.yaml.20" in change_of(tmp_path, silent)
    assert (tmp_path / "rules.yaml").read_text() != RULES
    [backup] = tmp_path.glob("rules.yaml.*.backup")
    assert backup.read_text() == RULES


def test_a_file_that_cannot_be_put_back_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = UserError("no camera is called hal", error_id="reload-refused")
    assert "and the file is as it was" in change_of(tmp_path, refused)
    assert (tmp_path / "rules.yaml").read_text() == RULES
    assert not list(tmp_path.glob("rules.yaml.*.backup"))

    def fails(self: Path, target: Path) -> Path:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(Path, "replace", fails)
    monkeypatch.setattr(
        "camgraph.tools.service.shapes.shape_calls.write_whole", lambda path, data, mode: path.write_bytes(data)
    )
    assert "rules.yaml could not be put back (Read-only file system): rules.yaml.20" in change_of(tmp_path, refused)
