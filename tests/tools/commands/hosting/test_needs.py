"""What a graph needs of the machine, and whether a user may have it."""

from __future__ import annotations

from pathlib import Path

import pytest

from camgraph.pipeline.errors import UserError
from camgraph.pipeline.graph import load_graph
from camgraph.tools.commands.hosting import needs
from camgraph.tools.commands.hosting.needs import Account

GRAPH = """
version: 1
name: writes
cameras: {{a: {{frames: 3}}}}
stages:
  src: {{use: count_source}}
  stands: {{use: stands, from: src}}
  emit: {{use: emit, from: src}}
  stdout: {{use: sink_jsonl, from: emit, with: {{path: "-"}}}}
  nothing: {{use: sink_jsonl, from: emit, with: {{path: /dev/null}}}}
  log: {{use: sink_jsonl, from: emit, with: {{path: {folder}/log/events.jsonl}}}}
  table: {{use: sink_csv, from: emit, with: {{path: tables/events.csv}}}}
  page: {{use: serve, from: emit, with: {{history: past/events.sqlite}}}}
  clips: {{use: sink_footage, from: emit, with: {{path: kept}}}}
  tracks: {{use: sink_tracks, from: stands, with: {{path: "{folder}/tracks/{{camera}}/x.txt"}}}}
  heat: {{use: sink_heatmap, from: stands, with: {{path: "{folder}/heat/x.json", picture: "pictures/{{camera}}.png"}}}}
"""


def test_the_folders_that_stages_write(tmp_path: Path) -> None:
    for name in ("log", "tracks", "heat"):
        (tmp_path / name).mkdir()
    (tmp_path / "g.yaml").write_text(GRAPH.format(folder=tmp_path))
    found = needs.written_folders(load_graph(tmp_path / "g.yaml"))
    assert [str(folder.relative_to(tmp_path)) for folder in found] == [
        "heat",
        "kept",
        "log",
        "past",
        "pictures",
        "tables",
        "tracks",
    ]


@pytest.fixture
def open_folder(tmp_path: Path) -> Path:
    """A folder to which the test's user has all rights, and which others may enter."""
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o755)
    return folder


class Elsewhere(Account):
    """A user for whom only what is below a folder counts, since the folders above it may be closed to others."""

    below = Path("/")

    def may(self, path: Path, mode: int) -> bool:
        return not path.is_relative_to(self.below) or super().may(path, mode)


def test_the_first_barrier_is_named(open_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Elsewhere, "below", open_folder)
    owner, group = open_folder.stat().st_uid, open_folder.stat().st_gid
    stranger = Elsewhere("stranger", 60_001, frozenset({60_001}))
    member = Elsewhere("member", 60_001, frozenset({group}))
    (open_folder / "closed").mkdir(0o700)
    file = open_folder / "closed" / "graph.yaml"
    file.write_text("x")
    file.chmod(0o640)
    assert stranger.keeps_out(file, 4) == open_folder / "closed"
    (open_folder / "closed").chmod(0o711)
    assert stranger.keeps_out(file, 4) == file
    assert member.keeps_out(file, 4) is None
    assert member.keeps_out(file, 2) == file
    assert Elsewhere("owner", owner).keeps_out(file, 6) is None
    assert Elsewhere("not yet there").keeps_out(file, 4) == file
    monkeypatch.setattr(needs, "_PRIVATE", ())
    with pytest.raises(
        UserError, match=r"the user stranger may not use .*, because of the permissions of .*graph\.yaml"
    ):
        needs.require_usable(file, stranger)


def test_a_graph_in_tmp_would_not_be_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(needs, "_PRIVATE", (tmp_path,))
    with pytest.raises(UserError, match="a service has a /tmp of its own"):
        needs.require_usable(tmp_path / "g.yaml", Account("root", 0))


def test_commands_give_the_user_its_folders(open_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Elsewhere, "below", open_folder)
    stranger = Elsewhere("cam", 60_001, frozenset({60_001}))
    (open_folder / "shared").mkdir()
    (open_folder / "shared").chmod(0o777)
    (open_folder / "my clips").mkdir(0o755)
    folders = [open_folder / name for name in ("shared", "my clips", "new")]
    assert list(needs.next_to_do(folders, stranger)) == [
        f"chown cam '{open_folder}/my clips'   # it must be able to write there",
        f"install -d -o cam {open_folder}/new",
    ]
