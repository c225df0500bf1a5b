from __future__ import annotations

import pytest
from click.testing import CliRunner

from camgraph.pipeline.errors import UserError
from camgraph.tools.commands import asset_commands as commands
from camgraph.tools.commands.asset_commands import assets


@pytest.fixture
def catalogue(monkeypatch, clip_asset):
    monkeypatch.setattr(commands, "CATALOGUE", (clip_asset,))
    monkeypatch.setattr(commands, "find", {"clip.avi": clip_asset}.__getitem__)
    monkeypatch.setattr(commands, "asset_path", lambda name: commands.asset_folder() / name)


def run(*arguments):
    return CliRunner().invoke(assets, arguments, catch_exceptions=False)


def test_pull_says_what_it_takes_and_where_it_is(cache, catalogue):
    first, second = run("pull"), run("pull", "clip.avi")
    assert first.exit_code == second.exit_code == 0
    assert first.stdout == f"clip.avi: pulled, {cache / 'clip.avi'}\n"
    assert first.stderr.splitlines()[0] == "taking clips 2.0: 0 of 0 MB"
    assert second.stdout == f"clip.avi: already there, {cache / 'clip.avi'}\n"
    assert second.stderr == ""
    assert "\r" not in first.stderr


def test_list_tells_the_state(cache, catalogue):
    assert run("list").stdout.startswith("clip.avi  missing  CC0  a clip (from clips 2.0)\n")
    run("pull")
    assert "clip.avi  ready" in run("list").stdout
    (cache / "clip.avi").write_bytes(b"other")
    assert "clip.avi  damaged" in run("list").stdout


def test_an_unknown_name_is_the_users_mistake(cache):
    with pytest.raises(UserError, match=r"did you mean movenet-multipose.onnx"):
        run("pull", "movenet-multipose")


def test_progress_keeps_to_a_line_in_a_while(monkeypatch, capsys):
    now = [0.0]
    monkeypatch.setattr(commands.time, "monotonic", lambda: now[0])
    reporter = commands.Reporter()
    for second in range(11):
        now[0] = float(second)
        reporter("it", second * 1_000_000, 10_000_000)
    reporter.done()
    output = capsys.readouterr().err.splitlines()
    assert output == [
        "taking it: 0 of 10 MB",
        "taking it: 5 of 10 MB",
        "taking it: all 10 MB are here, and are being unpacked",
    ]
