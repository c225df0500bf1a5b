from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import unquote

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from camgraph.pipeline.errors import UserError
from camgraph.pipeline.graph.variables import substitute
from camgraph.pipeline.system.names import MAX_NAME, NAME_PATTERN
from camgraph.stages.video.capture import Camera
from camgraph.tools.commands.watching.sources import camera_name, cameras_of, hide_secrets, unique_names


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("videos/front door.mp4", "front-door"),
        ("/data/a.b.mkv", "a-b"),
        ("Tür.mp4", "T-r"),
        ("ключ.mp4", "camera"),
        ("-x-.mp4", "x"),
        ("..", "camera"),
        ("x" * 60 + ".mp4", "x" * 40),
        ("file:///data/yard.mp4", "yard"),
        ("asset:vtest.avi", "vtest"),
        ("/dev/video0", "video0"),
        ("rtsp://10.0.0.11:554/main", "10-0-0-11"),
        ("rtsp://viewer:geheim@cam.example/main?token=geheim", "cam-example"),
        ("rtsp://viewer:ge/heim@cam.example/main", "camera"),
        ("http://[fe80::1]:80/", "fe80-1"),
    ],
)
def test_a_camera_is_named_after_its_file_or_host(source: str, name: str, tmp_path: Path) -> None:
    assert camera_name(source, tmp_path) == name


def test_a_folder_keeps_what_looks_like_a_suffix(tmp_path: Path) -> None:
    (tmp_path / "day.1").mkdir()
    assert camera_name("day.1", tmp_path) == "day-1"


@given(st.lists(st.from_regex(NAME_PATTERN, fullmatch=True).map(lambda name: name[:MAX_NAME])))
def test_names_become_unique_and_stay_names(names: list[str]) -> None:
    unique = unique_names(names)
    assert len(set(unique)) == len(names)
    assert all(re.fullmatch(NAME_PATTERN, name) and len(name) <= MAX_NAME for name in unique)
    if len(set(names)) == len(names):
        assert unique == names


@pytest.mark.parametrize(
    ("address", "shown", "variables"),
    [
        ("rtsp://10.0.0.11/main", "rtsp://10.0.0.11/main", {}),
        ("rtsp://v:p%40s@h:554/x", "rtsp://v:${CAMERA_3_PASSWORD}@h:554/x", {"CAMERA_3_PASSWORD": "p@s"}),
        ("rtsp://v:a:b@h/x", "rtsp://v:${CAMERA_3_PASSWORD}@h/x", {"CAMERA_3_PASSWORD": "a:b"}),
        ("rtsp://v:${MINE}@h/x", "rtsp://v:${MINE}@h/x", {}),
        ("rtsp://${HOST}/x", "rtsp://${HOST}/x", {}),
        ("rtsp://v:p/s@h/x", "${CAMERA_3_URL}", {"CAMERA_3_URL": "rtsp://v:p/s@h/x"}),
        ("http://h/x?token=t", "${CAMERA_3_URL}", {"CAMERA_3_URL": "http://h/x?token=t"}),
        ("http://token@h/x", "${CAMERA_3_URL}", {"CAMERA_3_URL": "http://token@h/x"}),
        ("http://v:p@h/x?k=${MINE}", "${CAMERA_3_URL}", {"CAMERA_3_URL": "http://v:p@h/x?k=mine"}),
    ],
)
def test_what_is_secret_of_an_address_becomes_a_variable(address: str, shown: str, variables: dict[str, str]) -> None:
    assert hide_secrets(address, 3, {"MINE": "mine", "HOST": "h"}) == (shown, variables)


def test_a_variable_that_is_missing_is_told_without_the_address() -> None:
    with pytest.raises(UserError, match=r"^http://\*\*\*@h/x\?\*\*\*: the environment variable MINE is not set"):
        hide_secrets("http://v:geheim@h/x?k=${MINE}", 1, {})
    for address in ("rtsp://${MINE}/x", "rtsp://v:${MINE}@h/x"):
        with pytest.raises(UserError, match="the environment variable MINE is not set"):
            hide_secrets(address, 1, {})


@given(st.text("aZ09:@/?#%&=. ", min_size=1), st.sampled_from(["", "?token=t", "/path@x"]))
def test_no_password_is_shown_and_the_camera_gets_it(password: str, tail: str) -> None:
    assume(unquote(password).isprintable())  # `%00` and the like are refused, for no variable can hold them
    address = f"rtsp://viewer:<{password}>@host/main{tail}"
    shown, variables = hide_secrets(address, 1, {})
    assert "<" not in shown
    filled = substitute(shown, variables)
    assert not filled.problems
    assert unquote(filled.text) == unquote(address)


