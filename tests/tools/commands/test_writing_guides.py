"""The pages on writing stages: their packages are installed and run, and their other examples run as they stand."""

from __future__ import annotations

import json
import re
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np
import pytest
from camgraph_test_stages.clips import write_grey_clip
from camgraph_test_stages.installing import install

from camgraph.pipeline.messages import Stamp
from camgraph.pipeline.registry import find_stage, stage_names
from camgraph.pipeline.stage import Source, Stage
from camgraph.pipeline.testing import HandContext, feed, opened, reports_of, stamp
from camgraph.stages.messages import Frame, Tracks
from camgraph.tools.commands.new_stage import skeleton_of

DOCS = Path(__file__).parents[3] / "docs"
PAGES = {
    "write_a_stage": ("dark", "stage"),
    "write_a_sink": ("sink_sqlite", "sink"),
    "write_a_source": ("snapshots", "source"),
}
_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE_NAME = re.compile(r"# (\S+\.\w+)\n")


class Block(NamedTuple):
    """An example of a page; `file` is its name, "" if it is none."""

    language: str
    file: str
    text: str


def blocks(page: str) -> Iterator[Block]:
    for language, text in _FENCE.findall((DOCS / f"{page}.md").read_text("utf-8")):
        named = _FILE_NAME.match(text)
        yield Block(language, named[1], text[named.end() :]) if named else Block(language, "", text)


def files_of(page: str, version: int) -> dict[str, str]:
    """The package that the page makes: as it begins (0), or with what the page changes later (-1)."""
    name, kind = PAGES[page]
    files = skeleton_of(name, kind)
    for path in files:
        versions = [block.text for block in blocks(page) if block.file == path]
        if versions:
            files[path] = versions[version]
    return files


def project(page: str, folder: Path, version: int) -> Path:
    for path, text in files_of(page, version).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


@pytest.mark.parametrize("page", PAGES)
def test_a_page_begins_with_the_package_that_the_command_writes(page: str) -> None:
    name, kind = PAGES[page]
    files = skeleton_of(name, kind)
    shown = {}
    for block in blocks(page):
        if block.file:
            shown.setdefault(block.file, block.text)
        elif block.language == "toml":
            assert block.text in files["pyproject.toml"]
    assert {f"camgraph_{name}/{name}.py", f"tests/test_{name}.py", f"{name}.yaml"} == shown.keys()
    assert {path: files[path] for path in shown} == shown


VERSIONS = [
    pytest.param(page, version, id=f"{page}-{'last' if version else 'first'}")
    for page in PAGES
    for version in (0, -1)
    if version == -1 or files_of(page, 0) != files_of(page, -1)
]


@pytest.mark.parametrize(("page", "version"), VERSIONS)
def test_the_tests_of_a_page_pass(page: str, version: int, tmp_path: Path, python: Any) -> None:
    folder = project(page, tmp_path / "project", version)
    own = f"--basetemp={tmp_path / 'pytest'}"  # two sessions of pytest that clean up /tmp at once fail each other
    for arguments in (["pytest", "-p", "no:cacheprovider", "-W", "error", own], ["ruff", "check", "--no-cache", "."]):
        done = python(folder, "-m", *arguments)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def evening(tmp_path: Path) -> Path:
    """Ten frames in a second of daylight, then as many at night."""
    return write_grey_clip(tmp_path / "evening.mp4", [210] * 10 + [25] * 10)


def ran(folder: Path, page: str, tmp_path: Path, python: Any, replaced: dict[str, object]) -> None:
    """Install the package and run its graph, by the commands that the page says."""
    install(folder, tmp_path / "site")
    graph = folder / f"{PAGES[page][0]}.yaml"
    text = graph.read_text()
    for old, other in replaced.items():
        assert old in text
        text = text.replace(old, str(other))
    graph.write_text(text)
    environment = {"PYTHONPATH": str(tmp_path / "site"), "XDG_STATE_HOME": str(tmp_path / "state")}
    for command in (["stages", PAGES[page][0]], ["check", graph.name], ["run", graph.name]):
        done = python(folder, "-m", "camgraph.tools.cli", *command, **environment)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"


