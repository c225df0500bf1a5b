"""Files with what was found."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from camgraph.pipeline.errors import UserError
from camgraph.tools.cli import main
from camgraph.tools.models.saved import check_places, save


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    file = tmp_path / "found.json"
    save(file, "one")
    save(file, "two")
    assert (file.read_text(), list(tmp_path.iterdir())) == ("two", [file])


def test_what_was_there_stays_where_it_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "found.json"
    file.write_text("before")

    def full(self: Path, target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(UserError, match=r"found\.json: cannot be written: No space left on device"):
        save(file, "after")
    assert (file.read_text(), list(tmp_path.iterdir())) == ("before", [file])


def test_a_stream_that_takes_nothing_is_named() -> None:
    with pytest.raises(UserError, match=r"^/dev/full: cannot be written: No space left on device$"):
        save(Path("/dev/full"), "found")


def test_a_link_and_a_pipe_stay_what_they_are(tmp_path: Path) -> None:
    (tmp_path / "real.json").write_text("")
    (tmp_path / "link.json").symlink_to("real.json")
    save(tmp_path / "link.json", "found")
    assert (tmp_path / "link.json").is_symlink()
    assert (tmp_path / "real.json").read_text() == "found"
    read, write = os.pipe()
    stream = Path(f"/proc/self/fd/{write}")
    check_places([stream, None])
    save(stream, "found")
    assert os.read(read, 100) == b"found"
    os.close(read)
    os.close(write)


@pytest.mark.parametrize(
    "command",
    [
        ["bench", "--seconds", 1, "--json"],
        ["profile", "--json"],
        ["profile", "--trace"],
        ["compare", "tiny.onnx", "--frames", ".", "--json"],
    ],
)
def test_unwritable_place_is_refused_first(
    tiny_model: Path, monkeypatch: pytest.MonkeyPatch, command: list[object]
) -> None:
    monkeypatch.chdir(tiny_model.parent)
    result = CliRunner().invoke(main, ["model", *map(str, command), "nowhere/found", "tiny.onnx"])
    assert result.exit_code == 2
    assert result.output == "nowhere/found: cannot be written: No such file or directory\n"
