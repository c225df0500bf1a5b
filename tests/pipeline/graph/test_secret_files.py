"""Where secrets lie: `${secret:NAME}` and `${file:PATH}`, and files that others can read."""

from __future__ import annotations

from pathlib import Path

import pytest

from camgraph.pipeline.errors import GraphError
from camgraph.pipeline.graph import load_plan
from camgraph.pipeline.graph.secret_files import named_secret, open_to_others, secret_file
from camgraph.pipeline.graph.variables import substitute


def test_a_named_secret_comes_from_the_first_place_that_has_it(tmp_path: Path) -> None:
    given, mounted = tmp_path / "given", tmp_path / "mounted"
    given.mkdir()
    mounted.mkdir()
    environ = {"CREDENTIALS_DIRECTORY": str(given), "door": "third"}
    assert named_secret("door", environ, mounted).value == "third"
    (mounted / "door").write_text("second\r\n")
    assert named_secret("door", environ, mounted).value == "second"
    (given / "door").write_text("first\n\n")
    assert named_secret("door", environ, mounted).value == "first\n"
    missing = named_secret("yard", environ, mounted).problem
    assert str(given / "yard") in missing
    assert "variable yard" in missing


def test_a_file_that_others_can_read_is_remarked_on(tmp_path: Path) -> None:
    file = tmp_path / "pw"
    file.write_text("secret\n")
    for mode, reported in ((0o600, False), (0o640, False), (0o644, True), (0o660, True), (0o602, True)):
        file.chmod(mode)
        assert bool(open_to_others(file)) is reported, oct(mode)
        assert bool(secret_file(str(file)).remark) is reported
    assert secret_file(str(file)).value == "secret"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("${file:pw}", "`pw` is no absolute path"),
        ("${file:/no/such}", "/no/such cannot be read: No such file"),
        ("${file:/tmp}", "/tmp is a folder"),
        ("${file:/dev/zero}", "/dev/zero is a device"),
        ("${file:~nobody-of-that-name/x}", "no user of this machine has the name after `~`"),
        ("${file:/a\0b}", "holds a NUL character, which no file name can have"),
        ("${file:/a\ud800b}", "holds characters that no file name can have"),
        (f"${{file:/{'a' * 300}}}", "each of its names at most 255"),
        ("${file:asset:x}", "`asset:x` is no absolute path"),
        (f"${{secret:{'a' * 300}}}", "there is no secret aaaa"),
        ("${secret:}", "`${` without a name"),
        ("${secret:../x}", "`${` without a name"),
    ],
)
def test_what_is_no_secret_file_is_told(text: str, why: str) -> None:
    result = substitute(text, {})
    assert result.text == text
    assert why in result.problems[0]


def test_missing_file_is_no_remark(tmp_path: Path) -> None:
    assert open_to_others(tmp_path / "gone") == ""


def test_a_secret_in_a_folder_that_may_not_be_entered_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def forbidden(_: Path) -> bool:
        raise PermissionError

    monkeypatch.setattr(Path, "is_file", forbidden)
    assert "cannot be read" in named_secret("door", {"door": "x"}, tmp_path).problem


def test_a_binary_or_huge_file_is_no_secret(tmp_path: Path) -> None:
    for content, why in (
        (b"a\0b", "not text"),
        (b"\xff", "not text"),
        (b"a\nb", "not text"),
        (b"x" * 70_000, "larger"),
    ):
        (tmp_path / "pw").write_bytes(content)
        assert why in substitute(f"${{file:{tmp_path / 'pw'}}}", {}).problems[0]


def test_a_secret_in_the_user_part_is_encoded(tmp_path: Path) -> None:
    (tmp_path / "pw").write_text("a/b@c\n")
    assert substitute(f"rtsp://u:${{file:{tmp_path}/pw}}@h/x", {}).text == "rtsp://u:a%2Fb%40c@h/x"


def test_a_mistake_never_shows_a_secret(tmp_path: Path) -> None:
    (tmp_path / "pw").write_text("Zq9 w/ord's")
    (tmp_path / "g.yaml").write_text(f"version: '${{file:{tmp_path}/pw}}'\nstages: {{}}\ncameras: {{}}\n")
    with pytest.raises(GraphError) as error:
        load_plan(tmp_path / "g.yaml")
    assert "Zq9" not in str(error.value)
