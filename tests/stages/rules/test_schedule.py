"""Times of day: against a clock that is read minute by minute."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from camgraph.stages.rules.schedule import PeriodDefinition, Schedule, Times, minutes
from camgraph.stages.video.dates import zone_of

BERLIN = ZoneInfo("Europe/Berlin")
DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
ZONES = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "UTC", "-03:30", "Africa/Cairo")


def schedule(*periods: dict[str, Any], zone: str = "Europe/Berlin", holidays: tuple[str, ...] = ()) -> Schedule:
    return Schedule([PeriodDefinition.model_validate(one) for one in periods], zone_of(zone), holidays)


def ns(text: str) -> int:
    """A moment with its offset from UTC."""
    return int(datetime.fromisoformat(text).timestamp()) * 10**9


NIGHT = {"from": "21:00", "to": "06:00"}


@pytest.mark.parametrize(
    ("period", "moment", "expected"),
    [
        (NIGHT, "2026-11-22T20:59:59+01:00", False),
        (NIGHT, "2026-11-22T21:00:00+01:00", True),
        (NIGHT, "2026-11-23T05:59:59+01:00", True),
        (NIGHT, "2026-11-23T06:00:00+01:00", False),
        (NIGHT, "2026-07-22T19:00:00+00:00", True),
        ({**NIGHT, "days": ["fri"]}, "2026-11-28T05:00:00+01:00", True),
        ({**NIGHT, "days": ["fri"]}, "2026-11-27T05:00:00+01:00", False),
        ({**NIGHT, "days": "fri"}, "2026-11-27T22:00:00+01:00", True),
        ({"from": "08:00", "to": "08:00"}, "2026-11-27T07:59:59+01:00", True),
        ({"from": "08:00", "to": "08:00", "days": ["fri"]}, "2026-11-28T08:00:00+01:00", False),
        ({"from": "00:00", "to": "24:00", "days": ["sun"]}, "2026-11-22T23:59:59+01:00", True),
        ({"from": "00:00", "to": "24:00", "days": ["sun"]}, "2026-11-23T00:00:00+01:00", False),
        # the clock shows 02:00 to 03:00 twice on 2026-10-25, and skips 02:00 to 03:00 on 2026-03-29
        (NIGHT, "2026-10-25T02:30:00+02:00", True),
        (NIGHT, "2026-10-25T02:30:00+01:00", True),
        ({"from": "21:00", "to": "02:30"}, "2026-10-25T02:45:00+02:00", True),
        ({"from": "21:00", "to": "02:30"}, "2026-10-25T02:29:59+01:00", True),
        ({"from": "21:00", "to": "02:30"}, "2026-10-25T02:30:00+01:00", False),
        ({"from": "02:30", "to": "04:00"}, "2026-10-25T02:29:59+02:00", False),
        ({"from": "02:30", "to": "04:00"}, "2026-10-25T02:10:00+01:00", True),
        ({"from": "02:30", "to": "04:00"}, "2026-03-29T01:59:59+01:00", False),
        ({"from": "02:30", "to": "04:00"}, "2026-03-29T03:00:00+02:00", True),
        ({"from": "21:00", "to": "02:30"}, "2026-03-29T03:00:00+02:00", False),
        ({"from": "02:10", "to": "02:50"}, "2026-03-29T03:00:00+02:00", False),
    ],
)
def test_moments(period: dict[str, Any], moment: str, expected: bool) -> None:
    assert schedule(period).is_time(ns(moment)) is expected


def test_holidays() -> None:
    work = {"from": "08:00", "to": "17:00", "days": list(DAYS[:5]), "except": "holidays"}
    closed = {"from": "00:00", "to": "24:00", "days": ["sat", "sun", "holidays"]}
    holidays = ("2026-11-23", "12-25")
    open_, shut = schedule(work, holidays=holidays), schedule(closed, holidays=holidays)
    for moment, holiday in (
        ("2026-11-23T12:00+01:00", True),
        ("2026-11-24T12:00+01:00", False),
        ("2026-12-25T12:00+01:00", True),
        ("2027-11-23T12:00+01:00", False),
        ("2028-12-25T12:00+01:00", True),
    ):
        assert (open_.is_time(ns(moment)), shut.is_time(ns(moment))) == (not holiday, holiday), moment


def test_a_night_belongs_to_the_day_on_which_it_begins() -> None:
    night = schedule({**NIGHT, "except": "holidays"}, holidays=("2026-12-24",))
    moments = ("2026-12-24T03:00+01:00", "2026-12-24T22:00+01:00", "2026-12-25T03:00+01:00", "2026-12-25T22:00+01:00")
    assert [night.is_time(ns(moment)) for moment in moments] == [True, False, False, True]


class Reference:
    """Reads a clock minute by minute, over all the days that may matter."""

    def __init__(self, period: PeriodDefinition, zone: str, holidays: frozenset[str]) -> None:
        self.period, self.zone, self.holidays = period, zone_of(zone), holidays

    def covers(self, minute: datetime) -> bool:
        return any(self._covers(minute, minute.astimezone(self.zone).date() + timedelta(days=n)) for n in range(-2, 2))

    def _covers(self, minute: datetime, day: date) -> bool:
        if not self._begins_on(day):
            return False
        begin = datetime(day.year, day.month, day.day) + timedelta(minutes=minutes(self.period.from_))
        end = datetime(day.year, day.month, day.day) + timedelta(minutes=minutes(self.period.to))
        end += timedelta(days=end <= begin)
        around = [minute + timedelta(minutes=n) for n in range(-26 * 60, 26 * 60)]
        shown = [one.astimezone(self.zone).replace(tzinfo=None) for one in around]
        first = next((at for at, clock in zip(around, shown, strict=True) if clock >= begin), None)
        if begin < shown[0]:
            first = around[0]
        late = [at for at, clock in zip(around, shown, strict=True) if clock < end or clock == end]
        if first is None or not late:
            return False
        exactly = late[-1].astimezone(self.zone).replace(tzinfo=None) == end
        last = late[-1] if exactly else late[-1] + timedelta(minutes=1)
        return first <= minute < last

    def _begins_on(self, day: date) -> bool:
        holiday = day.isoformat() in self.holidays
        if holiday and self.period.except_:
            return False
        days = self.period.days
        return days is None or DAYS[day.weekday()] in days or (holiday and "holidays" in days)


CHANGES = {
    "Europe/Berlin": ("2026-03-29", "2026-10-25"),
    "America/New_York": ("2026-03-08", "2026-11-01"),
    "Australia/Lord_Howe": ("2026-04-05", "2026-10-04"),
    "Africa/Cairo": ("2026-04-24", "2026-10-30"),
}
of_day = st.integers(0, 24 * 60 - 1).map(lambda n: f"{n // 60:02d}:{n % 60:02d}")


@settings(max_examples=50, deadline=None)
@given(st.data())
@pytest.mark.slow
def test_as_a_clock_that_is_read_minute_by_minute(data: st.DataObject) -> None:
    zone = data.draw(st.sampled_from(ZONES))
    near = date.fromisoformat(data.draw(st.sampled_from(CHANGES.get(zone, ("2026-11-22",)))))
    from_, to = data.draw(of_day), data.draw(of_day | st.just("24:00"))
    days = data.draw(st.none() | st.lists(st.sampled_from([*DAYS, "holidays"]), min_size=1, unique=True))
    keys: dict[str, Any] = {"from": from_, "to": to, "days": days}
    if data.draw(st.booleans()):
        keys["except"] = "holidays"
    holidays = frozenset(data.draw(st.lists(st.sampled_from([near.isoformat()]), max_size=1)))
    period = PeriodDefinition.model_validate(keys)
    subject = Schedule([period], zone_of(zone), holidays)
    reference = Reference(period, zone, holidays)
    midnight = datetime(near.year, near.month, near.day, tzinfo=UTC)
    for minute in data.draw(st.lists(st.integers(-36 * 60, 36 * 60), min_size=1, max_size=8)):
        moment = midnight + timedelta(minutes=minute)
        assert subject.is_time(int(moment.timestamp()) * 10**9 + 5) is reference.covers(moment), moment


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(of_day, of_day), min_size=1, max_size=3), st.lists(st.integers(0, 9 * 1440), max_size=30))
def test_what_it_remembers_changes_no_answer(periods: list[tuple[str, str]], moments: list[int]) -> None:
    """The answers do not depend on the order of the questions, also with several periods."""
    definitions = [{"from": begin, "to": end} for begin, end in periods]
    begin = ns("2026-10-20T00:00+02:00")
    asked = schedule(*definitions)
    for moment in moments:
        at = begin + moment * 60 * 10**9
        assert asked.is_time(at) is any(schedule(one).is_time(at) for one in definitions)


def test_asked_second_after_second() -> None:
    """The answer that is remembered ends with the second in which it changes."""
    night = schedule(NIGHT, {"from": "21:10", "to": "21:20"}, {"from": "05:30", "to": "06:10"})
    for begin, change, before in (("20:30:00", "21:00:00", False), ("05:20:00", "06:10:00", True)):
        day = "2026-11-22T{}+01:00"
        at, last = ns(day.format(begin)), ns(day.format(change))
        answers = [night.is_time(moment) for moment in range(at, last + 60 * 10**9, 10**9)]
        assert answers.index(not before) == (last - at) // 10**9


def test_times_of_a_rule() -> None:
    schedules = {"night": schedule(NIGHT), "cleaning": schedule({"from": "22:00", "to": "23:00"})}
    at = [ns(f"2026-11-22T{hour}:30+01:00") for hour in ("20", "21", "22", "23")]
    assert [Times(("night",), ("cleaning",)).fit(schedules, one) for one in at] == [False, True, False, True]
    assert [Times((), ("cleaning",)).fit(schedules, one) for one in at] == [True, True, False, True]
    assert [Times(("cleaning", "night")).fit(schedules, one) for one in at] == [False, True, True, True]


@pytest.mark.parametrize("text", ["24:01", "7:00", "25:00", "12:60", "", "noon", "12:00:00"])
def test_no_times_of_day(text: str) -> None:
    with pytest.raises(ValidationError, match="expected a time of day"):
        PeriodDefinition.model_validate({"from": text, "to": "10:00"})


@pytest.mark.parametrize("seconds", [10**12, -(10**12), 253_402_300_799, -62_135_596_800])
def test_a_broken_clock_is_in_no_schedule(seconds: int) -> None:
    whole_day = PeriodDefinition.model_validate({"from": "00:00", "to": "24:00"})
    assert not Schedule([whole_day], UTC).is_time(seconds * 1_000_000_000)
