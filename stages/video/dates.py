"""When a recording began: by the graph, by the file's metadata, or by the date and time in its name. Pure.

Nothing here looks at the file system or at this machine's clock, so a file says the same on every machine. A time
without a zone is in the zone that the camera names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Literal, NamedTuple
from zoneinfo import ZoneInfo, available_timezones

from camgraph.pipeline.system.spelling import did_you_mean

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FileClock = Literal["start_at", "metadata", "name", "file"]
"""Of `pipeline.messages.Clock`: the origin of a file's start time; `file`: unknown, counted from 1970."""

_EXIF = "ExifIFD/DateTimeOriginal"
_EXIF_ZONE = "ExifIFD/OffsetTimeOriginal"
# Apple's has a zone, and is when the recording began; creation_time is UTC in MP4, MOV and Matroska.
DATES = ("com.apple.quicktime.creationdate", "creation_time", _EXIF)
MOST_OF_A_DATE = 100
# A counter that was never set: 1904 in MP4, 1970, 2001 in Matroska, 1980 and 2000 in cameras.
_NEVER_SET = frozenset({(1904, 1, 1), (1970, 1, 1), (1980, 1, 1), (2000, 1, 1), (2001, 1, 1)})
_YEARS = range(1990, 2100)
_IN_NAME = re.compile(
    r"""(?<!\d) (?P<year>19\d\d|20\d\d) (?P<between>[-_.]?) (?P<month>\d\d) (?P=between) (?P<day>\d\d)
        (?: [T_.-] | \s* (?:at|um)? \s* )
        (?P<hour>\d\d) (?P<part>[-_.:h]?) (?P<minute>\d\d) (?: (?P=part) | m | : ) (?P<second>\d\d)
        (?: [.,]? (?P<fraction>\d{3} | \d{6}) (?![\dp]) )?
        (?P<zone> Z | [+]\d\d:?\d\d | -\d\d:\d\d )? (?!\d)""",
    re.VERBOSE | re.IGNORECASE,
)


class Beginning(NamedTuple):
    """The time of day at a file's first frame, in nanoseconds since 1970, and its source."""

    wall_ns: int
    clock: FileClock

    @property
    def text(self) -> str:
        """As 2026-11-22T10:44:39Z."""
        return (EPOCH + timedelta(microseconds=self.wall_ns // 1000)).isoformat().replace("+00:00", "Z")

    def sentence(self, time_zone: str) -> str:
        """For people. `time_zone`: the assumed zone of a date without one."""
        if self.clock == "file":
            return "neither metadata nor name tell when it was recorded: times count from 1970; set start_at"
        return f"its events are of {self.text} and later: {self.why(time_zone)}"

    def why(self, time_zone: str) -> str:
        """The source of a known date, for people. `time_zone`: as above."""
        if self.clock == "metadata":
            return "the creation time in its metadata; if that is when it was copied or exported, set start_at"
        return "start_at says so" if self.clock == "start_at" else f"the date in its name, in {time_zone}"


def beginning(start_at: datetime | None, metadata: datetime | None, name: datetime | None) -> Beginning:
    """The first of these that is known."""
    for clock, at in (("start_at", start_at), ("metadata", metadata), ("name", name)):
        if at is not None:
            return Beginning((at - EPOCH) // timedelta(microseconds=1) * 1000, clock)  # type: ignore[arg-type]
    return Beginning(0, "file")


def zone_of(text: str) -> tzinfo:
    """The zone of this name (Europe/Berlin), or so far from UTC (+01:00). Raises ValueError."""
    offset = re.fullmatch(r"([+-])([01]\d|2[0-3]):([0-5]\d)", text)
    if offset:
        by = timedelta(hours=int(offset[2]), minutes=int(offset[3]))
        return timezone(by if offset[1] == "+" else -by)
    if text == "UTC":
        return UTC
    try:
        return ZoneInfo(text)
    except (KeyError, ValueError, OSError):
        raise ValueError(_unknown_zone(text)) from None


def _unknown_zone(text: str) -> str:
    known = available_timezones()
    if not known:
        return (
            f"this machine knows no time zones, so not {text[:40]!r} either: install its package `tzdata`, or run "
            "`pip install tzdata`, or write the distance from UTC, such as +01:00"
        )
    spaced = text[:40].strip().replace(" ", "_").lower()
    cities = sorted((zone for zone in known if zone.lower().rpartition("/")[2] == spaced), key=len)
    guess = f"; did you mean `{cities[0]}`?" if cities else did_you_mean(text[:40], known)
    return f"there is no time zone {text[:40]!r}{guess or ': expected one such as Europe/Berlin, or +01:00'}"


def date_in_metadata(metadata: Mapping[str, str], zone: tzinfo) -> datetime | None:
    """When the recording began, by the metadata of its container; when a photograph was taken, by its EXIF."""
    tags = dict(metadata)
    if _EXIF in tags:  # 2026:11:22 10:44:39, and its zone if the camera knew one
        tags[_EXIF] = tags[_EXIF].replace(":", "-", 2) + tags.get(_EXIF_ZONE, "")
    found = (_date(tags.get(key, ""), zone) for key in DATES)
    return next((at for at in found if at and (at.year, at.month, at.day) not in _NEVER_SET), None)


def date_in_name(name: str, zone: tzinfo) -> datetime | None:
    """The first date and time in a file's name, as 2026-11-22_10-44-39, 20261122T104439Z or 20261122104439."""
    return next((at for found in _IN_NAME.finditer(name) if (at := _date(_iso(found), zone))), None)


def _iso(found: re.Match[str]) -> str:
    date = "{year}-{month}-{day}T{hour}:{minute}:{second}".format(**found.groupdict())
    return date + (f".{found['fraction']}" if found["fraction"] else "") + (found["zone"] or "").upper()


def _date(text: str, zone: tzinfo) -> datetime | None:
    """This date and time, None if it is none or of no year in which it could have been recorded."""
    try:
        at = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    try:
        at = (at if at.tzinfo else at.replace(tzinfo=zone)).astimezone(UTC)
    except OverflowError:
        return None
    return at if at.year in _YEARS and len(text.strip()) > len("2026-11-22") else None
