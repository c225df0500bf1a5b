"""Playlists and concat scripts as files: told apart, and where they may lead."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from camgraph.stages.video.scripts import kind_of, why_not_followed

MEDIA = "#EXTM3U\n#EXTINF:1,\n{}\n"
MASTER = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\n{}\n"


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


def test_scripts_are_recognised_by_content(tmp_path: Path) -> None:
    assert kind_of(write(tmp_path / "a.mp4", MEDIA.format("1.ts"))) == "hls"
    assert kind_of(write(tmp_path / "b.mp4", "ffconcat version 1.0\nfile a.mp4\n")) == "ffconcat"
    assert kind_of(write(tmp_path / "c.m3u8", "no playlist")) is None


def test_what_lies_beside_a_script_may_be_followed(tmp_path: Path) -> None:
    write(tmp_path / "1.ts", "segment")
    write(tmp_path / "low" / "2.ts", "segment")
    write(tmp_path / "low" / "a.m3u8", MEDIA.format("2.ts"))
    assert why_not_followed(write(tmp_path / "a.m3u8", MEDIA.format("1.ts")), "hls") == ""
    assert why_not_followed(write(tmp_path / "m.m3u8", MASTER.format("low/a.m3u8")), "hls") == ""
    assert why_not_followed(write(tmp_path / "c", "ffconcat version 1.0\nfile '1.ts'\n"), "ffconcat") == ""


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("../secret.ts", "expected a file in its own folder"),
        ("/etc/hostname", "expected a file in its own folder"),
        ("http://example.org/1.ts", "expected a file in its own folder"),
        ("data:video/mp4;base64,AAAA", "expected a file in its own folder"),
        ("link.ts", "leads out of its folder"),
        ("absent.ts", "there is no such file"),
        ("pipe", "is a pipe"),
        ("a.m3u8", "is a playlist itself"),
        ("what?.ts", "expected a name without '?'"),
        ("it's.ts", 'expected a name without "\'"'),
    ],
)
def test_what_leads_elsewhere_is_not_followed(tmp_path: Path, name: str, why: str) -> None:
    folder = tmp_path / "folder"
    script = write(folder / "a.m3u8", MEDIA.format(name))
    write(tmp_path / "secret.ts", "secret")
    (folder / "link.ts").symlink_to(tmp_path / "secret.ts")
    os.mkfifo(folder / "pipe")
    assert why in why_not_followed(script, "hls")
    assert why in why_not_followed(write(folder / "c", f"ffconcat version 1.0\nfile {name}\n"), "ffconcat")


def test_a_playlist_of_playlists_of_playlists_is_not_followed(tmp_path: Path) -> None:
    script = write(tmp_path / "a.m3u8", MASTER.format("a.m3u8"))
    assert "a playlist itself" in why_not_followed(script, "hls")


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ("#EXT-X-STREAM-INF:BANDWIDTH=9\n{}\n", "'../b/secret.m3u8': expected a file in its own folder"),
        ('#EXT-X-MEDIA:TYPE=AUDIO,URI="{}"\n', "'../b/secret.m3u8': expected a file in its own folder"),
        ('#EXT-X-KEY:METHOD=AES-128,URI="a\\"/{}"\n', "in a way that camgraph does not read"),
        ("#EXT-X-STREAM-INF:BANDWIDTH=9\n1.ts\n" * 8, "more than 8 playlists"),
    ],
)
def test_neither_a_tag_nor_a_variant_leads_out_of_the_folder(tmp_path: Path, more: str, why: str) -> None:
    write(tmp_path / "b" / "secret.m3u8", MEDIA.format("1.ts"))
    write(tmp_path / "a" / "1.ts", "segment")
    write(tmp_path / "a" / "m.m3u8", MEDIA.format("1.ts"))
    script = write(tmp_path / "a" / "a.m3u8", MASTER.format("m.m3u8") + more.format("../b/secret.m3u8"))
    assert why in why_not_followed(script, "hls")


def test_sound_and_previews_beside_a_playlist_may_be_followed(tmp_path: Path) -> None:
    write(tmp_path / "1.ts", "segment")
    write(tmp_path / "m.m3u8", MEDIA.format("1.ts"))
    more = '#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",URI="m.m3u8"\n#EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=1,URI="m.m3u8"\n'
    assert why_not_followed(write(tmp_path / "a.m3u8", MASTER.format("m.m3u8") + more), "hls") == ""


def test_names_are_bytes(tmp_path: Path) -> None:
    """A name that is no UTF-8 is not replaced by a similar one, which another file may have."""
    write(tmp_path / "a" / "\ufffd.ts", "segment")
    (tmp_path / "a" / os.fsdecode(b"\xff.ts")).symlink_to(write(tmp_path / "secret.ts", "secret"))
    (tmp_path / "a" / "a.m3u8").write_bytes(b"#EXTM3U\n#EXTINF:1,\n\xff.ts\n")
    assert "leads out of its folder" in why_not_followed(tmp_path / "a" / "a.m3u8", "hls")


def test_a_concat_script_has_lines_as_ffmpeg_sees_them(tmp_path: Path) -> None:
    write(tmp_path / "1.ts", "segment")
    script = write(tmp_path / "c", "ffconcat version 1.0\nfile 1.ts\n# x\0file 2.ts\n")
    assert "no such file" in why_not_followed(script, "ffconcat")
