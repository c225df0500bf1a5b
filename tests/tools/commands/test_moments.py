"""Times in options and in what is printed, by the clock of the machine."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from camgraph.pipeline.errors import UserError
from camgraph.tools.commands.moments import local_time, moment


@pytest.fixture
def vienna(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Europe/Vienna")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def ns(*at: int) -> int:
    return round(datetime(*at, tzinfo=UTC).timestamp() * 1e9)  # type: ignore[misc, arg-type]


@pytest.mark.usefixtures("vienna")
@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("2026-11-22", ns(2026, 11, 21, 23)),
        ("2026-07-22T21:00", ns(2026, 7, 22, 19)),
        ("2026-11-22 21:00Z", ns(2026, 11, 22, 21)),
        ("2026-11-22T21:00-03:00", ns(2026, 11, 23, 0)),
    ],
)
def test_a_moment_without_an_offset_is_local(written: str, meant: int) -> None:
    assert moment(written, "--since") == meant


@pytest.mark.parametrize("written", ["yesterday", "0001-01-01", "2026-13-01", "", "3 weeks"])
def test_what_is_no_moment_is_refused(written: str) -> None:
    with pytest.raises(UserError, match=r"--since .*: expected 2h, 3d, 2026-11-22"):
        moment(written, "--since")


@pytest.mark.usefixtures("vienna")
@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("2026-11-22T21:03:11.000Z", "2026-11-22 22:03:11+01:00"),
        ("2026-07-22T22:03:11.900Z", "2026-07-23 00:03:11+02:00"),
        ("1970-01-01T00:00:31.200Z", "1970-01-01 00:00:31"),
        ("0001-01-01T00:00:00Z", "0001-01-01 01:05:21+01:05:21"),
        ("9999-12-31T23:59:59Z", "9999-12-31T23:59:59Z"),
        ("no time\x1b[2J", r"no time\x1b[2J"),
    ],
)
def test_times_are_read_by_the_local_clock(written: str, read: str) -> None:
    assert local_time(written) == read


@pytest.mark.usefixtures("vienna")
def test_what_is_printed_can_be_written_as_an_option() -> None:
    assert moment(local_time("2026-11-22T21:03:11Z"), "--since") == ns(2026, 11, 22, 21, 3, 11)


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00Z", "1601-01-01", "9999-12-31T23:59:59Z", "999999999d"])
def test_moments_far_away_fit_into_64_bits(text: str) -> None:
    assert abs(moment(text, "--since")) < 1 << 63
    assert local_time(text)