def test_the_stage_runs_in_its_graph(tmp_path: Path, evening: Path, python: Any) -> None:
    folder = project("write_a_stage", tmp_path / "project", 0)
    ran(folder, "write_a_stage", tmp_path, python, {"asset:vtest.avi": evening, "below: 150": "below: 100"})
    events = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    assert [event["time_s"] for event in events] == [1 + n / 10 for n in range(10)]


def test_the_stage_with_a_memory_runs_in_the_same_graph(tmp_path: Path, evening: Path, python: Any) -> None:
    folder = project("write_a_stage", tmp_path / "project", -1)
    ran(folder, "write_a_stage", tmp_path, python, {"asset:vtest.avi": evening, "below: 150": "below: 100"})
    events = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    assert [(event["phase"], event["time_s"], event.get("reason")) for event in events] == [
        ("start", 1.5, None),
        ("end", 1.9, "end"),
    ]


def test_the_sink_runs_in_its_graph(tmp_path: Path, evening: Path, two_people: Path, python: Any) -> None:
    folder = project("write_a_sink", tmp_path / "project", 0)
    replaced = {"asset:vtest.avi": evening, "asset:movenet-multipose.onnx": two_people}
    ran(folder, "write_a_sink", tmp_path, python, replaced)
    with closing(sqlite3.connect(folder / "events.db")) as file:
        bodies = [json.loads(body) for (body,) in file.execute("SELECT body FROM events")]
    assert [body["data"]["rule"]["id"] for body in bodies] == ["somebody", "somebody"]


