"""HLS playlists as text: the names in them, and the same text with other names. Pure.

    rewritten     for FFmpeg in place of the playlist: it holds known tags alone, line by line
    references    of a playlist that FFmpeg reads as it stands, on a disk: every name, and no text that can be misread

So FFmpeg reads no name that was not seen here. Source: RFC 8216; libavformat/hls.c, which ends a line at a line feed, a
carriage return or a zero byte, takes 4095 bytes of it, and unescapes text in quotes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

BEGIN = "#EXTM3U"
MOST_BYTES = 4 << 20
"""A day in segments of two seconds."""
MOST_VARIANTS = 8
"""Of one camera in several sizes: FFmpeg opens each of them."""
_MOST_LINE = 1000
"""Characters, of at most four bytes."""

LINE_END = re.compile(r"[\r\n\0]+")
"""As FFmpeg sees it, in concat scripts as well."""
_VARIANT = "#EXT-X-STREAM-INF:"
_NAMING = ("#EXT-X-KEY:", "#EXT-X-MAP:")
_URI = re.compile(r'URI=(?:"([^"]*)"|([^,\s"]*))')
_ATTRIBUTE = r'[A-Za-z0-9_-]+=(?:"[^"\\]*"|[^",\s\\]*)'
_ATTRIBUTES = re.compile(rf"\s*{_ATTRIBUTE}(?:\s*,\s*{_ATTRIBUTE})*[\s,]*")
# Left out: other renditions (sound, subtitles), parts of segments, session data, and unknown tags.
_PLAIN = (
    *("#EXT-X-VERSION:", "#EXT-X-TARGETDURATION:", "#EXT-X-MEDIA-SEQUENCE:", "#EXT-X-PLAYLIST-TYPE:", "#EXTINF:"),
    *("#EXT-X-BYTERANGE:", "#EXT-X-DISCONTINUITY", "#EXT-X-ENDLIST", "#EXT-X-START:", "#EXT-X-PROGRAM-DATE-TIME:"),
)


class Reference(NamedTuple):
    """A name in a playlist. `is_playlist`: it should be a playlist too, else a segment, its header or its key."""

    uri: str
    is_playlist: bool


def is_master(text: str) -> bool:
    """Whether it names playlists rather than segments."""
    return any(line.startswith(_VARIANT) for line in _lines(text))


def references(text: str) -> list[Reference]:
    """Return all names in the playlist, whether FFmpeg opens them or not.

    Raises ValueError if FFmpeg may read other names than these, and if it would open many playlists.
    """
    found = list(_references(text))
    if sum(one.is_playlist for one in found) > MOST_VARIANTS:
        raise ValueError(f"more than {MOST_VARIANTS} playlists")
    return found


def _references(text: str) -> Iterator[Reference]:
    is_variant = False
    for whole in LINE_END.split(text):
        line = whole.rstrip(" \t\f\v")
        if len(line) > _MOST_LINE:
            raise ValueError(f"a line of more than {_MOST_LINE} characters: `{line[:40]}...`")
        if line.startswith("#"):
            is_variant = is_variant or line.startswith(_VARIANT)
            yield from _named_by_tag(line)
        elif line:
            yield Reference(line, is_variant)
            is_variant = False


def _named_by_tag(line: str) -> Iterator[Reference]:
    """Of any tag: versions of FFmpeg differ in which of them name files."""
    tag, _, attributes = line.partition(":")
    if "URI=" not in attributes:
        return
    if not _ATTRIBUTES.fullmatch(attributes):
        raise ValueError(f"something in a way that camgraph does not read: `{line[:200]}`")
    for attribute in re.findall(_ATTRIBUTE, attributes):
        key, _, value = attribute.partition("=")
        if key == "URI":
            yield Reference(value.strip('"'), f"{tag}:" not in _NAMING)


def rewritten(text: str, new_uri: Callable[[Reference], str]) -> str:
    """Return the playlist with another name for each of its names. New names contain no quotes or white space."""
    return "\n".join([BEGIN, *_new_lines(text, new_uri), ""])


def _new_lines(text: str, new_uri: Callable[[Reference], str]) -> Iterator[str]:
    variant, variants = "", 0
    for line in _lines(text):
        if line.startswith(_VARIANT):
            variant = line
        elif line.startswith(_NAMING):
            yield _URI.sub(lambda found: f'URI="{new_uri(Reference(found[1] or found[2] or "", False))}"', line)
        elif line.startswith(_PLAIN):
            yield line
        elif not line.startswith("#") and line.strip():
            if variant:
                variants += 1
                if variants <= MOST_VARIANTS:
                    yield variant
                    yield new_uri(Reference(line.strip(), True))
            else:
                yield new_uri(Reference(line.strip(), False))
            variant = ""


def _lines(text: str) -> Iterator[str]:
    return (line.rstrip() for line in LINE_END.split(text) if line)
