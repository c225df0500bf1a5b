"""Playlists as text: FFmpeg must read no name in them that was not seen before."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camgraph.stages.video.playlists import MOST_VARIANTS, Reference, is_master, references, rewritten

MASTER = '#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1,AUDIO="a"\nlow.m3u8\n#EXT-X-MEDIA:TYPE=AUDIO,URI="http://x/a.m3u8"\n'
MEDIA = '#EXTM3U\r\n#EXT-X-MAP:URI="init.mp4"\r\n#EXT-X-KEY:METHOD=AES-128,URI=key,IV=0x1\r\n#EXTINF:1.0,\r\n1.ts\r\n'


def test_what_a_playlist_names() -> None:
    assert references(MASTER) == [
        Reference("low.m3u8", is_playlist=True),
        Reference("http://x/a.m3u8", is_playlist=True),
    ]
    assert [one.uri for one in references(MEDIA)] == ["init.mp4", "key", "1.ts"]
    assert is_master(MASTER)
    assert not is_master(MEDIA)


def test_names_are_replaced_and_nothing_else() -> None:
    assert rewritten(MEDIA, lambda one: f"/new/{one.uri}") == (
        '#EXTM3U\n#EXT-X-MAP:URI="/new/init.mp4"\n#EXT-X-KEY:METHOD=AES-128,URI="/new/key",IV=0x1\n'
        "#EXTINF:1.0,\n/new/1.ts\n"
    )


def test_variants_are_capped_and_refused_from_disk() -> None:
    many = "#EXTM3U\n" + "#EXT-X-STREAM-INF:BANDWIDTH=1\nself.m3u8\n" * 50
    assert rewritten(many, lambda one: one.uri).count("self.m3u8") == MOST_VARIANTS
    with pytest.raises(ValueError, match="more than 8 playlists"):
        references(many)


@pytest.mark.parametrize(
    "line",
    [
        *(
            '#EXT-X-KEY:URI="a\\"/../b"',
            '#EXT-X-MAP:URI=a"b',
            '#EXT-X-MEDIA:TYPE=AUDIO,URI="a',
            "#EXT-X-MAP:A=,,URI=a b",
        ),
        *("a/" * 600, "#" + "x" * 5000),
    ],
)
def test_what_may_be_misread_is_not_read_from_a_disk(line: str) -> None:
    with pytest.raises(ValueError, match=r"in a way that camgraph does not read|more than 1000 characters"):
        references(f"#EXTM3U\n{line}\n")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('#EXT-X-KEY:METHOD=NONE\n#EXT-X-X:A="URI=x",URI="y", URI=z,', ["y", "z"]),
        (" ../a \n\x0b#b\x1f\n#c", [" ../a", "\x0b#b\x1f"]),
        ("#EXT-X-STREAM-INF:A=1\n#EXTINF:1\na\0b\r\rc", ["a", "b", "c"]),
    ],
)
def test_names_on_a_disk_are_read_as_ffmpeg_reads_them(text: str, names: list[str]) -> None:
    assert [one.uri for one in references(text)] == names


LINES = st.sampled_from(
    [
        *("http://other/1.ts", "#EXTINF:1,", "#EXT-X-STREAM-INF:X=1", '#EXT-X-KEY:URI="http://other/k"', "\\", "\0"),
        *('#EXT-X-KEY:URI="a\\"http://other/', "#EXT-X-MAP:URI=http://other/m,X=1", '#EXT-X-MEDIA:URI="http://other/"'),
        *("#EXTM3U", '#EXT-X-I-FRAME-STREAM-INF:URI="http://other/i"', "\rhttp://other/2.ts", " http://other/3.ts"),
        *('#EXT-X-KEY:URI="', '#EXT-X-UNKNOWN:URI="http://other/u"', "#EXT-X-MAP:X=http://other/,URI="),
    ]
)


@given(st.lists(LINES), st.sampled_from(["\n", "\r", "\r\n", "\0"]))
def test_whatever_the_text_no_line_and_no_uri_is_of_its_making(lines: list[str], end: str) -> None:
    out = rewritten(end.join(lines), lambda _: "/gate")
    assert not set(out) & {"\r", "\0"}
    for line in out.splitlines():
        if not line.startswith("#"):
            assert line == "/gate"
        elif line.startswith(("#EXT-X-KEY:", "#EXT-X-MAP:")):
            assert line.count("URI=") == line.count('URI="/gate"')
        else:
            assert "URI=" not in line