@pytest.fixture
def camera_address(tmp_path: Path) -> Iterator[str]:
    """A camera that offers its picture over HTTP."""
    folder = tmp_path / "served"
    folder.mkdir()
    cv2.imwrite(str(folder / "now.jpg"), np.full((64, 96, 3), 200, np.uint8))
    handler = partial(SimpleHTTPRequestHandler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/now.jpg"
        server.shutdown()


def test_the_source_runs_in_its_graph(tmp_path: Path, camera_address: str, two_people: Path, python: Any) -> None:
    folder = project("write_a_source", tmp_path / "project", 0)
    replaced = {"http://127.0.0.1:8000/now.jpg": camera_address, "asset:movenet-multipose.onnx": two_people}
    ran(folder, "write_a_source", tmp_path, python, replaced)
    bodies = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    assert [body["data"]["rule"]["id"] for body in bodies] == ["somebody", "somebody"]
    assert {body["data"]["frame"]["clock"] for body in bodies} == {"wall"}


def test_a_recording_goes_on_where_it_was(tmp_path: Path) -> None:
    np.save(tmp_path / "film.npy", np.zeros((4, 48, 64, 3), np.uint8))
    film = example_with("Film")
    camera = film.camera_type(url="film.npy", fps=10)

    def read(resume: Stamp | None) -> list[Stamp]:
        source = film(film.settings_type(), "cam", camera, HandContext(tmp_path, tmp_path))
        return [frame.stamp for frame in source.frames(threading.Event(), resume)]

    whole = read(None)
    assert [at.time_ns for at in whole] == [0, 100_000_000, 200_000_000, 300_000_000]
    assert [(at.seq, at.time_ns) for at in read(whole[1])] == [(at.seq, at.time_ns) for at in whole[2:]]


def test_the_source_page_names_all_planning_hooks() -> None:
    page = (DOCS / "write_a_source.md").read_text("utf-8")
    asked = {name for name, member in vars(Source).items() if isinstance(member, classmethod)}
    assert {name for name in asked if f"`{name}`" not in page} == set()


def test_the_table_of_messages_names_all_that_make_them() -> None:
    page = (DOCS / "write_a_stage.md").read_text("utf-8")
    rows = re.findall(r"^\| `(Frame|Tensor|People|Tracks|Labels|Event)` \| .* \| (.*) \|$", page, re.MULTILINE)
    written = {kind: set(re.findall(r"`(\w+)`", makers)) for kind, makers in rows}
    makes = {name: find_stage(name).outputs for name in stage_names("camgraph") if name != "outbox"}
    assert written == {
        kind: {name for name, made in makes.items() if kind in {one.__name__ for one in made}} for kind, _ in rows
    }


def test_page_names_all_attributes_and_planning_hooks() -> None:
    page = (DOCS / "write_a_stage.md").read_text("utf-8")
    hooks = {name for name, member in vars(Stage).items() if isinstance(member, classmethod)}
    asked = hooks | Stage.__annotations__.keys()
    assert {"check", "follow", "counts", "emits"} <= asked
    named = {name for name in asked if re.search(rf"`(self\.)?{name}( = |`)|^    {name}\b", page, re.MULTILINE)}
    assert asked - named == set()


def example_with(name: str) -> Any:
    """What the one example of the pages that defines `name` and is no file makes of it."""
    unnamed = [block.text for page in PAGES for block in blocks(page) if block.language == "python" and not block.file]
    [text] = [text for text in unnamed if re.search(rf"^(def|class) {name}\b", text, re.MULTILINE)]
    defined: dict[str, Any] = {"__name__": "example"}
    exec(compile(text, name, "exec", dont_inherit=True), defined)
    return defined[name]


def test_all_other_examples_are_tried_below() -> None:
    unnamed = [block.text for page in PAGES for block in blocks(page) if block.language == "python" and not block.file]
    tried = ("brightness_of", "BrightPeople", "Heat", "Mask", "Film")
    assert len(unnamed) == len(tried) == len([example_with(name) for name in tried])


def test_brightness_of_planes_and_of_bgr() -> None:
    brightness_of = example_with("brightness_of")
    grey = np.full((48, 64, 3), 128, np.uint8)
    planar = Frame(stamp(), np.full((72, 64), 128, np.uint8), 64, 48, "yuv420p")
    assert brightness_of(Frame.of_bgr(stamp(), grey)) == brightness_of(planar) == 128


def test_a_join_sees_a_frame_and_its_people(tmp_path: Path) -> None:
    rows = {"boxes": np.zeros((2, 4), np.float32), "scores": np.ones(2, np.float32)}
    tracks = Tracks(
        stamp(),
        **rows,
        keypoints=np.zeros((2, 17, 3), np.float32),
        frame_size=(64, 48),
        classes=np.zeros(2, np.int64),
        ids=np.arange(2),
    )
    frame = Frame.of_bgr(stamp(), np.full((48, 64, 3), 200, np.uint8))
    with opened(example_with("BrightPeople"), {}, folder=tmp_path) as stage:
        assert feed(stage, [{"frames": frame, "tracks": tracks}]) == []
        assert reports_of(stage).counts == {("bright", "cam"): 2}


def test_a_message_of_ones_own_comes_apart_and_together() -> None:
    heat = example_with("Heat")(stamp(3), "roof", np.eye(3, dtype=np.float32))
    again = type(heat).build(heat.stamp, heat.fields(), heat.arrays())
    assert (again.stamp, again.sensor) == (heat.stamp, "roof")
    assert np.array_equal(again.degrees, heat.degrees)


def test_a_setting_that_only_the_disk_can_judge(tmp_path: Path) -> None:
    mask = example_with("Mask")
    settings = mask.settings_type(mask="door.png")
    assert list(mask.check(settings, tmp_path)) == [(("mask",), "there is no file door.png")]
    (tmp_path / "door.png").write_bytes(b"")
    assert list(mask.check(settings, tmp_path)) == []