@pytest.mark.processes
def test_a_file_is_found_again_from_anywhere(tmp_path: Path, make_clip: Callable[[Path], Path]) -> None:
    make_clip(tmp_path / "a${HOME}.mp4")
    [camera] = cameras_of(["a${HOME}.mp4"], tmp_path, {})
    assert substitute(camera.url, {}).text == str(tmp_path / "a${HOME}.mp4")
    assert Camera.model_validate({"url": substitute(camera.url, {}).text}).path(Path("/")).is_file()
    assert not camera.live


def test_the_same_file_twice_is_two_cameras(tmp_path: Path, make_clip: Callable[[Path], Path]) -> None:
    make_clip(tmp_path / "a.mp4")
    assert [camera.name for camera in cameras_of(["a.mp4", str(tmp_path / "a.mp4")], tmp_path, {})] == ["a", "a-2"]


def test_all_sources_that_cannot_be_watched_are_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "empty.mp4").touch()
    (tmp_path / "noise.mp4").write_bytes(b"\x01\x02" * 500)
    (tmp_path / "notes.txt").write_text("dear diary\n" * 50)
    with pytest.raises(UserError) as error:
        cameras_of(["no.mp4", "empty.mp4", "noise.mp4", "notes.txt", "*.mkv", " "], tmp_path, {})
    lines = str(error.value).splitlines()
    assert lines[0] == f"no such file or folder: {tmp_path}/no.mp4"
    assert lines[1] == f"{tmp_path}/empty.mp4: the file is empty, expected a video"
    assert lines[2].startswith(f"{tmp_path}/noise.mp4: cannot be read as a video")
    assert lines[3] == f"{tmp_path}/notes.txt: is a text, expected a video"
    assert lines[4] == f"no such file or folder: {tmp_path}/*.mkv: nothing fits this pattern"
    assert lines[5].startswith("an empty SOURCE")
    assert len(lines) == 6


def test_a_pattern_that_fits_nothing_is_told_as_one(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match=r"^no such file or folder: .*/empty/\*\.mp4: nothing fits this pattern$"):
        cameras_of(["empty/*.mp4"], tmp_path, {})


@pytest.fixture
def public() -> Iterator[Path]:
    """A folder that everybody may look into, as those of pytest are not."""
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.mark.parametrize("source", ["closed", "closed/b.mp4", "closed/*.mp4", "unlisted"])
def test_a_folder_that_may_not_be_read_is_told_as_such(
    public: Path, source: str, request: pytest.FixtureRequest
) -> None:
    (public / "closed").mkdir(mode=0)
    (public / "unlisted").mkdir(mode=0o311)
    request.getfixturevalue("nobody")
    what = "look at" if "/" in source else "read"
    with pytest.raises(UserError) as caught:
        cameras_of([source], public, {})
    assert str(caught.value) == f"no permission to {what} {public}/{source}"


SECRET = "Zq9"


@given(
    st.sampled_from(["rtsp", " rtsp", "RTSP", "http", "foo", "r-tsp", "file", "asset", "", "~", "\t", "./rtsp"]),
    st.sampled_from(["://", ":/", ":", "//", ";//", ":\\\\", ": //", ":///", ";", "", " ://", "\n://"]),
    st.text(max_size=6).filter(lambda text: "\0" not in text),
    st.text(max_size=6).filter(lambda text: "\0" not in text),
    st.sampled_from(["h/x", "h:554/a.mp4", "", "h/../x"]),
)
def test_no_mistyped_address_shows_its_password(protocol: str, mark: str, before: str, after: str, rest: str) -> None:
    source = f"{protocol}{mark}viewer:{before}{SECRET}{after}@{rest}"
    message = ""
    try:
        message = "".join(f"{camera.name} {camera.url}" for camera in cameras_of([source], Path("/nowhere"), {}))
    except UserError as error:
        message = str(error)
    assert message
    assert SECRET not in message


def test_live_cameras_and_files_are_not_mixed(tmp_path: Path, make_clip: Callable[[Path], Path]) -> None:
    make_clip(tmp_path / "a.mp4")
    with pytest.raises(
        UserError, match=r"live cameras \(rtsp://\*\*\*@h/x\) and files \(a\.mp4\) .* in two runs"
    ) as error:
        cameras_of(["a.mp4", "rtsp://v:geheim@h/x"], tmp_path, {})
    assert "geheim" not in str(error.value)
